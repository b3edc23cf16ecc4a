use layout::Current;

/// What a copy may do beyond going forward.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allow {
    /// Take an older serial than the one that is there.
    pub rollback: bool,
    /// Take a state that does not descend from the one that is there.
    pub diverged: bool,
}

/// Why an origin's state must not replace what is there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// An older one.
    #[error("the origin is at serial {theirs} and the store at {ours}: going back has to be allowed")]
    Rollback {
        /// The origin's serial.
        theirs: u64,
        /// The store's.
        ours: u64,
    },
    /// Another history.
    #[error(
        "serial {serial} is one content here and another at the origin: they are not copies of the same catalog; \
         replacing a diverged state has to be allowed"
    )]
    Diverged {
        /// The serial that both have.
        serial: u64,
    },
}

/// Whether `theirs` may replace `ours`.
pub(crate) fn judge(ours: Option<&Current>, theirs: &Current, allow: Allow) -> Result<(), Refusal> {
    let Some(ours) = ours else { return Ok(()) };
    if theirs.serial < ours.serial && !allow.rollback {
        return Err(Refusal::Rollback {
            theirs: theirs.serial,
            ours: ours.serial,
        });
    }
    match fork(ours, theirs) {
        Some(serial) if !allow.diverged => Err(Refusal::Diverged { serial }),
        _ => Ok(()),
    }
}

/// The newest serial that both remember with different contents.
fn fork(ours: &Current, theirs: &Current) -> Option<u64> {
    let common = history(ours).filter(|(serial, hash)| {
        let same = history(theirs).find(|(other, _)| other == serial);
        same.is_some_and(|(_, other)| other != *hash)
    });
    common.map(|(serial, _)| serial).max()
}

fn history(current: &Current) -> impl Iterator<Item = (u64, layout::Sha256)> {
    let previous = current.previous.iter();
    let previous = previous.map(|previous| (previous.serial, previous.content_hash));
    std::iter::once((current.serial, current.content_hash)).chain(previous)
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use layout::{Availability, Previous, Sha256, SnapshotRef, SourceRef};

    use super::*;

    /// The last text is what is published; serials count from 1.
    fn current(history: &[&str]) -> Current {
        let hash = |text: &str| Sha256::of(text.as_bytes());
        let (last, earlier) = history.split_last().unwrap();
        let previous = earlier.iter().zip(1..).map(|(text, serial)| Previous {
            serial,
            content_hash: hash(text),
            published_at: UNIX_EPOCH,
            snapshot: None,
            verified: None,
        });
        let mut previous: Vec<_> = previous.collect();
        previous.reverse();
        Current {
            serial: history.len() as u64,
            content_hash: hash(last),
            snapshot: SnapshotRef::new(&"a".parse().unwrap(), hash(last), b""),
            source: SourceRef {
                reference: String::new(),
                digest: String::new(),
                verified: None,
            },
            render_version: 1,
            published_at: UNIX_EPOCH,
            brought_back: None,
            availability: Availability::Available,
            signatures: Vec::new(),
            previous,
        }
    }

    #[test]
    fn forward_is_fine_and_so_is_a_rebuilt_image() {
        for (ours, theirs) in [
            (&["a"][..], &["a", "b"][..]),
            (&["a", "b"], &["a", "b"]),
            (&["a"], &["a", "b", "a"]),
        ] {
            assert_eq!(judge(Some(&current(ours)), &current(theirs), Allow::default()), Ok(()));
        }
        assert_eq!(judge(None, &current(&["a"]), Allow::default()), Ok(()));
    }

    #[test]
    fn back_and_aside_have_to_be_allowed() {
        let (rollback, diverged) = (Refusal::Rollback { theirs: 1, ours: 2 }, |serial| Refusal::Diverged {
            serial,
        });
        for (ours, theirs, refusal) in [
            (&["a", "b"][..], &["a"][..], rollback),
            (&["a"], &["b"], diverged(1)),
            (&["a"], &["b", "c"], diverged(1)),
            (&["x", "a"], &["x", "b", "c"], diverged(2)),
        ] {
            let allowed = |allow| judge(Some(&current(ours)), &current(theirs), allow);
            assert_eq!(allowed(Allow::default()), Err(refusal.clone()));
            let allow = Allow {
                rollback: matches!(refusal, Refusal::Rollback { .. }),
                diverged: matches!(refusal, Refusal::Diverged { .. }),
            };
            assert_eq!(allowed(allow), Ok(()));
        }
    }

    #[test]
    fn to_allow_one_is_not_to_allow_the_other() {
        let (ours, theirs) = (current(&["a", "b"]), current(&["x"]));
        let judged = |rollback, diverged| judge(Some(&ours), &theirs, Allow { rollback, diverged });
        assert_eq!(judged(true, false), Err(Refusal::Diverged { serial: 1 }));
        assert_eq!(judged(false, true), Err(Refusal::Rollback { theirs: 1, ours: 2 }));
        assert_eq!(judged(true, true), Ok(()));
    }
}
