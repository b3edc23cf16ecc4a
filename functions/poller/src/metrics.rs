//! Metrics in CloudWatch's embedded metric format: log lines, so that nothing has to be called and nothing permitted
//! (Amazon CloudWatch User Guide, "Specification: Embedded metric format").

use std::{
    io::{self, Write},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

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
    let mut output = io::stdout().lock();
    let lines = measured
        .iter()
        .filter_map(|measured| line(level, measured, SystemTime::now()));
    for line in lines {
        if let Err(error) = writeln!(output, "{line}") {
            tracing::warn!(%error, "cannot write metrics");
            return;
        }
    }
}

fn line(level: Level, measured: &Measured<'_>, now: SystemTime) -> Option<Value> {
    let dimensions = match level {
        Level::Off => return None,
        Level::Total => json!([[]]),
        Level::Catalog => json!([["Catalog"], []]),
    };
    let values = values(measured);
    let metrics: Vec<Value> = values
        .iter()
        .map(|(name, unit, _)| json!({"Name": name, "Unit": unit}))
        .collect();
    let timestamp = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let directive = json!({"Namespace": NAMESPACE, "Dimensions": dimensions, "Metrics": metrics});
    let mut line = json!({
        "_aws": {"Timestamp": timestamp, "CloudWatchMetrics": [directive]},
        "Catalog": measured.catalog,
    });
    for (name, _, value) in &values {
        line[name] = json!(value);
    }
    (!values.is_empty()).then_some(line)
}

fn values(measured: &Measured<'_>) -> Vec<(&'static str, &'static str, u64)> {
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
