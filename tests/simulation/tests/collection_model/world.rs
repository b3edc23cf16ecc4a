//! The state of the model and its steps.

/// `gc.json`. The counter is not kept: what a process has read is dropped when the document is written again.
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
        /// True if something else was condemned: only then a publisher may have to read `gc.json` again.
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
    /// It listed, and reads the pointers of the catalogs in `unread` (a bit set).
    FirstMark { unread: u8, unnamed: bool },
    /// It read the condemned list, and reads the pointers of the catalogs in `unread` (a bit set).
    SecondMark { unread: u8, unnamed: bool },
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

/// One step of one process, of the network, or of time. The numbers are positions in [`World`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// A tick passes.
    Tick,
    /// A state without the object is published in a catalog, or the catalog is removed.
    TakeOut(u8),
    /// A publisher reads `gc.json`.
    ReadGc(usize),
    /// A publisher reads its pointer.
    ReadPointer(usize),
    /// A publisher takes the object off the list.
    Spare(usize),
    /// A publisher puts or finds the object.
    Secure(usize),
    /// A publisher reads `gc.json` once more, because of another object that it had to spare.
    ReadAgain(usize),
    /// A publisher looks at the clock and sends its commit.
    SendCommit(usize),
    /// A commit lands.
    LandCommit(usize),
    /// A publisher is killed, or is deferred, or gives up. What it sent is lost.
    StopPublisher(usize),
    /// A collector reads `gc.json`.
    ReadState(usize),
    /// A collector lists.
    List(usize),
    /// A collector reads the pointer of a catalog.
    Mark(usize, u8),
    /// A collector swaps `gc.json` for the next state.
    Advance(usize),
    /// A collector is killed.
    StopCollector(usize),
    /// A collector sees that `deleting` is young, and sends a delete.
    SendDelete,
    /// A delete lands.
    LandDelete,
    /// A collector sees that `deleting` is old, and ends it.
    EndDeleting,
}
