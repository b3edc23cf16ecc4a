use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_with::As;

use crate::{Document, Key, Kind, ObjectRef, StoredDocument, current::Rfc3339};

/// `gc.json`: the state of garbage collection. Each state follows the one before after at least two
/// hours.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GcState {
    /// Grows by one with every write, so that no two states have the same bytes: a compare-and-swap
    /// whose answer was lost can be recognised, and an old version never comes back.
    pub counter: u64,
    /// Start of the phase, by the store's clock. `None` directly after a change of phase: then the
    /// object's own modification time counts. A spare writes it, because its write renews that
    /// time.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "As::<Option<Rfc3339>>"
    )]
    pub since: Option<SystemTime>,
    /// Phase, with the list that it works on.
    #[serde(flatten)]
    pub phase: GcPhase,
}

/// Phase of garbage collection. They follow each other in this order, then again from the first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "phase")]
pub enum GcPhase {
    /// Nothing is condemned or being deleted.
    #[default]
    None,
    /// The keys on a list will be deleted, unless a publication spares them or the second marking
    /// finds them named.
    Condemned {
        /// List of the condemned keys, a [`Garbage`].
        garbage: ObjectRef,
        /// Keys of the list that publications need.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        spared: BTreeSet<ObjectKey>,
    },
    /// The keys on a list are being deleted.
    Deleting {
        /// List of the keys to delete, a [`Garbage`].
        garbage: ObjectRef,
    },
}

/// A garbage collector's list of condemned objects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Garbage {
    /// The condemned keys, at most [`Garbage::MAX_KEYS`].
    pub keys: BTreeSet<ObjectKey>,
}

/// The key of an immutable object, written as its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Kind of the object, which decides folder and extension.
    pub kind: Kind,
    /// The sha256 of its stored bytes.
    pub sha256: crate::Sha256,
}

impl Document for GcState {
    const NAME: &'static str = "gc.json";
}

impl Document for Garbage {
    const NAME: &'static str = "garbage list";
    const INDENTED: bool = false;
}

impl StoredDocument for Garbage {
    const KIND: Kind = Kind::Garbage;
    // 100,000 keys of at most 95 bytes and their quotes.
    const MAX_BYTES: u64 = 16 << 20;
}

impl Garbage {
    /// Maximum number of keys on one list. The rest is condemned in the next round.
    pub const MAX_KEYS: usize = 100_000;
}

impl GcState {
    /// Minimum time between two states. A constant of the format: publishers rely on it. It is the
    /// hour that a publication may take, and as much again for slow commits and wrong clocks.
    pub const AGE_MIN: Duration = Duration::from_secs(2 * 3600);

    /// Returns the list that is condemned or being deleted.
    pub const fn garbage(&self) -> Option<&ObjectRef> {
        match &self.phase {
            GcPhase::None => None,
            GcPhase::Condemned { garbage, .. } | GcPhase::Deleting { garbage } => Some(garbage),
        }
    }

    /// Returns the state that follows with another phase.
    pub const fn with_phase(&self, phase: GcPhase) -> Self {
        Self {
            counter: self.counter + 1,
            since: None,
            phase,
        }
    }
}

impl ObjectKey {
    /// Returns this key among those of all documents and objects.
    pub const fn key(&self) -> Key {
        Key::Object(self.kind, self.sha256)
    }

    /// Returns the object's key; `None` for the key of a mutable document.
    pub const fn of(key: &Key) -> Option<Self> {
        match key {
            Key::Object(kind, sha256) => Some(Self {
                kind: *kind,
                sha256: *sha256,
            }),
            _ => None,
        }
    }
}

impl Serialize for ObjectKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.key())
    }
}

impl<'de> Deserialize<'de> for ObjectKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let path = String::deserialize(deserializer)?;
        let key = Key::parse(&path).as_ref().and_then(Self::of);
        key.ok_or_else(|| {
            D::Error::custom(format_args!(
                "{path:?} is not the key of an immutable object"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_phase_counts_and_forgets_the_time() {
        let before = GcState {
            since: Some(SystemTime::UNIX_EPOCH),
            ..GcState::default()
        };
        let next = before.with_phase(GcPhase::None);
        assert_eq!((next.counter, next.since), (1, None));
    }
}
