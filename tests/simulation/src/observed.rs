use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use model::{CatalogName, Key};
use storekit::MemoryStore;

use crate::fault::{Kind, Operation, Side};
use crate::invariants::InvariantChecker;
use crate::world::World;

/// Store whose every change is checked.
pub(crate) struct ObservedStore {
    pub(crate) side: Side,
    pub(crate) store: MemoryStore,
    checker: Mutex<InvariantChecker>,
    /// Store that this one is a copy of.
    origin: Option<Arc<ObservedStore>>,
}

impl ObservedStore {
    /// Returns an empty store. Its clock is that of the world; those of the processes are wrong.
    pub(crate) fn new(world: &Arc<World>, side: Side, origin: Option<Arc<Self>>) -> Arc<Self> {
        let clock = world.clone();
        Arc::new(Self {
            side,
            store: MemoryStore::with_clock(move || clock.clock(0)),
            checker: Mutex::default(),
            origin,
        })
    }

    pub(crate) fn checker(&self) -> MutexGuard<'_, InvariantChecker> {
        self.checker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the pointers of all catalogs.
    pub(crate) fn pointers(&self) -> BTreeMap<CatalogName, Bytes> {
        let objects = self.store.objects().into_iter();
        let pointers = objects.filter_map(|(key, bytes)| match key {
            Key::Current(name) => Some((name, bytes)),
            _ => None,
        });
        pointers.collect()
    }

    /// Checks the store after an operation.
    pub(crate) fn check(&self, world: &World, operation: &Operation) {
        if let Err(what) = self.note_status(world.now(), operation) {
            world.broken(operation.actor, format!("after {operation}: {what}"));
        }
        if !self.may_harm(operation) {
            return;
        }
        let checked = self
            .checker()
            .check(world.now(), self.store.objects(), operation);
        if let Err(what) = checked.and_then(|()| self.check_copied()) {
            world.broken(operation.actor, format!("after {operation}: {what}"));
        }
    }

    /// Checks `status.json` after an operation that may have written it.
    fn note_status(&self, now: u64, operation: &Operation) -> Result<(), String> {
        let key = Key::parse(&operation.subject);
        let Some(Key::Status(name)) = &key else {
            return Ok(());
        };
        // A removal deletes it, and with it all holds.
        let bytes = self.store.objects().remove(&Key::Status(name.clone()));
        let bytes = bytes.unwrap_or_else(|| "{}".into());
        let mut checker = self.checker();
        let published = checker.history(name).last().map(|state| state.snapshot);
        let noted = checker
            .holds
            .note_status(now, operation.actor, name, &bytes, published);
        noted.map_err(|what| format!("{name}: {what}"))
    }

    /// True if the operation may change or break a published state, or repair a damaged object.
    /// Other puts are checked with the next operation that may.
    fn may_harm(&self, operation: &Operation) -> bool {
        match operation.kind {
            Kind::Put | Kind::Commit => match Key::parse(&operation.subject) {
                Some(Key::Current(_) | Key::Catalogs | Key::Gc) => true,
                Some(key) => self.checker().damage.has(&key),
                None => false,
            },
            Kind::Delete => true,
            _ => false,
        }
    }

    /// True if the operation wrote the pointer of a catalog that is removed by now.
    pub(crate) fn is_removed(&self, operation: &Operation) -> bool {
        match Key::parse(&operation.subject) {
            Some(Key::Current(name)) => self.checker().history(&name).last().is_none(),
            _ => false,
        }
    }

    /// Checks that every pointer of a copy is one that its origin had, byte for byte.
    fn check_copied(&self) -> Result<(), String> {
        let Some(origin) = &self.origin else {
            return Ok(());
        };
        for name in (0..crate::catalogs::NAMES.len()).map(crate::catalogs::name) {
            let copied = self
                .checker()
                .history(&name)
                .last()
                .map(|state| state.bytes.clone());
            let origin = origin.checker();
            let is_known = |copied| {
                origin
                    .history(&name)
                    .states
                    .iter()
                    .any(|state| state.bytes == copied)
            };
            if !copied.is_none_or(is_known) {
                return Err(format!(
                    "the pointer of {name} was never that of the origin"
                ));
            }
        }
        Ok(())
    }
}
