use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::{CatalogName, Current, ObjectRef, Previous, Ring, Sha256};

/// Number of parts of the delay of which a ring keeps one state each.
const PARTS: u32 = 16;

/// Maximum number of states that wait. Sixteen whole parts lie in a delay; it begins and ends within
/// a part, and the newest state is the one that the source keeps itself.
const WAITING_MAX: usize = PARTS as usize + 1;

/// Delay of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingRule {
    /// Age that a state must have. `None` only for a ring that moves by hand: it keeps the newest
    /// states.
    pub after: Option<Duration>,
    /// Moves by [`Followed::promote`] only.
    pub is_manual: bool,
}

/// A ring and the catalog that it follows, as they are now.
#[derive(Debug)]
pub struct Followed<'a> {
    /// Name of the catalog that is followed.
    pub of: &'a CatalogName,
    /// Published state of that catalog, with its history.
    pub source: &'a Current,
    /// Place of the ring so far; `None` for a new one.
    pub before: Option<&'a Ring>,
    /// Delay.
    pub rule: RingRule,
    /// Time of the store.
    pub now: SystemTime,
    /// Snapshots that are not stored any more.
    pub lost: &'a BTreeSet<ObjectRef>,
}

/// State to which a person moves a ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Promotion {
    /// Newest state of the source.
    Newest,
    /// State whose content hash begins with these digits.
    State(String),
}

/// Reason for which a ring cannot be moved to a state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromotionError {
    /// No state that is known has such a hash.
    #[error(
        "no stored state of {of} has a content hash that begins with {digits:?}; there are {}",
        shown(.known)
    )]
    Unknown {
        /// Name of the catalog that is followed.
        of: CatalogName,
        /// Digits that were given.
        digits: String,
        /// Content hashes of the states that can be taken, oldest first.
        known: Vec<String>,
    },
    /// Several states have such a hash.
    #[error(
        "{count} states of {of} have content hashes that begin with {digits:?}: write more digits"
    )]
    Ambiguous {
        /// Name of the catalog that is followed.
        of: CatalogName,
        /// Digits that were given.
        digits: String,
        /// Number of states.
        count: usize,
    },
}

fn shown(hashes: &[String]) -> String {
    if hashes.is_empty() {
        return "none that are newer than the one of the ring".to_owned();
    }
    hashes.join(", ")
}

/// Knowledge of the ring about a publication of its source.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Knowledge {
    /// It is kept since an earlier poll.
    Kept,
    /// It was published after all that is kept.
    New,
    /// It is older than something that is kept: an earlier poll has not kept it.
    Dropped,
}

/// Publication of the source.
struct Seen {
    state: Previous,
    /// True if the ring may take it by itself.
    is_candidate: bool,
}

impl Followed<'_> {
    /// Returns the place of the ring by its rule: the newest state that is old enough and that the
    /// source did not take back before it was. The ring stays where it is if there is none.
    pub fn follow(&self) -> Ring {
        let candidates = self.candidates();
        let at = self.at();
        if self.rule.is_manual {
            return self.ring(at, candidates);
        }
        let ripe = candidates
            .iter()
            .rfind(|state| self.is_old(state, self.now));
        let next = ripe.cloned().or(at);
        self.ring(next, candidates)
    }

    /// Returns the place of the ring after a person has moved it to a state, whatever its age. A
    /// ring that is there already stays.
    ///
    /// # Errors
    /// A state that is not known, not stored any more, or older than the one of the ring.
    pub fn promote(&self, promotion: &Promotion) -> Result<Ring, PromotionError> {
        let candidates = self.candidates();
        let at = self.at();
        let digits = match promotion {
            Promotion::Newest => {
                let next = candidates.last().cloned().or(at);
                return Ok(self.moved(next, candidates));
            }
            Promotion::State(digits) => digits,
        };
        if let Some(at) = &at
            && at.content_hash.to_string().starts_with(digits)
        {
            return Ok(self.ring(Some(at.clone()), candidates));
        }
        let by_hash = self.by_hash();
        let mut found = by_hash.values().filter(|state| {
            let hash = state.content_hash.to_string();
            hash.starts_with(digits)
        });
        let of = self.of.clone();
        let digits = digits.clone();
        match (found.next(), found.count()) {
            (Some(state), 0) => Ok(self.moved(Some(state.clone()), candidates)),
            (Some(_), more) => Err(PromotionError::Ambiguous {
                of,
                digits,
                count: more + 1,
            }),
            (None, _) => Err(PromotionError::Unknown {
                of,
                digits,
                known: by_hash.keys().map(ToString::to_string).collect(),
            }),
        }
    }

    /// Returns the ring at a state that a person has chosen. What the source published since then
    /// waits, also if it took that state back.
    fn moved(&self, at: Option<Previous>, candidates: Vec<Previous>) -> Ring {
        let moved = self.ring(at, candidates);
        let again = Followed {
            before: Some(&moved),
            ..*self
        };
        let waiting = again.candidates();
        again.ring(again.at(), waiting)
    }

    /// Returns the place of the ring so far, if it followed this catalog.
    fn before(&self) -> Option<&Ring> {
        self.before.filter(|before| before.of == *self.of)
    }

    fn at(&self) -> Option<Previous> {
        self.before()?.at.clone()
    }

    /// Returns all states that are known, oldest first, without those of another history.
    fn seen(&self) -> Vec<Seen> {
        let publications = self.source.publications();
        let mut by_time = BTreeMap::new();
        let known = self.before().into_iter().flat_map(Ring::states);
        for state in known.filter(|state| fits(state, &publications)) {
            by_time.insert(state.published_at, (state.clone(), Knowledge::Kept));
        }
        let last = by_time.last_key_value().map(|(time, _)| *time);
        for state in publications {
            let is_new = last.is_none_or(|last| state.published_at > last);
            let knowledge = if is_new {
                Knowledge::New
            } else {
                Knowledge::Dropped
            };
            by_time
                .entry(state.published_at)
                .or_insert((state, knowledge));
        }
        let mut seen: Vec<Seen> = Vec::new();
        for (state, knowledge) in by_time.into_values() {
            self.add(&mut seen, state, knowledge);
        }
        seen
    }

    /// Adds a later state. If it has the content of an earlier one, the source took back what came
    /// between.
    fn add(&self, seen: &mut Vec<Seen>, state: Previous, knowledge: Knowledge) {
        let same = |earlier: &Seen| earlier.state.content_hash == state.content_hash;
        let earlier = seen.iter().rposition(same);
        let is_rolled_back =
            state.serial == self.source.serial && self.source.rolled_back.is_some();
        let first = match earlier {
            Some(earlier) => earlier + 1,
            // The history does not go back to the state to which the source went back.
            None if is_rolled_back => 0,
            None => seen.len(),
        };
        let mut between = seen.split_off(first);
        between.retain(|between| {
            // An earlier poll, with more of the history, has judged what it kept.
            let is_judged = knowledge != Knowledge::New && between.is_candidate;
            is_judged || self.is_settled(&between.state, state.published_at)
        });
        seen.extend(between);
        let is_candidate = knowledge != Knowledge::Dropped;
        if let Some(earlier) = earlier
            && seen.len() == earlier + 1
            && knowledge != Knowledge::Kept
        {
            // The ring takes nothing that came between, so the content was there all the time.
            seen[earlier].is_candidate |= is_candidate;
            return;
        }
        seen.push(Seen {
            state,
            is_candidate,
        });
    }

    /// Returns true if the source could not take back a state any more at this time: it was old
    /// enough, or a person had moved the ring to it.
    fn is_settled(&self, state: &Previous, then: SystemTime) -> bool {
        let at = self.before().and_then(|before| before.at.as_ref());
        let is_at = at.is_some_and(|at| at.published_at == state.published_at);
        is_at || self.is_old(state, then)
    }

    /// Returns the states that the ring may take by itself, oldest first.
    fn candidates(&self) -> Vec<Previous> {
        let seen = self.seen().into_iter();
        let candidates = seen.filter(|seen| seen.is_candidate && self.is_takeable(&seen.state));
        candidates.map(|seen| seen.state).collect()
    }

    /// Returns the states to which a person may move the ring: also those that the source took
    /// back.
    fn by_hash(&self) -> BTreeMap<Sha256, Previous> {
        let waiting = self.before().into_iter().flat_map(Ring::states).cloned();
        let all = self.source.publications().into_iter().chain(waiting);
        let takeable = all.filter(|state| self.is_takeable(state));
        takeable.map(|state| (state.content_hash, state)).collect()
    }

    /// Returns true for a state that is newer than that of the ring, and stored.
    fn is_takeable(&self, state: &Previous) -> bool {
        let at = self.before().and_then(|before| before.at.as_ref());
        let is_newer = at.is_none_or(|at| state.published_at > at.published_at);
        is_newer && !self.lost.contains(&state.snapshot)
    }

    /// Returns true if a state is old enough at this time.
    fn is_old(&self, state: &Previous, now: SystemTime) -> bool {
        // A state of the future is not old.
        let age = now.duration_since(state.published_at).ok();
        self.rule
            .after
            .is_some_and(|after| age.is_some_and(|age| age >= after))
    }

    /// Returns the ring at a state, with what is newer.
    fn ring(&self, at: Option<Previous>, candidates: Vec<Previous>) -> Ring {
        let mut waiting = candidates;
        if let Some(at) = &at {
            waiting.retain(|state| state.published_at > at.published_at);
        }
        Ring {
            of: self.of.clone(),
            after_seconds: match self.rule.is_manual {
                true => None,
                false => self.rule.after.map(|after| after.as_secs()),
            },
            at,
            waiting: self.thinned(waiting),
            is_placeholder: false,
        }
    }

    /// Keeps the newest state of each part of the delay.
    fn thinned(&self, states: Vec<Previous>) -> Vec<Previous> {
        let part = self
            .rule
            .after
            .map(|after| after.as_nanos().div_ceil(PARTS.into()));
        let part_of = |state: &Previous| {
            let since = state.published_at.duration_since(UNIX_EPOCH);
            Some(since.unwrap_or_default().as_nanos() / part?)
        };
        let mut kept: Vec<Previous> = Vec::new();
        for state in states {
            let part = part_of(&state);
            kept.pop_if(|last| part.is_some() && part_of(last) == part);
            kept.push(state);
        }
        let more = kept.len().saturating_sub(WAITING_MAX);
        kept.drain(..more);
        kept
    }
}

/// Returns true if a state can be one of the history to which these publications belong: serials
/// and times grow together, and what the history remembers it has.
fn fits(state: &Previous, publications: &[Previous]) -> bool {
    let same = |other: &Previous| {
        other.serial == state.serial
            && other.content_hash == state.content_hash
            && other.published_at == state.published_at
    };
    // Newest first.
    let is_older = publications.last().is_some_and(|oldest| {
        state.published_at < oldest.published_at && state.serial < oldest.serial
    });
    is_older || publications.iter().any(same)
}
