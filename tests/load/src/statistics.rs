use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::{answer::Answer, violation::Violation};

/// Path as `openapi.json` writes it, or a word in brackets for requests without a route.
pub(crate) type Route = &'static str;

/// Statistics of requests and answers.
#[derive(Debug, Default)]
pub(crate) struct Statistics(Mutex<Counts>);

#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    pub(crate) routes: BTreeMap<Route, RouteStats>,
    pub(crate) violations: BTreeMap<(Route, &'static str), ViolationStats>,
}

/// Statistics of one route.
#[derive(Debug, Clone, Default)]
pub(crate) struct RouteStats {
    pub(crate) requests: u64,
    /// Complete bodies that were checked.
    pub(crate) checked: u64,
    /// Correct answers of other kinds: 304, 206, refusals, HEAD.
    pub(crate) other: u64,
    /// Answers with 404 for objects that were replaced long ago.
    pub(crate) gone: u64,
    pub(crate) bytes: u64,
    /// Times from the request to the end of the answer, in microseconds.
    pub(crate) took: Vec<u32>,
}

/// Number of violations of one kind, with the first one as an example.
#[derive(Debug, Clone)]
pub(crate) struct ViolationStats {
    pub(crate) count: u64,
    pub(crate) first: String,
}

impl Statistics {
    pub(crate) fn asked(&self, route: Route, took: Duration, answer: &Result<Answer, Violation>) {
        self.with(route, |row| {
            row.requests += 1;
            if let Ok(answer) = answer {
                row.bytes += answer.body.len() as u64;
                row.took.push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
            }
        });
    }

    pub(crate) fn with(&self, route: Route, change: impl FnOnce(&mut RouteStats)) {
        change(self.lock().routes.entry(route).or_default());
    }

    /// Counts a violation. `what` describes the request.
    pub(crate) fn violation(&self, route: Route, what: &str, violation: &Violation) {
        let mut counts = self.lock();
        let example = counts
            .violations
            .entry((route, violation.label()))
            .or_insert_with(|| ViolationStats {
                count: 0,
                first: format!("{what}: {}", violation.with_causes()),
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

impl RouteStats {
    /// Returns a quantile of the times, in thousandths: 990 is the 99th percentile.
    pub(crate) fn quantile(&self, thousandths: usize) -> Duration {
        let mut took = self.took.clone();
        took.sort_unstable();
        let at = (took.len() * thousandths / 1000).min(took.len().saturating_sub(1));
        Duration::from_micros(took.get(at).copied().unwrap_or_default().into())
    }
}
