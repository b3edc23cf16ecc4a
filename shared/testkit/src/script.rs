//! Scripted answers of the servers, and the log of their requests.

use std::borrow::Borrow;
use std::collections::{BTreeMap, VecDeque};

/// Answers that wait for the next requests of each kind, and all requests so far.
pub(crate) struct Script<K, A, R> {
    answers: BTreeMap<K, VecDeque<A>>,
    pub(crate) requests: Vec<R>,
}

impl<K, A, R> Default for Script<K, A, R> {
    fn default() -> Self {
        Self {
            answers: BTreeMap::new(),
            requests: Vec::new(),
        }
    }
}

impl<K: Ord, A, R> Script<K, A, R> {
    /// Adds the answer of one more request of a kind.
    pub(crate) fn push(&mut self, kind: K, answer: A) {
        self.answers.entry(kind).or_default().push_back(answer);
    }

    /// Takes the answer of the next request of a kind.
    pub(crate) fn next<Q: Ord + ?Sized>(&mut self, kind: &Q) -> Option<A>
    where
        K: Borrow<Q>,
    {
        self.answers.get_mut(kind)?.pop_front()
    }
}
