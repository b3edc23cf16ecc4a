//! Metrics in CloudWatch's embedded metric format: log lines, so that nothing has to be called and nothing permitted
//! (Amazon CloudWatch User Guide, "Specification: Embedded metric format").

use std::{
    io::{self, Write},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use keep::GcReport;
use layout::{CatalogName, Outcome};
use serde_json::{Value, json};

use crate::Level;

const NAMESPACE: &str = "CatalogMirror";

/// What an invocation knows of one catalog.
#[derive(Debug)]
pub(crate) struct Measured<'a> {
    pub(crate) catalog: &'a CatalogName,
    /// How its poll ended, if it ended in this invocation.
    pub(crate) outcome: Option<Outcome>,
    /// How long ago it was last up to date, if it ever was.
    pub(crate) success_age: Option<Duration>,
}

/// Writes one line for each catalog to standard output, which Lambda takes into the log as it is.
pub(crate) fn write(level: Level, measured: &[Measured<'_>]) {
    let now = SystemTime::now();
    print(measured.iter().filter_map(|measured| line(level, measured, now)));
}

/// Writes whether garbage collection failed, and else what it has removed, without a dimension: catalogs share what lies
/// there.
pub(crate) fn write_collection(level: Level, collected: Option<&GcReport>) {
    print(collection(level, collected, SystemTime::now()).into_iter());
}

fn print(mut lines: impl Iterator<Item = Value>) {
    let mut output = io::stdout().lock();
    if let Err(error) = lines.try_for_each(|line| writeln!(output, "{line}")) {
        tracing::warn!(%error, "cannot write metrics");
    }
}

fn line(level: Level, measured: &Measured<'_>, now: SystemTime) -> Option<Value> {
    let dimensions = match level {
        Level::Off => return None,
        Level::Total => json!([[]]),
        Level::Catalog => json!([["Catalog"], []]),
    };
    let values = values(measured);
    let mut line = embedded(&dimensions, &values, now);
    line["Catalog"] = json!(measured.catalog);
    (!values.is_empty()).then_some(line)
}

/// One that succeeded says so too: that ends the alarm.
fn collection(level: Level, collected: Option<&GcReport>, now: SystemTime) -> Option<Value> {
    let mut values = vec![("FailedCollections", "Count", u64::from(collected.is_none()))];
    if let Some(report) = collected {
        values.push(("SweptObjects", "Count", report.swept.objects));
        values.push(("SweptBytes", "Bytes", report.swept.bytes));
    }
    (level != Level::Off).then(|| embedded(&json!([[]]), &values, now))
}

/// A name, a unit and what was measured.
type Metric = (&'static str, &'static str, u64);

fn embedded(dimensions: &Value, values: &[Metric], now: SystemTime) -> Value {
    let metrics = values
        .iter()
        .map(|(name, unit, _)| json!({"Name": name, "Unit": unit}))
        .collect::<Vec<_>>();
    let timestamp = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let directive = json!({"Namespace": NAMESPACE, "Dimensions": dimensions, "Metrics": metrics});
    let mut line = json!({"_aws": {"Timestamp": timestamp, "CloudWatchMetrics": [directive]}});
    for (name, _, value) in values {
        line[name] = json!(value);
    }
    line
}

fn values(measured: &Measured<'_>) -> Vec<Metric> {
    let mut values = Vec::new();
    if let Some(outcome) = measured.outcome {
        let is_success = outcome.is_success();
        values.push(("SuccessfulPolls", "Count", u64::from(is_success)));
        values.push(("FailedPolls", "Count", u64::from(!is_success)));
        values.push(("Publications", "Count", u64::from(outcome == Outcome::Published)));
    }
    if let Some(age) = measured.success_age {
        values.push(("LastSuccessAge", "Seconds", age.as_secs()));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(level: Level, outcome: Option<Outcome>, age: Option<u64>) -> Option<Value> {
        let catalog = "a".parse().unwrap();
        let measured = Measured {
            catalog: &catalog,
            outcome,
            success_age: age.map(Duration::from_secs),
        };
        line(level, &measured, UNIX_EPOCH + Duration::from_millis(1_790_000_000_123))
    }

    #[test]
    fn a_line_is_what_cloudwatch_reads() {
        let line = measured(Level::Catalog, Some(Outcome::Published), Some(0)).unwrap();
        let directive = json!({
            "Namespace": "CatalogMirror",
            "Dimensions": [["Catalog"], []],
            "Metrics": [
                {"Name": "SuccessfulPolls", "Unit": "Count"},
                {"Name": "FailedPolls", "Unit": "Count"},
                {"Name": "Publications", "Unit": "Count"},
                {"Name": "LastSuccessAge", "Unit": "Seconds"},
            ],
        });
        let expected = json!({
            "_aws": {"Timestamp": 1_790_000_000_123_u64, "CloudWatchMetrics": [directive]},
            "Catalog": "a",
            "SuccessfulPolls": 1, "FailedPolls": 0, "Publications": 1, "LastSuccessAge": 0,
        });
        assert_eq!(line, expected);
    }

    #[test]
    fn what_was_removed_or_failed_has_no_dimension() {
        let mut report = GcReport::default();
        (report.swept.objects, report.swept.bytes) = (3, 1000);
        let now = UNIX_EPOCH + Duration::from_millis(5);
        let metrics = json!([
            {"Name": "FailedCollections", "Unit": "Count"},
            {"Name": "SweptObjects", "Unit": "Count"},
            {"Name": "SweptBytes", "Unit": "Bytes"},
        ]);
        let directive = json!({"Namespace": "CatalogMirror", "Dimensions": [[]], "Metrics": metrics});
        let expected = json!({
            "_aws": {"Timestamp": 5, "CloudWatchMetrics": [directive]},
            "FailedCollections": 0, "SweptObjects": 3, "SweptBytes": 1000,
        });
        assert_eq!(collection(Level::Catalog, Some(&report), now), Some(expected));
        assert_eq!(collection(Level::Off, Some(&report), now), None);
        let failed = collection(Level::Total, None, now).unwrap();
        assert_eq!(
            (&failed["FailedCollections"], failed.get("SweptObjects")),
            (&json!(1), None)
        );
        assert_eq!(collection(Level::Off, None, now), None);
    }

    #[test]
    fn only_what_is_known_is_measured() {
        let failed = measured(Level::Total, Some(Outcome::Refused), None).unwrap();
        assert_eq!(
            (&failed["SuccessfulPolls"], &failed["FailedPolls"]),
            (&json!(0), &json!(1))
        );
        assert_eq!(failed["_aws"]["CloudWatchMetrics"][0]["Dimensions"], json!([[]]));
        assert_eq!(measured(Level::Catalog, None, None), None);
        assert_eq!(measured(Level::Off, Some(Outcome::Published), Some(1)), None);
    }
}
