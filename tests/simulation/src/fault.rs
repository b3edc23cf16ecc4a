use std::fmt;

use strum::VariantArray as _;

use crate::chance::Chance;

/// Kind of an operation on a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Start of a read.
    Get,
    /// Next chunk of a body.
    Read,
    /// Request for the state of an object, or for the time of the store.
    Head,
    /// Write of an object at once.
    Put,
    /// Start of an object that is written in pieces.
    Stage,
    /// Next piece of such an object.
    Write,
    /// End of such an object: it gets its key.
    Commit,
    /// Wait until all is durable.
    Flush,
    /// Removal of an object.
    Delete,
    /// Listing of the objects under a prefix.
    List,
}

/// One of the two stores of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Store of the polls, from which is copied.
    Origin,
    /// Store of the copies.
    Copy,
}

impl Side {
    /// Puts what belongs to this store first.
    pub(crate) fn first<T>(self, [origin, copy]: [T; 2]) -> [T; 2] {
        match self {
            Self::Origin => [origin, copy],
            Self::Copy => [copy, origin],
        }
    }
}

/// One operation of a run. Its name has no time and no order, so it is the same in every run of a
/// scenario, whatever the threads do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operation {
    /// Number of the actor that asks.
    pub actor: u8,
    /// Store that is asked.
    pub side: Side,
    /// Kind of the operation.
    pub kind: Kind,
    /// Key, prefix, or name of a staged object.
    pub subject: String,
    /// Number of equal operations before this one.
    pub nth: u32,
}

/// Fault of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::VariantArray)]
pub enum Fault {
    /// The operation is not done, and the caller gets an error.
    Fails,
    /// The operation is done, and the caller gets an error.
    Lost,
    /// The answer is lost, and the client repeats the request by itself, as the SDK of S3 does. A
    /// repeated write that meets its own bytes counts as written.
    Repeated,
    /// The caller gets an error, and the operation is done up to 25 minutes later.
    Late,
    /// The operation takes up to 100 seconds. A caller that gives up does not stop it.
    Slow,
    /// The caller is suspended for up to five hours, and then the operation is done.
    Pauses,
    /// The operation is done, and done again later, as by a request that was repeated while it was
    /// held up.
    Echo,
    /// The caller is killed before the operation is done.
    KillsBefore,
    /// The caller is killed after the operation was done.
    KillsAfter,
    /// The caller is killed, and the operation is done later.
    KillsAndLate,
}

impl Fault {
    /// Returns the faults that can happen to an operation.
    pub fn suiting(operation: &Operation) -> Vec<Self> {
        let all = Self::VARIANTS.iter().copied();
        all.filter(|fault| fault.suits(operation.kind, &operation.subject))
            .collect()
    }

    /// True if the fault can happen to an operation.
    ///
    /// A read has no effect that could come late. No store repeats a delete, and the SDK may not
    /// either. The protocol bounds the pause between the check of the clock and the sending of a
    /// commit or a delete, so these do not pause.
    fn suits(self, kind: Kind, subject: &str) -> bool {
        match kind {
            Kind::Put | Kind::Commit => self != Self::Pauses || !subject.ends_with("/current.json"),
            Kind::Delete => !matches!(self, Self::Echo | Self::Repeated | Self::Pauses),
            Kind::Flush | Kind::Get | Kind::Head | Kind::List => {
                matches!(
                    self,
                    Self::Fails | Self::Slow | Self::Pauses | Self::KillsBefore
                )
            }
            Kind::Read | Kind::Write | Kind::Stage => {
                matches!(self, Self::Fails | Self::KillsBefore)
            }
        }
    }
}

/// Choice of the operations that go wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Faults {
    /// No faults at all.
    None,
    /// Faults by chance.
    Random {
        /// Average number of operations for one fault; 0 for no faults.
        one_in: u64,
    },
    /// Exactly this fault of this operation.
    Single(Operation, Fault),
}

impl Faults {
    pub(crate) fn at(&self, chance: Chance, operation: &Operation) -> Option<Fault> {
        match self {
            Self::None => None,
            Self::Random { one_in } => {
                let chance = chance.of(("fault", operation));
                chance
                    .one_in(*one_in)
                    .then(|| chance.of("kind").pick(&Fault::suiting(operation)))
            }
            Self::Single(which, fault) => (which == operation).then_some(*fault),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} {:?} {} #{}",
            self.side, self.kind, self.subject, self.nth
        )
    }
}
