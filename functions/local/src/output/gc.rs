use std::time::Duration;

use serde_json::json;
use upkeep::{GcError, GcReport, GcStep, NextStep};

use super::{TextTable, bytes, number, print_json, printable};

/// Prints the step that was taken, the next one, and the numbers of objects.
pub(crate) fn table(report: &GcReport) -> anyhow::Result<()> {
    println!("{}", sentence(report));
    let mut table = TextTable::new(["", "SNAPSHOTS", "OBJECTS", "SIZE"]);
    let condemned = if report.dry_run {
        "would be condemned"
    } else {
        "condemned"
    };
    let marked = report.snapshots > 0 || report.kept.objects > 0;
    for (what, snapshots, objects) in [
        ("kept", marked.then_some(report.snapshots), report.kept),
        (condemned, None, report.condemned),
        ("deleted", None, report.deleted),
        ("left", None, report.left),
    ] {
        table.row([
            what.to_owned(),
            number(snapshots),
            objects.objects.to_string(),
            bytes(objects.bytes),
        ]);
    }
    table.print()?;
    for state in &report.unreadable {
        println!(
            "{}: an earlier snapshot is damaged and keeps nothing: {}",
            state.catalog,
            printable(&state.error)
        );
    }
    Ok(())
}

fn sentence(report: &GcReport) -> String {
    let step = if report.dry_run {
        "changed nothing"
    } else {
        report.step.as_str()
    };
    let next = report.next.map(next).unwrap_or_default();
    format!("gc {step}; the state is {}{next}", report.state)
}

fn next(NextStep { step, due_in_seconds }: NextStep) -> String {
    let what = match step {
        GcStep::Condemn => "condemn what nothing names",
        GcStep::Delete => "delete what is condemned",
        GcStep::Finish => "end the round",
        GcStep::Wait | GcStep::Clean | GcStep::LostRace => "look again",
    };
    match due_in_seconds {
        0 => format!("; next: {what}, due now"),
        seconds => {
            let wait = humantime::format_duration(Duration::from_secs(seconds));
            format!("; next: {what}, due in {wait}")
        }
    }
}

/// Prints the report as one JSON object.
pub(crate) fn json(report: &GcReport) -> anyhow::Result<()> {
    print_json(report)
}

/// Prints the error of a run that stopped at pointers and Snapshots that it cannot read, and their list.
pub(crate) fn error_json(error: &GcError) -> anyhow::Result<()> {
    print_json(&json!({"error": model::text::error_line(error), "unreadable": error.unreadable()}))
}
