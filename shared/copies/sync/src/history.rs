use model::{Current, PREVIOUS_MAX, PublicationId};

use crate::{SyncError, SyncOptions};

/// Returns true if the published state of the store descends from the origin's state. The origin
/// has nothing to copy then.
///
/// # Errors
/// [`SyncError::Rollback`] if the origin's serial is lower and the store remembers no such
/// publication: it was long ago, or the catalog was removed and published anew.
/// [`SyncError::Diverged`] if both remember a serial with different content. Neither, if the
/// options allow it.
pub(crate) fn is_behind(
    ours: &Current,
    theirs: &Current,
    options: &SyncOptions,
) -> Result<bool, SyncError> {
    if options.later && is_later(ours, theirs) {
        return Ok(false);
    }
    let diverged = diverged_at(ours, theirs);
    if theirs.serial < ours.serial && !options.rollback {
        // Not an error: a CDN that lags behind another one serves an earlier state for some
        // minutes.
        let id = PublicationId::from(theirs);
        // A catalog that is published anew may have the same content under the same serial, but not
        // the same date.
        let is_known = ours.previous.iter().any(|earlier| {
            PublicationId::from(earlier) == id && earlier.published_at == theirs.published_at
        });
        if diverged.is_none() && is_known {
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

/// Returns true if their state is one of the same source that was published after ours. A rollback
/// here does not count: what it left may be older than their state.
fn is_later(ours: &Current, theirs: &Current) -> bool {
    if source_of(ours) != source_of(theirs) {
        return false;
    }
    let mut publications = ours.publications();
    if ours.rolled_back.is_some() {
        publications.remove(0);
    }
    // Times are whole seconds, so two states may have the same one.
    publications.iter().all(|own| {
        own.published_at < theirs.published_at
            || (own.published_at == theirs.published_at && own.content_hash != theirs.content_hash)
    })
}

/// Returns the source without the hash of a composition or the delay of a ring, which change with
/// every edit.
fn source_of(current: &Current) -> &str {
    let reference = current.source.reference.as_str();
    if reference.starts_with("compose:") {
        return reference
            .rsplit_once('#')
            .map_or(reference, |(inputs, _)| inputs);
    }
    if reference.starts_with("ring:") {
        return reference.split('+').next().unwrap_or(reference);
    }
    reference
}

/// True if a pointer remembers at most [`PREVIOUS_MAX`] publications, newest first. Comparing two
/// histories takes the product of their lengths, so an origin must not choose them.
pub(crate) fn is_valid(current: &Current) -> bool {
    let publications = current.publications();
    current.previous.len() <= PREVIOUS_MAX
        && publications.is_sorted_by(|newer, older| newer.serial > older.serial)
}

/// Returns the newest serial that both remember with different content.
fn diverged_at(ours: &Current, theirs: &Current) -> Option<u64> {
    let theirs = theirs.publications();
    let mut newest = None;
    for own in ours.publications() {
        let same_serial = theirs.iter().find(|other| other.serial == own.serial);
        if same_serial.is_some_and(|other| other.content_hash != own.content_hash) {
            newest = newest.max(Some(own.serial));
        }
    }
    newest
}

#[cfg(test)]
mod tests {
    use testkit::{CurrentBuilder, snapshot};

    use super::*;

    /// Returns the pointer after publishing these contents one after the other, with serials from
    /// 1.
    fn current(contents: &[&str]) -> Current {
        let publish = |before: Option<Current>, content: &&str| {
            let line = format!("{{\"name\":\"{content}\",\"schema\":\"olm.package\"}}\n");
            let next = CurrentBuilder::new(&snapshot(&[(content, &line)]));
            Some(next.after(before.as_ref()).build())
        };
        contents.iter().fold(None, publish).unwrap()
    }

    fn answer(ours: &Current, theirs: &Current, rollback: bool, diverged: bool) -> String {
        let options = SyncOptions {
            rollback,
            diverged,
            ..SyncOptions::default()
        };
        match is_behind(ours, theirs, &options) {
            Ok(is_behind) => is_behind.to_string(),
            Err(SyncError::Rollback { theirs, ours }) => {
                format!("rollback from {ours} to {theirs}")
            }
            Err(SyncError::Diverged { serial }) => format!("diverged at {serial}"),
            Err(error) => panic!("{error}"),
        }
    }

    /// Contents of our history and of theirs, and the answers without options and with `rollback`.
    const HISTORIES: &str = "\
a / a b => false, false
a b / a b => false, false
a / a b a => false, false
a b / a => true, false
a / b => diverged at 1, diverged at 1
a / b c => diverged at 1, diverged at 1
x a / x b c => diverged at 2, diverged at 2
a b / x => rollback from 2 to 1, diverged at 1";

    #[test]
    fn is_behind_of_two_histories_needs_options_for_what_does_not_descend() {
        for row in HISTORIES.lines() {
            let (contents, expected) = row.split_once(" => ").unwrap();
            let (ours, theirs) = contents.split_once(" / ").unwrap();
            let [ours, theirs] =
                [ours, theirs].map(|contents| current(&Vec::from_iter(contents.split(' '))));
            let answers = [false, true].map(|rollback| answer(&ours, &theirs, rollback, false));
            assert_eq!(answers.join(", "), expected, "{row}");
            assert_eq!(answer(&ours, &theirs, true, true), "false", "{row}");
        }
    }

    #[test]
    fn is_behind_knows_the_states_that_are_remembered() {
        let contents: Vec<String> = (0..PREVIOUS_MAX + 2)
            .map(|number| number.to_string())
            .collect();
        let contents: Vec<&str> = contents.iter().map(String::as_str).collect();
        let ours = current(&contents);
        let [first, second] =
            [1, 2].map(|count| answer(&ours, &current(&contents[..count]), false, false));
        assert_eq!(first, format!("rollback from {} to 1", ours.serial));
        assert_eq!(second, "true");
        let mut anew = current(&["a"]);
        anew.published_at += std::time::Duration::from_secs(1);
        let [later, same] =
            [&["a", "b"][..], &["a"]].map(|ours| answer(&current(ours), &anew, false, false));
        assert_eq!((&*later, &*same), ("rollback from 2 to 1", "false"));
    }

    #[test]
    fn history_is_valid_up_to_its_maximum_and_newest_first() {
        let contents = vec!["a"; PREVIOUS_MAX + 1];
        let full = current(&contents);
        assert_eq!(full.previous.len(), PREVIOUS_MAX);
        assert!(is_valid(&full));
        let mut longer = full.clone();
        longer.serial += 1;
        longer.previous = [
            full.as_previous(),
            full.previous[PREVIOUS_MAX - 1..].to_vec(),
        ]
        .concat();
        assert!(!is_valid(&longer));
        let mut swapped = full.clone();
        swapped.previous.swap(0, 1);
        assert!(!is_valid(&swapped));
    }

    #[test]
    fn later_state_of_the_same_source_is_taken_whatever_its_history() {
        use std::time::{Duration, SystemTime};

        use model::RolledBack;

        let at = |seconds: u64, current: Current| Current {
            published_at: SystemTime::UNIX_EPOCH + Duration::from_secs(seconds),
            ..current
        };
        let options = SyncOptions {
            later: true,
            ..SyncOptions::default()
        };
        let is_taken = |ours: &Current, theirs: &Current| {
            is_behind(ours, theirs, &options).is_ok_and(|is_behind| !is_behind)
        };
        let ours = at(20, current(&["a"]));
        for (seconds, content, expected) in [
            (30, "b", true),
            (20, "b", true),
            (20, "a", true),
            (10, "b", false),
        ] {
            let theirs = at(seconds, current(&[content]));
            assert_eq!(is_taken(&ours, &theirs), expected, "{content} at {seconds}");
        }
        let mut other = at(30, current(&["b"]));
        other.source.reference = "compose:elsewhere#00".to_owned();
        assert!(!is_taken(&ours, &other));
        // After a rollback the next delivery counts, and not the one that was rolled back.
        let mut rolled_back = at(40, current(&["a", "b", "a"]));
        rolled_back.rolled_back = Some(RolledBack { verified: None });
        for (previous, seconds) in rolled_back.previous.iter_mut().zip([20, 10]) {
            previous.published_at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        }
        assert!(is_taken(&rolled_back, &at(30, current(&["c"]))));
        let before = at(20, current(&["a", "b"]));
        assert!(!is_taken(&rolled_back, &before));
    }
}
