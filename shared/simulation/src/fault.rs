use std::fmt;

use crate::chance::Chance;

/// What is being asked of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Starting to read an object.
    Get,
    /// One more chunk of an object.
    Read,
    /// Looking at an object.
    Head,
    /// Writing an object at once.
    Put,
    /// Starting to write an object.
    Stage,
    /// One more chunk.
    Write,
    /// Giving an object that was written piece by piece its key.
    Commit,
    /// Making everything durable.
    Flush,
    /// Removing an object.
    Delete,
    /// Listing objects.
    List,
}

/// Which of the two stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// What is polled, and copied from.
    Origin,
    /// What is copied to.
    Copy,
}

/// One operation of a run. Named by what it is rather than by when it happens, so that it is the same one in every run
/// of the same scenario, whatever the threads do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operation {
    /// Who asks.
    pub actor: u8,
    /// Whom.
    pub side: Side,
    /// For what.
    pub kind: Kind,
    /// Of which object, prefix or staged object.
    pub subject: String,
    /// How often the same was asked before.
    pub nth: u32,
}

/// What goes wrong with an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// It is not done, and the caller is told so.
    Fails,
    /// It is done, and the caller is told that it failed.
    Lost,
    /// It is done twice, as by a client that repeats a request whose answer was lost; the second answer counts.
    Twice,
    /// The caller is told that it failed, and it is done a while later.
    Late,
    /// It takes very long.
    Slow,
    /// It is done, and done again a while later, as by a request that was repeated while it was held up.
    Echo,
    /// The caller is killed before it is done.
    KillsBefore,
    /// The caller is killed after it was done.
    KillsAfter,
    /// The caller is killed, and it is done a while later.
    KillsAndLate,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Fails,
        Self::Lost,
        Self::Twice,
        Self::Late,
        Self::Slow,
        Self::Echo,
        Self::KillsBefore,
        Self::KillsAfter,
        Self::KillsAndLate,
    ];

    /// Whether it can happen to operations of this kind. What reads has no effect that could come late, and what only
    /// the caller sees cannot happen without it. A removal that was acknowledged does not happen again: no store that
    /// is worth the name repeats one, and nothing could be promised then.
    pub const fn suits(self, kind: Kind) -> bool {
        match kind {
            Kind::Put | Kind::Commit => true,
            Kind::Delete => !matches!(self, Self::Echo),
            Kind::Flush | Kind::Get | Kind::Head | Kind::List => {
                matches!(self, Self::Fails | Self::Slow | Self::KillsBefore)
            }
            Kind::Read | Kind::Write | Kind::Stage => matches!(self, Self::Fails | Self::KillsBefore),
        }
    }
}

/// Which operations go wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Faults {
    /// None.
    None,
    /// One in so many, by chance.
    Random {
        /// How many; none for zero.
        one_in: u64,
    },
    /// Exactly this one.
    Single(Operation, Fault),
}

impl Faults {
    pub(crate) fn at(&self, chance: Chance, operation: &Operation) -> Option<Fault> {
        match self {
            Self::None => None,
            Self::Random { one_in } => {
                let chance = chance.of(("fault", operation));
                let suiting: Vec<Fault> = Fault::ALL
                    .into_iter()
                    .filter(|fault| fault.suits(operation.kind))
                    .collect();
                chance.one_in(*one_in).then(|| chance.of("kind").pick(&suiting))
            }
            Self::Single(which, fault) => (which == operation).then_some(*fault),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            actor,
            side,
            kind,
            subject,
            nth,
        } = self;
        write!(f, "{actor} {side:?} {kind:?} {subject} #{nth}")
    }
}
