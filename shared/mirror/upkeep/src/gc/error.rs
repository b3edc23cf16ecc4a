use store::{ReadError, StoreError};

use super::report::UnreadableState;

/// Failure of garbage collection. Nothing was condemned then that a catalog names.
#[derive(Debug, thiserror::Error)]
pub enum GcError {
    /// Pointers or published Snapshots cannot be read, so it is not known what they name. Any
    /// object may be one of theirs: an object does not tell its catalog, and catalogs share
    /// objects. So nothing can be condemned.
    #[error(
        "nothing is collected, because it is unknown which objects these need: {}. `verify --repair-from MIRROR NAME` fetches what is \
         damaged from a copy, `poll --force NAME` makes it again from the source, `rm NAME` removes a catalog that is not wanted",
        list(.0)
    )]
    Unreadable(Vec<UnreadableState>),
    /// A document of the store cannot be read.
    #[error("cannot read the state of garbage collection")]
    Read(#[from] ReadError),
    /// The store cannot be listed or written.
    #[error("cannot collect garbage")]
    Store(#[from] StoreError),
    /// The list of condemned objects cannot be compressed.
    #[error("cannot compress the list of condemned objects")]
    Compress(#[source] std::io::Error),
}

fn list(states: &[UnreadableState]) -> String {
    let mut texts = Vec::new();
    for state in states {
        texts.push(format!("{} ({})", state.catalog, state.error));
    }
    texts.join("; ")
}

impl GcError {
    /// Returns the pointers and Snapshots that have to be repaired.
    pub fn unreadable(&self) -> &[UnreadableState] {
        match self {
            Self::Unreadable(states) => states,
            _ => &[],
        }
    }
}
