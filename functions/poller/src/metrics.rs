//! Metrics in CloudWatch's embedded metric format: lines of JSON on standard output, which need no
//! call and no permission (Amazon CloudWatch User Guide, "Specification: Embedded metric format").
//!
//! Each metric costs money, so only those in [`ALARMS`] are written by default. The values of the
//! others are fields of the same lines, which a query of the logs finds.
//!
//! Each metric has the dimension `FunctionName`, as AWS's own metrics of a function have. Without
//! it, all mirrors of an account and region would share one metric, and one that polls would hide
//! another that does not.
//!
//! | metric | unit | written |
//! |---|---|---|
//! | `SuccessfulPolls`, `FailedPolls`, `Publications` | count | for each polled catalog |
//! | `FailedForGood` | 0 or 1 | for each polled catalog: its revision failed and is not pulled again unless forced |
//! | `LastSuccessAge` | seconds | for each catalog of an event, polled or not |
//! | `UnreadableStates` | count | for each `gc` that is not a dry run: pointers and snapshots that it could not read |
//! | `FailedCollections` | 0 or 1 | for each `gc` that is not a dry run |
//! | `GcState` | 0 none, 1 condemned, 2 deleting | for each successful `gc` |
//! | `GcStateAge` | seconds | for each successful `gc` |
//! | `CondemnedObjects`, `DeletedObjects`, `LeftObjects` | count | for each successful `gc` |
//! | `DeletedBytes` | bytes | for each successful `gc` |

use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::{CatalogName, Outcome};
use publish::Report;
use serde_json::{Value, json};
use upkeep::{GcError, GcReport};

use crate::{Environment, MetricsLevel, round::Candidate};

/// Namespace of all metrics. Alarms and dashboards of operators name it, so it must not change.
const NAMESPACE: &str = "CatalogMirror";

/// Metrics that the alarms of `infra/aws/template.yaml` watch.
const ALARMS: [&str; 5] = [
    "SuccessfulPolls",
    "FailedPolls",
    "FailedCollections",
    "GcState",
    "GcStateAge",
];

/// Dimension of all metrics.
const FUNCTION: &str = "FunctionName";

/// Writes one line for each catalog of an event, with the report of its poll, if one ended.
pub(crate) fn write(environment: &Environment, candidates: &[Candidate], reports: &[Report]) {
    let now = SystemTime::now();
    let mut lines = Vec::new();
    for candidate in candidates {
        let name = candidate.name();
        let report = reports.iter().find(|report| report.catalog == *name);
        let values = values(report, candidate.success_age(now));
        lines.extend(line(environment, name, &values, now));
    }
    print(&lines);
}

/// Writes the result of one run of garbage collection. Has no dimension for the catalog, because
/// catalogs share objects.
pub(crate) fn write_collection(environment: &Environment, collected: &anyhow::Result<GcReport>) {
    let unreadable = match collected {
        Ok(report) => report.unreadable.len(),
        Err(error) => match error.downcast_ref::<GcError>() {
            Some(error) => error.unreadable().len(),
            None => 0,
        },
    };
    let report = collected.as_ref().ok();
    let line = collection(environment, report, unreadable as u64, SystemTime::now());
    print(line.as_slice());
}

fn print(lines: &[Value]) {
    // Not through the logs: those add fields and levels, and CloudWatch reads only whole lines in
    // its own format.
    let mut output = io::stdout().lock();
    for line in lines {
        if let Err(error) = writeln!(output, "{line}") {
            tracing::warn!(%error, "cannot write the metrics");
            return;
        }
    }
}

fn line(
    environment: &Environment,
    catalog: &CatalogName,
    values: &[Metric],
    now: SystemTime,
) -> Option<Value> {
    let dimensions = match environment.metrics {
        MetricsLevel::Alarms | MetricsLevel::Off => json!([[FUNCTION]]),
        // The second set is the total of all catalogs; the maximum of its ages is that of the worst
        // catalog.
        MetricsLevel::Catalog => json!([[FUNCTION, "Catalog"], [FUNCTION]]),
    };
    let mut line = embedded(environment, &dimensions, values, now)?;
    // Without the dimension it is a field of the log line only.
    line["Catalog"] = json!(catalog);
    Some(line)
}

/// Returns the line of one run, whose report is `None` if it failed.
fn collection(
    environment: &Environment,
    collected: Option<&GcReport>,
    unreadable: u64,
    now: SystemTime,
) -> Option<Value> {
    // Written as 0 too, because an alarm ends only when it gets a value.
    let mut values = vec![
        flag("FailedCollections", collected.is_none()),
        count("UnreadableStates", unreadable),
    ];
    if let Some(report) = collected {
        values.push(Metric {
            name: "GcState",
            unit: "None",
            value: state_number(report.state),
        });
        // An alarm on the age notices that no run takes the next step.
        values.push(Metric {
            name: "GcStateAge",
            unit: "Seconds",
            value: report.age_seconds,
        });
        values.push(count("CondemnedObjects", report.condemned.objects));
        values.push(count("DeletedObjects", report.deleted.objects));
        values.push(Metric {
            name: "DeletedBytes",
            unit: "Bytes",
            value: report.deleted.bytes,
        });
        values.push(count("LeftObjects", report.left.objects));
    }
    embedded(environment, &json!([[FUNCTION]]), &values, now)
}

/// Returns the number of a state, since a metric is a number: 0 none, 1 condemned, 2 deleting.
fn state_number(state: &str) -> u64 {
    match state {
        "condemned" => 1,
        "deleting" => 2,
        _ => 0,
    }
}

/// One metric and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Metric {
    name: &'static str,
    /// Unit in the words of CloudWatch.
    unit: &'static str,
    value: u64,
}

fn count(name: &'static str, value: u64) -> Metric {
    Metric {
        name,
        unit: "Count",
        value,
    }
}

/// Returns a metric that is 1 if `holds`, else 0.
fn flag(name: &'static str, holds: bool) -> Metric {
    count(name, u64::from(holds))
}

impl MetricsLevel {
    /// Returns true if the metric of this name is written, and not only a field of the line.
    fn has(self, name: &str) -> bool {
        match self {
            Self::Alarms => ALARMS.contains(&name),
            Self::Catalog => true,
            Self::Off => false,
        }
    }
}

/// Returns a line with all values; `None` if none of them is a metric of this level.
fn embedded(
    environment: &Environment,
    dimensions: &Value,
    values: &[Metric],
    now: SystemTime,
) -> Option<Value> {
    let mut metrics = Vec::new();
    for Metric { name, unit, .. } in values {
        if environment.metrics.has(name) {
            metrics.push(json!({"Name": name, "Unit": unit}));
        }
    }
    if metrics.is_empty() {
        return None;
    }
    let timestamp = now
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_millis();
    let directive = json!({"Namespace": NAMESPACE, "Dimensions": dimensions, "Metrics": metrics});
    let mut line = json!({"_aws": {"Timestamp": timestamp, "CloudWatchMetrics": [directive]}});
    line[FUNCTION] = json!(environment.function);
    for metric in values {
        line[metric.name] = json!(metric.value);
    }
    Some(line)
}

/// Returns the values of one catalog. `age` is the time since the last success before the event.
fn values(report: Option<&Report>, mut age: Option<Duration>) -> Vec<Metric> {
    let mut values = Vec::new();
    if let Some(report) = report {
        let is_success = report.outcome.is_success();
        if is_success {
            age = Some(Duration::ZERO);
        }
        let is_published = report.outcome == Outcome::Published;
        values.push(flag("SuccessfulPolls", is_success));
        values.push(flag("FailedPolls", !is_success));
        values.push(flag("FailedForGood", report.failed_for_good()));
        values.push(flag("Publications", is_published));
    }
    if let Some(age) = age {
        values.push(Metric {
            name: "LastSuccessAge",
            unit: "Seconds",
            value: age.as_secs(),
        });
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_790_000_000_123;

    fn now() -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(NOW)
    }

    /// Returns the environment of the function `mirror-Poller-1`.
    fn environment(level: &str) -> Environment {
        let environment = Environment::read(|name| {
            let value = match name {
                "STORE" => "s3://bucket",
                "CATALOGS" => "catalogs: [{name: a, source: quay.io/a/b:latest}]",
                "METRICS" => level,
                "AWS_LAMBDA_FUNCTION_NAME" => "mirror-Poller-1",
                _ => return None,
            };
            Some(value.to_owned())
        });
        environment.unwrap()
    }

    fn measured(level: &str, outcome: Option<Outcome>, age: Option<u64>) -> Option<Value> {
        let catalog: CatalogName = "a".parse().unwrap();
        let report = outcome.map(|outcome| Report {
            outcome,
            ..Report::new(catalog.clone())
        });
        let values = values(report.as_ref(), age.map(Duration::from_secs));
        line(&environment(level), &catalog, &values, now())
    }

    /// Returns the description of these metrics, given by their names and units.
    fn described(dimensions: &Value, metrics: &str) -> Value {
        let mut described = Vec::new();
        for metric in metrics.split(", ") {
            let (name, unit) = metric.split_once(' ').unwrap();
            described.push(json!({"Name": name, "Unit": unit}));
        }
        let directive =
            json!({"Namespace": "CatalogMirror", "Dimensions": dimensions, "Metrics": described});
        json!({"Timestamp": NOW, "CloudWatchMetrics": [directive]})
    }

    #[test]
    fn line_of_a_catalog_is_in_the_embedded_metric_format() {
        let line = measured("catalog", Some(Outcome::Published), Some(7));
        let names = "SuccessfulPolls Count, FailedPolls Count, FailedForGood Count, Publications Count, LastSuccessAge Seconds";
        let expected = json!({
            "_aws": described(&json!([["FunctionName", "Catalog"], ["FunctionName"]]), names),
            "FunctionName": "mirror-Poller-1", "Catalog": "a",
            "SuccessfulPolls": 1, "FailedPolls": 0, "FailedForGood": 0, "Publications": 1, "LastSuccessAge": 0,
        });
        assert_eq!(line, Some(expected));
        // For alarms it has the other values as fields only.
        let line = measured("alarms", Some(Outcome::Refused), Some(7));
        let expected = json!({
            "_aws": described(&json!([["FunctionName"]]), "SuccessfulPolls Count, FailedPolls Count"),
            "FunctionName": "mirror-Poller-1", "Catalog": "a",
            "SuccessfulPolls": 0, "FailedPolls": 1, "FailedForGood": 0, "Publications": 0, "LastSuccessAge": 7,
        });
        assert_eq!(line, Some(expected));
    }

    #[test]
    fn line_of_a_collection_has_no_dimension() {
        let mut report = GcReport {
            state: "deleting",
            age_seconds: 60,
            ..GcReport::default()
        };
        report.deleted.objects = 3;
        report.deleted.bytes = 1000;
        report.left.objects = 2;
        let line = |level, report| collection(&environment(level), report, 3, now());
        let names = "FailedCollections Count, UnreadableStates Count, GcState None, GcStateAge Seconds, \
                     CondemnedObjects Count, DeletedObjects Count, DeletedBytes Bytes, LeftObjects Count";
        let mut expected = json!({
            "_aws": described(&json!([["FunctionName"]]), names), "FunctionName": "mirror-Poller-1",
            "FailedCollections": 0, "UnreadableStates": 3, "GcState": 2, "GcStateAge": 60, "CondemnedObjects": 0,
            "DeletedObjects": 3, "DeletedBytes": 1000, "LeftObjects": 2,
        });
        assert_eq!(line("catalog", Some(&report)).as_ref(), Some(&expected));
        let names = "FailedCollections Count, GcState None, GcStateAge Seconds";
        expected["_aws"] = described(&json!([["FunctionName"]]), names);
        assert_eq!(line("alarms", Some(&report)), Some(expected));
        let described = described(&json!([["FunctionName"]]), "FailedCollections Count");
        let failed = json!({
            "_aws": described, "FunctionName": "mirror-Poller-1",
            "FailedCollections": 1, "UnreadableStates": 3,
        });
        assert_eq!(line("alarms", None), Some(failed));
        for report in [Some(&report), None] {
            assert_eq!(line("off", report), None);
        }
    }

    #[test]
    fn line_without_metrics_is_not_written() {
        assert_eq!(measured("alarms", None, Some(7)), None);
        assert_eq!(measured("catalog", None, None), None);
        assert_eq!(measured("off", Some(Outcome::Published), Some(1)), None);
    }
}
