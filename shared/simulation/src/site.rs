use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use store::MemoryStore;

use crate::{
    fault::{Operation, Side},
    witness::Witness,
    world::World,
};

/// One store, and what has been seen of it.
pub(crate) struct Site {
    pub(crate) side: Side,
    pub(crate) store: MemoryStore,
    witness: Mutex<Witness>,
}

impl Site {
    /// Its objects are dated by the time of the world.
    pub(crate) fn new(world: &Arc<World>, side: Side) -> Arc<Self> {
        let clock = world.clone();
        Arc::new(Self {
            side,
            store: MemoryStore::with_clock(move || clock.clock(0)),
            witness: Mutex::new(Witness::new(side)),
        })
    }

    pub(crate) fn witness(&self) -> MutexGuard<'_, Witness> {
        self.witness.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After an operation that may have changed something.
    pub(crate) fn look(&self, world: &World, operation: &Operation) {
        if let Err(what) = self.witness().look(world.now(), &self.store) {
            world.broken(operation.actor, format!("after {operation}: {what}"));
        }
    }
}
