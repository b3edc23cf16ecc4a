use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use layout::Key;
use store::MemoryStore;

use crate::{
    fault::{Kind, Operation, Side},
    witness::Witness,
    world::World,
};

/// One store, and what has been seen of it.
pub(crate) struct Site {
    pub(crate) side: Side,
    pub(crate) store: MemoryStore,
    witness: Mutex<Witness>,
    /// Of a copy: where it comes from.
    origin: Option<Arc<Site>>,
}

impl Site {
    /// Its objects are dated by the time of the world.
    pub(crate) fn new(world: &Arc<World>, side: Side, origin: Option<Arc<Self>>) -> Arc<Self> {
        let clock = world.clone();
        Arc::new(Self {
            side,
            store: MemoryStore::with_clock(move || clock.clock(0)),
            witness: Mutex::new(Witness::new(side)),
            origin,
        })
    }

    pub(crate) fn witness(&self) -> MutexGuard<'_, Witness> {
        self.witness.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After an operation.
    pub(crate) fn look(&self, world: &World, operation: &Operation) {
        if !self.may_harm(operation) {
            return;
        }
        let looked = self.witness().look(world.now(), self.store.objects(), operation);
        if let Err(what) = looked.and_then(|()| self.is_copied()) {
            world.broken(operation.actor, format!("after {operation}: {what}"));
        }
    }

    /// Whether what is published may be another after it, may have lost something, or got back what was damaged. A put
    /// of another object is looked at by the next one that may.
    fn may_harm(&self, operation: &Operation) -> bool {
        match operation.kind {
            Kind::Put | Kind::Commit => {
                operation.subject.ends_with("/current.json")
                    || operation.subject == Key::Catalogs.to_string()
                    || Key::parse(&operation.subject).is_some_and(|key| self.witness().rotten.has(&key))
            }
            Kind::Delete => true,
            _ => false,
        }
    }

    /// Whether it wrote the pointer of a catalog that is removed by now.
    pub(crate) fn is_removed(&self, operation: &Operation) -> bool {
        match Key::parse(&operation.subject) {
            Some(Key::Current(name)) => self.witness().published(&name).is_none(),
            _ => false,
        }
    }

    /// Whether every pointer of a copy is one that its origin had, byte for byte.
    fn is_copied(&self) -> Result<(), String> {
        let Some(origin) = &self.origin else { return Ok(()) };
        for name in (0..crate::catalogs::NAMES.len()).map(crate::catalogs::name) {
            let Some(copied) = self.witness().published(&name).map(|state| state.bytes.clone()) else {
                continue;
            };
            if !origin
                .witness()
                .history(&name)
                .iter()
                .any(|state| state.bytes == copied)
            {
                return Err(format!("the pointer of {name} was never that of the origin"));
            }
        }
        Ok(())
    }
}
