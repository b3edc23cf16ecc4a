use model::{Current, PREVIOUS_MAX, Previous, PublicationId, Sha256};

/// Relation of an origin's state to the published state of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    /// The origin's state is the same or a later one, or nothing is published yet.
    Forward,
    /// The published state descends from the origin's state.
    Ancestor,
    /// The origin's serial is lower, and the store remembers no such publication: it was long ago, or the catalog was removed and
    /// published anew.
    Older,
    /// Both remember this serial with different content. They are not copies of one catalog.
    Diverged {
        /// Newest serial with different content on both sides.
        serial: u64,
        /// True if the origin's serial is also lower.
        older: bool,
    },
}

impl Relation {
    /// Compares the published state of the store with that of the origin.
    pub(crate) fn of(ours: Option<&Current>, theirs: &Current) -> Self {
        let Some(ours) = ours else { return Self::Forward };
        let older = theirs.serial < ours.serial;
        if let Some(serial) = diverged_at(ours, theirs) {
            return Self::Diverged { serial, older };
        }
        if !older {
            return Self::Forward;
        }
        let (theirs, date) = (PublicationId::from(theirs), theirs.published_at);
        // A catalog that is published anew may have the same content under the same serial, but not the same date.
        let is_theirs = |previous: &Previous| PublicationId::from(previous) == theirs && previous.published_at == date;
        if ours.previous.iter().any(is_theirs) {
            Self::Ancestor
        } else {
            Self::Older
        }
    }
}

/// True if a pointer remembers at most [`PREVIOUS_MAX`] publications, newest first. Comparing two histories takes the
/// product of their lengths, so an origin must not choose them.
pub(crate) fn is_valid(current: &Current) -> bool {
    current.previous.len() <= PREVIOUS_MAX
        && publications(current)
            .map(|(serial, _)| serial)
            .is_sorted_by(|newer, older| newer > older)
}

/// Returns the newest serial that both remember with different content.
fn diverged_at(ours: &Current, theirs: &Current) -> Option<u64> {
    let differs = |(serial, hash): &(u64, Sha256)| {
        let same_serial = publications(theirs).find(|(other, _)| other == serial);
        same_serial.is_some_and(|(_, other)| other != *hash)
    };
    publications(ours).filter(differs).map(|(serial, _)| serial).max()
}

fn publications(current: &Current) -> impl Iterator<Item = (u64, Sha256)> {
    let previous = current.previous.iter();
    let previous = previous.map(|previous| (previous.serial, previous.content_hash));
    std::iter::once((current.serial, current.content_hash)).chain(previous)
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

    fn relation(ours: &[&str], theirs: &[&str]) -> Relation {
        Relation::of(Some(&current(ours)), &current(theirs))
    }

    #[test]
    fn relation_of_same_or_later_state_is_forward() {
        assert_eq!(relation(&["a"], &["a", "b"]), Relation::Forward);
        assert_eq!(relation(&["a", "b"], &["a", "b"]), Relation::Forward);
        assert_eq!(relation(&["a"], &["a", "b", "a"]), Relation::Forward);
        assert_eq!(Relation::of(None, &current(&["a"])), Relation::Forward);
    }

    #[test]
    fn relation_of_earlier_state_is_ancestor_while_it_is_remembered() {
        assert_eq!(relation(&["a", "b"], &["a"]), Relation::Ancestor);
        let contents: Vec<String> = (0..PREVIOUS_MAX + 2).map(|number| number.to_string()).collect();
        let contents: Vec<&str> = contents.iter().map(String::as_str).collect();
        assert_eq!(relation(&contents, &contents[..2]), Relation::Ancestor);
        assert_eq!(relation(&contents, &contents[..1]), Relation::Older);
    }

    #[test]
    fn relation_of_a_state_that_was_published_anew_is_older() {
        let mut anew = current(&["a"]);
        anew.published_at += std::time::Duration::from_secs(1);
        assert_eq!(Relation::of(Some(&current(&["a", "b"])), &anew), Relation::Older);
        assert_eq!(Relation::of(Some(&current(&["a"])), &anew), Relation::Forward);
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
    fn relation_of_other_history_is_diverged() {
        let diverged = |serial, older| Relation::Diverged { serial, older };
        assert_eq!(relation(&["a"], &["b"]), diverged(1, false));
        assert_eq!(relation(&["a"], &["b", "c"]), diverged(1, false));
        assert_eq!(relation(&["x", "a"], &["x", "b", "c"]), diverged(2, false));
        assert_eq!(relation(&["a", "b"], &["x"]), diverged(1, true));
    }
}
