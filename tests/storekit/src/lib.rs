//! For tests of what uses stores, and of the stores: a store in memory, and the suite that every
//! store has to pass.
//!
//! In [`MemoryStore`], a hook can let every operation fail, wait or conflict, and a log has all
//! calls. It has no clock, no randomness and no threads of its own, so a run can be repeated.

mod call;
pub mod conformance;
mod operations;
mod state;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

pub use self::call::{Action, Answer, Call, Hook, Injected, Moment};
use self::state::State;

/// Store in memory. Clones are handles on the same objects.
#[derive(Clone)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
    hook: Arc<RwLock<Arc<Hook>>>,
    clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
}

/// Start of the counting clock, 2026-01-01: a store full of objects from 1970 would look broken.
const EPOCH: Duration = Duration::from_secs(1_767_225_600);

impl Default for MemoryStore {
    /// Returns an empty store whose clock goes on by one second with each write and each
    /// [`Store::stat`](store::Store::stat).
    fn default() -> Self {
        let writes = AtomicU64::new(0);
        Self::with_clock(move || {
            let seconds = writes.fetch_add(1, Ordering::Relaxed);
            SystemTime::UNIX_EPOCH + EPOCH + Duration::from_secs(seconds)
        })
    }
}

impl MemoryStore {
    /// Returns an empty store, as [`MemoryStore::default`] does.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns an empty store whose own clock is `clock`.
    pub fn with_clock(clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self {
            state: Arc::default(),
            hook: Arc::new(RwLock::new(Arc::new(|_: &Call, _| Answer::GoOn))),
            clock: Arc::new(clock),
        }
    }

    /// Asks `hook` about every call from now on, instead of the hook before.
    pub fn set_hook(&self, hook: impl Fn(&Call, Moment) -> Answer + Send + Sync + 'static) {
        *self.hook.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(hook);
    }

    /// Removes the hook: every call goes on.
    pub fn clear_hook(&self) {
        self.set_hook(|_, _| Answer::GoOn);
    }

    fn hook(&self) -> Arc<Hook> {
        Arc::clone(&self.hook.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("MemoryStore")
            .field("objects", &state.objects.keys())
            .field("calls", &state.calls)
            .finish_non_exhaustive()
    }
}
