use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::{answer::Answer, wrong::Wrong};

/// A path of the contract as `openapi.json` writes it, or a word in brackets for what is no path.
pub(crate) type Route = &'static str;

/// What was asked and how it was answered.
#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<Counts>);

#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    pub(crate) routes: BTreeMap<Route, Row>,
    pub(crate) wrongs: BTreeMap<(Route, &'static str), Example>,
}

/// What happened on one route.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    pub(crate) requests: u64,
    /// Bodies that came whole and were checked.
    pub(crate) checked: u64,
    /// 304, 206, refusals and answers to HEAD that were as they should be.
    pub(crate) other: u64,
    /// 404 for what was replaced long ago.
    pub(crate) gone: u64,
    pub(crate) bytes: u64,
    /// From the request to the end of its answer, in microseconds.
    pub(crate) took: Vec<u32>,
}

/// A kind of error: how often, and the first one.
#[derive(Debug, Clone)]
pub(crate) struct Example {
    pub(crate) count: u64,
    pub(crate) first: String,
}

impl Tally {
    pub(crate) fn asked(&self, route: Route, took: Duration, answer: &Result<Answer, Wrong>) {
        self.with(route, |row| {
            row.requests += 1;
            if let Ok(answer) = answer {
                row.bytes += answer.body.len() as u64;
                row.took.push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
            }
        });
    }

    pub(crate) fn with(&self, route: Route, change: impl FnOnce(&mut Row)) {
        change(self.lock().routes.entry(route).or_default());
    }

    /// `what` is the request.
    pub(crate) fn wrong(&self, route: Route, what: &str, wrong: &Wrong) {
        let mut counts = self.lock();
        let example = counts.wrongs.entry((route, wrong.word())).or_insert_with(|| Example {
            count: 0,
            first: format!("{what}: {}", wrong.told()),
        });
        example.count += 1;
    }

    pub(crate) fn counts(&self) -> Counts {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Row {
    /// The time below which so many thousandths of the answers came.
    pub(crate) fn quantile(&self, thousandths: usize) -> Duration {
        let mut took = self.took.clone();
        took.sort_unstable();
        let at = (took.len() * thousandths / 1000).min(took.len().saturating_sub(1));
        Duration::from_micros(took.get(at).copied().unwrap_or_default().into())
    }
}
