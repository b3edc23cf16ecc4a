use futures_util::future::BoxFuture;
use model::Key;

use store::Condition;

/// Operation that a caller asks of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Call of [`ReadStore::get`](store::ReadStore::get).
    Get,
    /// One chunk of a body, before it is passed on.
    Read,
    /// Call of [`ReadStore::head`](store::ReadStore::head).
    Head,
    /// Call of [`Store::stat`](store::Store::stat).
    Stat,
    /// Call of [`Store::put`](store::Store::put).
    Put(Condition),
    /// Call of [`Store::stage`](store::Store::stage).
    Stage,
    /// Call of [`Staged::write`](store::Staged::write).
    Write,
    /// Call of [`Staged::commit`](store::Staged::commit).
    Commit(Condition),
    /// Call of [`Store::flush`](store::Store::flush).
    Flush,
    /// Call of [`Store::delete`](store::Store::delete), also for each key of a batch.
    Delete,
    /// Call of [`Store::list`](store::Store::list) with this prefix.
    List(String),
}

/// One call, as the hook and the log see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Number of the call in this store, from 0.
    pub number: u64,
    /// Operation with its condition or prefix.
    pub action: Action,
    /// Key of the object, for operations on one object.
    pub key: Option<Key>,
}

impl Call {
    /// Returns the key's path, or what errors call a call without a key.
    pub(crate) fn name(&self) -> String {
        let key = self.key.as_ref();
        key.map_or_else(|| "the store".to_owned(), ToString::to_string)
    }
}

/// Moment in a call at which the hook is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Moment {
    /// Before the call has any effect.
    Before,
    /// After the operation has succeeded, and before the caller knows.
    After,
}

/// Decision of the hook about one call.
pub enum Answer {
    /// The call goes on and succeeds.
    GoOn,
    /// The operation fails. After the operation this is a lost answer: it is done, and the caller
    /// is told otherwise.
    Fail,
    /// The operation is not allowed. Use it before the operation only.
    Deny,
    /// The caller is told that another writer was faster. After the operation this is what a caller
    /// sees whose first request was done, whose acknowledgement was lost, and whose client repeated
    /// the request by itself.
    Conflict,
    /// Nothing goes on until the future is done; then its answer counts. A task that is dropped
    /// meanwhile is a process that was killed at this point.
    Wait(BoxFuture<'static, Answer>),
}

/// Decides on every call, at both its moments. No lock is held meanwhile, so a hook may use the
/// store.
pub type Hook = dyn Fn(&Call, Moment) -> Answer + Send + Sync;

/// Cause of a failure that a hook wanted.
#[derive(Debug, thiserror::Error)]
#[error("a test injected this failure")]
pub struct Injected;
