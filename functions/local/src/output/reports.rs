//! Reports of polls, copies, compositions and collections.

use std::time::Duration;

use ::sync::SyncReport;
use compose::Decision;
use model::CatalogName;
use publish::{ChangedPackages, ObjectStats, Report};
use upkeep::{GcReport, GcStep, NextStep};

use super::{Table, bytes, cell, print, print_table, printable, short};

impl Table for Report {
    const HEADERS: &'static [&'static str] = &[
        "NAME",
        "OUTCOME",
        "SERIAL",
        "CONTENT",
        "PACKAGES",
        "PULLED",
        "PUBLISHED",
        "TIME",
    ];

    fn row(&self) -> Vec<String> {
        vec![
            self.catalog.to_string(),
            self.outcome.as_str().to_owned(),
            cell(self.serial),
            cell(self.content_hash.as_ref().map(short)),
            changes(&self.changes),
            bytes(self.bytes_pulled),
            bytes(self.bytes_published),
            millis(self.duration),
        ]
    }
}

impl Table for SyncReport {
    const HEADERS: &'static [&'static str] = &[
        "NAME",
        "OUTCOME",
        "SERIAL",
        "CONTENT",
        "MOVED",
        "REBUILT",
        "KEPT",
        "ALL.JSON.GZ",
        "TIME",
    ];

    fn row(&self) -> Vec<String> {
        vec![
            self.catalog.to_string(),
            self.outcome.as_str().to_owned(),
            cell(self.serial),
            cell(self.content_hash.as_ref().map(short)),
            bytes(self.moved.bytes),
            bytes(self.rebuilt.bytes),
            bytes(self.kept.bytes),
            bytes(self.full_bytes),
            millis(self.duration),
        ]
    }
}

impl Table for Decision {
    const HEADERS: &'static [&'static str] = &["", "PACKAGE", "BUNDLE", "VERSION", "REASON"];

    fn row(&self) -> Vec<String> {
        vec![
            if self.kept { "+" } else { "-" }.to_owned(),
            self.package.clone(),
            self.bundle.clone(),
            cell(self.version.as_ref()),
            self.reason.clone(),
        ]
    }
}

/// Prints the reports of polls and rollbacks, then their errors.
pub(crate) fn print_polls(reports: &[Report], json: bool) -> anyhow::Result<()> {
    print(reports, json)?;
    if !json {
        let failed = |report: &Report| print_error(&report.catalog, report.error_text());
        reports.iter().for_each(failed);
    }
    Ok(())
}

/// Prints the reports of copies, then rebuilt and repaired objects and errors.
pub(crate) fn print_copies(reports: &[SyncReport], json: bool) -> anyhow::Result<()> {
    print(reports, json)?;
    for report in reports.iter().filter(|_| !json) {
        let name = &report.catalog;
        for key in &report.not_rebuilt {
            eprintln!("{name}: {key} was fetched: the compressor of this program produces other bytes");
        }
        for key in &report.repaired {
            eprintln!("{name}: {key} was replaced");
        }
        if report.not_served {
            eprintln!("{name}: the origin lists it and does not serve it");
        }
        print_error(name, report.error_text());
    }
    Ok(())
}

/// Prints the error of a catalog to standard error, unless the log has it already.
fn print_error(catalog: &CatalogName, error: Option<String>) {
    if let Some(error) = error
        && !tracing::enabled!(target: "report", tracing::Level::ERROR)
    {
        eprintln!("{catalog}: {error}");
    }
}

/// Returns the numbers of added, removed and changed packages, such as `+2 -1 ~3`. A zero is left out.
fn changes(changes: &ChangedPackages) -> String {
    let counts = [
        ('+', changes.added.len()),
        ('-', changes.removed.len()),
        ('~', changes.changed.len()),
    ];
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    let counts = counts.map(|(sign, count)| format!("{sign}{count}"));
    counts.collect::<Vec<_>>().join(" ")
}

fn millis(duration: Duration) -> String {
    format!("{} ms", duration.as_millis())
}

/// Objects of one state in a collection.
struct CollectedObjects {
    state: &'static str,
    snapshots: Option<usize>,
    objects: ObjectStats,
}

impl Table for CollectedObjects {
    const HEADERS: &'static [&'static str] = &["", "SNAPSHOTS", "OBJECTS", "SIZE"];

    fn row(&self) -> Vec<String> {
        vec![
            self.state.to_owned(),
            cell(self.snapshots),
            self.objects.objects.to_string(),
            bytes(self.objects.bytes),
        ]
    }
}

/// Prints the step that was taken, the next one, and the numbers of objects.
pub(crate) fn print_collection(report: &GcReport) -> anyhow::Result<()> {
    let (step, condemned) = if report.dry_run {
        ("changed nothing", "would be condemned")
    } else {
        (report.step.as_str(), "condemned")
    };
    let next = report.next.map(next).unwrap_or_default();
    println!("gc {step}; the state is {}{next}", report.state);
    let is_marked = report.snapshots > 0 || report.kept.objects > 0;
    let rows = [
        ("kept", is_marked.then_some(report.snapshots), report.kept),
        (condemned, None, report.condemned),
        ("deleted", None, report.deleted),
        ("left", None, report.left),
    ];
    print_table(&rows.map(|(state, snapshots, objects)| CollectedObjects {
        state,
        snapshots,
        objects,
    }))?;
    for state in &report.unreadable {
        println!(
            "{}: an earlier snapshot is damaged and keeps nothing: {}",
            state.catalog,
            printable(&state.error)
        );
    }
    Ok(())
}

fn next(NextStep { step, due_in_seconds }: NextStep) -> String {
    let what = match step {
        GcStep::Condemn => "condemn what nothing names",
        GcStep::Delete => "delete what is condemned",
        GcStep::Finish => "end the round",
        GcStep::Wait | GcStep::Clean | GcStep::LostRace => "look again",
    };
    let due = match due_in_seconds {
        0 => "now".to_owned(),
        seconds => format!("in {}", humantime::format_duration(Duration::from_secs(seconds))),
    };
    format!("; next: {what}, due {due}")
}
