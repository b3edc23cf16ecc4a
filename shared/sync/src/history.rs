use model::{Current, PREVIOUS_MAX, Previous, PublicationId};

use crate::{SyncError, SyncOptions};

/// Returns true if the published state of the store descends from the origin's state. The origin has nothing to copy then.
///
/// # Errors
/// [`SyncError::Rollback`] if the origin's serial is lower and the store remembers no such publication: it was long ago, or the
/// catalog was removed and published anew. [`SyncError::Diverged`] if both remember a serial with different content. Neither, if
/// the options allow it.
pub(crate) fn is_behind(ours: &Current, theirs: &Current, options: &SyncOptions) -> Result<bool, SyncError> {
    let diverged = diverged_at(ours, theirs);
    if theirs.serial < ours.serial && !options.rollback {
        // Not an error: a CDN that lags behind another one serves an earlier state for some minutes.
        if diverged.is_none() && remembers(ours, theirs) {
            return Ok(true);
        }
        return Err(SyncError::Rollback {
            theirs: theirs.serial,
            ours: ours.serial,
        });
    }
    match diverged {
        Some(serial) if !options.diverged => Err(SyncError::Diverged { serial }),
        _ => Ok(false),
    }
}

/// True if the origin's state is one of the earlier publications of the store.
fn remembers(ours: &Current, theirs: &Current) -> bool {
    let (id, date) = (PublicationId::from(theirs), theirs.published_at);
    // A catalog that is published anew may have the same content under the same serial, but not the same date.
    let is_theirs = |previous: &Previous| PublicationId::from(previous) == id && previous.published_at == date;
    ours.previous.iter().any(is_theirs)
}

/// True if a pointer remembers at most [`PREVIOUS_MAX`] publications, newest first. Comparing two histories takes the
/// product of their lengths, so an origin must not choose them.
pub(crate) fn is_valid(current: &Current) -> bool {
    current.previous.len() <= PREVIOUS_MAX
        && current
            .publications()
            .is_sorted_by(|newer, older| newer.serial > older.serial)
}

/// Returns the newest serial that both remember with different content.
fn diverged_at(ours: &Current, theirs: &Current) -> Option<u64> {
    let theirs = theirs.publications();
    let differs = |own: &Previous| {
        let same_serial = theirs.iter().find(|other| other.serial == own.serial);
        same_serial.is_some_and(|other| other.content_hash != own.content_hash)
    };
    let differing = ours.publications().into_iter().filter(differs);
    differing.map(|own| own.serial).max()
}

#[cfg(test)]
mod tests {
    use testkit::{CurrentBuilder, snapshot};

    use super::*;

    /// Returns the pointer after publishing these contents one after the other, with serials from 1.
    fn current(contents: &[&str]) -> Current {
        let publish = |before: Option<Current>, content: &&str| {
            let line = format!("{{\"name\":\"{content}\",\"schema\":\"olm.package\"}}\n");
            let next = CurrentBuilder::new(&snapshot(&[(content, &line)]));
            Some(next.after(before.as_ref()).build())
        };
        contents.iter().fold(None, publish).unwrap()
    }

    /// Returns the answer without options, an error as its text.
    fn answer(ours: &Current, theirs: &Current) -> Result<bool, String> {
        is_behind(ours, theirs, &SyncOptions::default()).map_err(|error| error.to_string())
    }

    fn rollback(theirs: u64, ours: u64) -> Result<bool, String> {
        Err(SyncError::Rollback { theirs, ours }.to_string())
    }

    #[test]
    fn is_behind_of_same_or_later_state_is_false() {
        for (ours, theirs) in [
            (&["a"][..], &["a", "b"][..]),
            (&["a", "b"], &["a", "b"]),
            (&["a"], &["a", "b", "a"]),
        ] {
            assert_eq!(answer(&current(ours), &current(theirs)), Ok(false));
        }
    }

    #[test]
    fn is_behind_of_earlier_state_is_true_while_it_is_remembered() {
        assert_eq!(answer(&current(&["a", "b"]), &current(&["a"])), Ok(true));
        let contents: Vec<String> = (0..PREVIOUS_MAX + 2).map(|number| number.to_string()).collect();
        let contents: Vec<&str> = contents.iter().map(String::as_str).collect();
        let ours = current(&contents);
        assert_eq!(answer(&ours, &current(&contents[..2])), Ok(true));
        assert_eq!(answer(&ours, &current(&contents[..1])), rollback(1, ours.serial));
    }

    #[test]
    fn is_behind_refuses_a_state_that_was_published_anew() {
        let mut anew = current(&["a"]);
        anew.published_at += std::time::Duration::from_secs(1);
        assert_eq!(answer(&current(&["a", "b"]), &anew), rollback(1, 2));
        assert_eq!(answer(&current(&["a"]), &anew), Ok(false));
    }

    #[test]
    fn history_is_valid_up_to_its_maximum_and_newest_first() {
        let contents = vec!["a"; PREVIOUS_MAX + 1];
        let full = current(&contents);
        assert_eq!(full.previous.len(), PREVIOUS_MAX);
        assert!(is_valid(&full));
        let mut longer = full.clone();
        longer.serial += 1;
        longer.previous = [full.as_previous(), full.previous[PREVIOUS_MAX - 1..].to_vec()].concat();
        assert!(!is_valid(&longer));
        let mut swapped = full.clone();
        swapped.previous.swap(0, 1);
        assert!(!is_valid(&swapped));
    }

    #[test]
    fn is_behind_refuses_another_history() {
        let allow = |rollback, diverged| SyncOptions {
            rollback,
            diverged,
            ..SyncOptions::default()
        };
        let diverged = |ours: &[&str], theirs: &[&str]| {
            let (ours, theirs) = (current(ours), current(theirs));
            assert!(is_behind(&ours, &theirs, &allow(true, true)).is_ok());
            match is_behind(&ours, &theirs, &allow(true, false)) {
                Err(SyncError::Diverged { serial }) => serial,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(diverged(&["a"], &["b"]), 1);
        assert_eq!(diverged(&["a"], &["b", "c"]), 1);
        assert_eq!(diverged(&["x", "a"], &["x", "b", "c"]), 2);
        assert_eq!(diverged(&["a", "b"], &["x"]), 1);
        assert_eq!(answer(&current(&["a", "b"]), &current(&["x"])), rollback(1, 2));
    }
}
