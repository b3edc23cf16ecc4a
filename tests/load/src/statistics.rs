use std::{collections::BTreeMap, time::Duration};

use parking_lot::Mutex;
use serde::Serialize;

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
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct RouteStats {
    pub(crate) requests: u64,
    /// Complete bodies that were checked.
    pub(crate) checked: u64,
    /// Correct answers of other kinds: 304, 206, HEAD.
    pub(crate) other: u64,
    /// Answers with 404 for objects that were replaced long ago.
    pub(crate) gone: u64,
    pub(crate) bytes: u64,
    /// Times from the request to the end of the answer, in microseconds.
    #[serde(skip)]
    pub(crate) took: Vec<u32>,
}

/// Number of violations of one kind, with the first one as an example.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ViolationStats {
    pub(crate) route: Route,
    pub(crate) kind: &'static str,
    pub(crate) count: u64,
    pub(crate) first: String,
}

impl Statistics {
    pub(crate) fn asked(&self, route: Route, took: Duration, answer: &Result<Answer, Violation>) {
        self.with(route, |row| {
            row.requests += 1;
            if let Ok(answer) = answer {
                row.bytes += answer.body.len() as u64;
                row.took
                    .push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
            }
        });
    }

    pub(crate) fn with(&self, route: Route, change: impl FnOnce(&mut RouteStats)) {
        change(self.0.lock().routes.entry(route).or_default());
    }

    /// Counts a violation. `what` describes the request.
    pub(crate) fn violation(&self, route: Route, what: &str, violation: &Violation) {
        let kind = violation.label();
        let first = || ViolationStats {
            route,
            kind,
            count: 0,
            first: format!("{what}: {}", model::text::chain(violation)),
        };
        let violations = &mut self.0.lock().violations;
        violations.entry((route, kind)).or_insert_with(first).count += 1;
    }

    pub(crate) fn counts(&self) -> Counts {
        self.0.lock().clone()
    }
}

impl RouteStats {
    /// Returns quantiles of the times in milliseconds. They are given in thousandths: 990 is the
    /// 99th percentile.
    pub(crate) fn quantiles<const N: usize>(&self, thousandths: [usize; N]) -> [f64; N] {
        let mut took = self.took.clone();
        took.sort_unstable();
        thousandths.map(|part| {
            let at = (took.len() * part / 1000).min(took.len().saturating_sub(1));
            f64::from(took.get(at).copied().unwrap_or_default()) / 1000.0
        })
    }
}
