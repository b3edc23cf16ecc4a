//! State of the model and its steps.

use std::fmt;

/// `gc.json`. The counter is not kept: what a process has read is dropped when the document is
/// written again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Gc {
    /// Nothing is condemned.
    None,
    /// The object is on the list and not spared, if `listed`.
    Condemned {
        /// Ticks since the condemnation.
        age: u8,
        /// True if the object is on the list and not spared.
        listed: bool,
    },
    /// The object may be deleted, if `listed`.
    Deleting {
        /// Ticks since the start of this state.
        age: u8,
        /// True if the object is on the list.
        listed: bool,
    },
}

/// State of an object in the `gc.json` that its publisher has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// Not on the list.
    Free {
        /// True if something else was condemned: only then a publisher may have to read `gc.json`
        /// again.
        condemned: bool,
    },
    /// On the list of what is condemned.
    Condemned,
    /// On the list of what is being deleted.
    Deleting,
}

/// A process that publishes a state which names the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Publisher {
    /// Catalog that it publishes.
    pub(crate) catalog: u8,
    /// State of the object in `gc.json` when it was read, and the ticks since.
    pub(crate) read: Option<(Standing, u8)>,
    /// True if the pointer that it read names the object.
    pub(crate) base: Option<bool>,
    /// True if the object was put or found, or the base names it.
    pub(crate) secured: bool,
    /// Ticks in which the commit that was sent may still land.
    pub(crate) commit: Option<u8>,
}

impl Publisher {
    pub(crate) fn idle(catalog: u8) -> Self {
        Self {
            catalog,
            read: None,
            base: None,
            secured: false,
            commit: None,
        }
    }
}

/// Progress of a collector. One that deletes needs no memory between two deletes, so it is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Collector {
    /// No step is in progress, or a crash ended it.
    Idle,
    /// It read that nothing is condemned.
    ReadNone,
    /// It listed, or read the condemned list, and reads the pointers of the catalogs in `unread` (a
    /// bit set).
    Marks { unread: u8, unnamed: bool },
}

/// State of the store and of all processes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct World {
    /// True if the object is in the store.
    pub(crate) object: bool,
    /// True for each catalog whose pointer names the object.
    pub(crate) names: Vec<bool>,
    /// `gc.json`.
    pub(crate) gc: Gc,
    /// Ticks in which a delete that was sent may still land, as often as it likes.
    pub(crate) delete: Option<u8>,
    /// The publishers. Their order means nothing, so they are kept sorted: fewer worlds.
    pub(crate) publishers: Vec<Publisher>,
    /// The collectors, sorted too.
    pub(crate) collectors: Vec<Collector>,
}

/// One step of one process, of the network, or of time.
#[derive(Clone, PartialEq)]
pub(crate) struct Step {
    pub(crate) name: &'static str,
    /// Position of the process in the world before.
    pub(crate) at: usize,
    pub(crate) after: World,
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.at)
    }
}

/// Steps that are possible in one world.
pub(crate) struct Steps<'a> {
    pub(crate) world: &'a World,
    pub(crate) steps: &'a mut Vec<Step>,
}

impl Steps<'_> {
    /// Adds a step that makes a publisher another one.
    pub(crate) fn publisher(&mut self, name: &'static str, at: usize, next: Publisher) {
        self.add(name, at, |world| world.publishers[at] = next);
    }

    /// Adds a step that makes a collector another one.
    pub(crate) fn collector(&mut self, name: &'static str, at: usize, next: Collector) {
        self.add(name, at, |world| world.collectors[at] = next);
    }

    /// Adds a step that changes the world so. A step without a change is left out.
    pub(crate) fn add(&mut self, name: &'static str, at: usize, change: impl FnOnce(&mut World)) {
        let mut after = self.world.clone();
        change(&mut after);
        after.publishers.sort_unstable();
        after.collectors.sort_unstable();
        if after != *self.world {
            self.steps.push(Step { name, at, after });
        }
    }
}
