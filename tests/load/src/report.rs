#![expect(
    clippy::print_stdout,
    reason = "the report is the result of the load test"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;

use crate::client::Shared;
use crate::monitor::{Samples, Trend};
use crate::statistics::{Counts, Route, RouteStats, ViolationStats};

/// Minimum duration of a run for a statement on growth. An allocator grows until it has seen the
/// peak of each of its threads.
const TREND_MIN: Duration = Duration::from_secs(240);
/// Allowed growth of memory, in hundredths and in bytes: slack of the allocator and of a cache that
/// fills slowly.
const MEMORY_SLACK: (u64, u64) = (10, 8 << 20);
/// Allowed growth of descriptors, in hundredths and in number: connections come and go.
const DESCRIPTORS_SLACK: (u64, u64) = (10, 16);
/// Allowed growth of files, in hundredths and in number: it depends on the time of garbage
/// collections.
const FILES_SLACK: (u64, u64) = (25, 300);

/// Report of a run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    seconds: u64,
    requests: u64,
    bodies_checked: u64,
    bytes: u64,
    worst_ms: f64,
    routes: BTreeMap<Route, RouteReport>,
    errors: Vec<ViolationStats>,
    /// Paths of the OpenAPI document of which no answer was checked.
    never_checked: Vec<String>,
    /// Number of publications of each catalog during the run.
    publications: BTreeMap<String, u64>,
    memory: Trend,
    descriptors: Trend,
    descriptors_leaked: u64,
    files: Trend,
    seen: Samples,
    /// True if there were no violations, nothing grew, and no route was left out.
    pub(crate) fine: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RouteReport {
    #[serde(flatten)]
    stats: RouteStats,
    p50_ms: f64,
    p99_ms: f64,
    worst_ms: f64,
}

impl Report {
    pub(crate) fn new(
        shared: &Shared,
        seen: Samples,
        leaked: u64,
        paths: &BTreeSet<String>,
        took: Duration,
    ) -> Self {
        let counts = shared.statistics.counts();
        let never_checked = never_checked(&counts, paths);
        let errors: Vec<_> = counts.violations.into_values().collect();
        let is_long = took >= TREND_MIN;
        let trend =
            |values: &[u64], (hundredths, more)| Trend::of(values, is_long, hundredths, more);
        let memory = trend(&seen.memory, MEMORY_SLACK);
        let descriptors = trend(&seen.descriptors, DESCRIPTORS_SLACK);
        let files = trend(&seen.files, FILES_SLACK);
        let is_flat = [memory, descriptors, files]
            .iter()
            .all(|trend| trend.flat != Some(false));
        let report = |(route, stats): (Route, RouteStats)| {
            let [p50_ms, p99_ms, worst_ms] = stats.quantiles([500, 990, 1000]);
            let report = RouteReport {
                stats,
                p50_ms,
                p99_ms,
                worst_ms,
            };
            (route, report)
        };
        let routes: BTreeMap<_, _> = counts.routes.into_iter().map(report).collect();
        let sum = |of: fn(&RouteStats) -> u64| routes.values().map(|row| of(&row.stats)).sum();
        Self {
            seconds: took.as_secs(),
            requests: sum(|row| row.requests),
            bodies_checked: sum(|row| row.checked),
            bytes: sum(|row| row.bytes),
            worst_ms: routes.values().map(|row| row.worst_ms).fold(0.0, f64::max),
            fine: errors.is_empty() && never_checked.is_empty() && is_flat && leaked == 0,
            routes,
            errors,
            never_checked,
            publications: shared.history.publications(),
            memory,
            descriptors,
            descriptors_leaked: leaked,
            files,
            seen,
        }
    }

    /// Prints the report for people.
    pub(crate) fn print(&self) {
        let head = "ROUTE";
        println!(
            "{head:40} REQUESTS  CHECKED    OTHER     GONE       MB   P50 MS   P99 MS WORST MS"
        );
        for (route, row) in &self.routes {
            let (stats, megabytes) = (&row.stats, row.stats.bytes >> 20);
            let counts = [
                stats.requests,
                stats.checked,
                stats.other,
                stats.gone,
                megabytes,
            ];
            let counts = counts.map(|count| format!(" {count:8}")).concat();
            let times = [row.p50_ms, row.p99_ms, row.worst_ms].map(|ms| format!(" {ms:8.1}"));
            println!("{route:40}{counts}{}", times.concat());
        }
        println!();
        println!(
            "{} requests in {} s, {} bodies checked, {} MB, worst {:.1} ms, {} errors",
            self.requests,
            self.seconds,
            self.bodies_checked,
            self.bytes >> 20,
            self.worst_ms,
            self.errors.iter().map(|error| error.count).sum::<u64>()
        );
        for (catalog, count) in &self.publications {
            println!("{count} publications of {catalog}");
        }
        print_trend("memory, MB", self.memory, 20);
        print_trend("open descriptors", self.descriptors, 0);
        print_trend("files in the store", self.files, 0);
        if self.descriptors_leaked > 0 {
            println!("{} descriptors stayed open", self.descriptors_leaked);
        }
        for path in &self.never_checked {
            println!("NOTHING CHECKED of {path}");
        }
        for error in &self.errors {
            println!(
                "WRONG {} times, {} of {}: {}",
                error.count, error.kind, error.route, error.first
            );
        }
    }
}

/// Returns the paths of which no answer was checked. A new route must get a scenario.
pub(crate) fn never_checked(counts: &Counts, paths: &BTreeSet<String>) -> Vec<String> {
    let checked = |path: &&String| {
        let row = counts.routes.get(path.as_str());
        row.is_none_or(|row| row.checked + row.other == 0)
    };
    paths.iter().filter(checked).cloned().collect()
}

fn print_trend(what: &str, trend: Trend, shift: u32) {
    let [first, last, max] =
        [trend.first_third, trend.last_third, trend.max].map(|value| value >> shift);
    let verdict = match trend.flat {
        Some(true) => "flat",
        Some(false) => "GROWING",
        None => "too soon to say",
    };
    println!(
        "{what}: at most {first} in the first third, {last} in the last, {max} ever: {verdict}"
    );
}
