use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use comfy_table::{Table, presets};
use serde::Serialize;

use crate::{
    client::Shared,
    monitor::{Samples, Trend},
    statistics::{Counts, RouteStats},
};

/// Minimum duration of a run for a statement on growth. An allocator grows until it has seen the peak of each of its threads.
const TREND_MIN: Duration = Duration::from_secs(240);
/// Allowed growth of memory, in hundredths and in bytes: slack of the allocator and of a cache that fills slowly.
const MEMORY_SLACK: (u64, u64) = (10, 8 << 20);
/// Allowed growth of descriptors, in hundredths and in number: connections come and go.
const DESCRIPTORS_SLACK: (u64, u64) = (10, 16);
/// Allowed growth of files, in hundredths and in number: it depends on the time of garbage collections.
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
    routes: BTreeMap<&'static str, RouteReport>,
    errors: Vec<ErrorReport>,
    /// Paths of the OpenAPI document of which no answer was checked.
    never_checked: Vec<String>,
    /// Number of publications of each catalog during the run.
    publications: BTreeMap<String, u64>,
    memory: Trend,
    descriptors: Trend,
    descriptors_leaked: u64,
    files: Trend,
    seen: Samples,
    fine: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RouteReport {
    requests: u64,
    checked: u64,
    other: u64,
    gone: u64,
    bytes: u64,
    p50_ms: f64,
    p99_ms: f64,
    worst_ms: f64,
}

#[derive(Debug, Serialize)]
struct ErrorReport {
    route: &'static str,
    kind: &'static str,
    count: u64,
    first: String,
}

impl Report {
    pub(crate) fn new(shared: &Shared, seen: Samples, leaked: u64, paths: &BTreeSet<String>, took: Duration) -> Self {
        let counts = shared.statistics.counts();
        let never_checked = never_checked(&counts, paths);
        let errors = errors(&counts);
        let is_long = took >= TREND_MIN;
        let trend = |values: &[u64], (hundredths, more)| Trend::of(values, is_long, hundredths, more);
        let memory = trend(&seen.memory, MEMORY_SLACK);
        let descriptors = trend(&seen.descriptors, DESCRIPTORS_SLACK);
        let files = trend(&seen.files, FILES_SLACK);
        let is_flat = [memory, descriptors, files]
            .iter()
            .all(|trend| trend.flat != Some(false));
        let sum = |of: fn(&RouteStats) -> u64| counts.routes.values().map(of).sum();
        let worst = counts.routes.values().flat_map(|row| row.took.iter().copied()).max();
        Self {
            seconds: took.as_secs(),
            requests: sum(|row| row.requests),
            bodies_checked: sum(|row| row.checked),
            bytes: sum(|row| row.bytes),
            worst_ms: f64::from(worst.unwrap_or_default()) / 1000.0,
            fine: errors.is_empty() && never_checked.is_empty() && is_flat && leaked == 0,
            routes: counts
                .routes
                .iter()
                .map(|(route, row)| (*route, RouteReport::new(row)))
                .collect(),
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

    /// Returns true if there were no violations, nothing grew, and no route was left out.
    pub(crate) const fn is_fine(&self) -> bool {
        self.fine
    }

    /// Prints the report for people.
    pub(crate) fn print(&self) {
        println!("{}", self.table());
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

    fn table(&self) -> Table {
        let mut table = Table::new();
        let head = [
            "ROUTE", "REQUESTS", "CHECKED", "OTHER", "GONE", "MB", "P50 MS", "P99 MS", "WORST MS",
        ];
        table.load_style(presets::NOTHING).set_header(head);
        for (route, row) in &self.routes {
            let [p50, p99, worst] = [row.p50_ms, row.p99_ms, row.worst_ms].map(milliseconds);
            let [requests, checked, other, gone] =
                [row.requests, row.checked, row.other, row.gone].map(|count| count.to_string());
            let bytes = (row.bytes >> 20).to_string();
            table.add_row([
                (*route).to_owned(),
                requests,
                checked,
                other,
                gone,
                bytes,
                p50,
                p99,
                worst,
            ]);
        }
        table
    }
}

impl RouteReport {
    fn new(row: &RouteStats) -> Self {
        let ms = |thousandths| row.quantile(thousandths).as_secs_f64() * 1000.0;
        Self {
            requests: row.requests,
            checked: row.checked,
            other: row.other,
            gone: row.gone,
            bytes: row.bytes,
            p50_ms: ms(500),
            p99_ms: ms(990),
            worst_ms: ms(1000),
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

fn errors(counts: &Counts) -> Vec<ErrorReport> {
    let errors = counts.violations.iter().map(|((route, kind), example)| ErrorReport {
        route,
        kind,
        count: example.count,
        first: example.first.clone(),
    });
    errors.collect()
}

/// Formats milliseconds; empty for clients that set their own pace.
fn milliseconds(ms: f64) -> String {
    if ms > 0.0 { format!("{ms:.1}") } else { String::new() }
}

fn print_trend(what: &str, trend: Trend, shift: u32) {
    let [first, last, max] = [trend.first_third, trend.last_third, trend.max].map(|value| value >> shift);
    let verdict = match trend.flat {
        Some(true) => "flat",
        Some(false) => "GROWING",
        None => "too soon to say",
    };
    println!("{what}: at most {first} in the first third, {last} in the last, {max} ever: {verdict}");
}
