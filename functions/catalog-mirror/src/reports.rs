//! Reports of polls and copies, which several commands print.

use model::{ChangedPackages, Outcome};
use publish::Report;
use sync::SyncReport;
use terminal::{Exit, bytes, cell, millis, print_error, remark, say, short};

use crate::args::ReportArgs;
use crate::table::{Column, Table, print_done};

impl Table for Report {
    const COLUMNS: &'static [Column<Self>] = &[
        ("NAME", |report| report.catalog.to_string()),
        ("OUTCOME", |report| words(report.outcome)),
        ("SERIAL", |report| cell(report.serial)),
        ("CONTENT", |report| {
            cell(report.content_hash.as_ref().map(short))
        }),
        ("PACKAGES", |report| changes(&report.changes)),
        ("PULLED", |report| bytes(report.bytes_pulled)),
        ("PUBLISHED", |report| bytes(report.bytes_published)),
        ("TIME", |report| millis(report.duration)),
    ];

    const IS_FAILED: fn(&Self) -> bool = |report| !report.outcome.is_success();
}

/// Prints the reports of polls and rollbacks, then their errors.
pub(crate) fn print_polls(reports: &[Report], json: bool) -> anyhow::Result<()> {
    print_done(reports, json)?;
    for report in reports.iter().filter(|_| !json) {
        for notice in &report.notices {
            remark(&format!("notice: {}: {notice}", report.catalog));
        }
        print_error(&report.catalog, report.error_text());
    }
    Ok(())
}

/// Returns an outcome in words.
pub(crate) fn words(outcome: Outcome) -> String {
    match outcome {
        Outcome::SourceDigestUpdated => "source moved, content the same".to_owned(),
        outcome => outcome.as_str().replace('_', " "),
    }
}

/// Returns the numbers of added, removed and changed packages, such as `+2 -1 ~3`. A zero is left
/// out.
pub(crate) fn changes(changes: &ChangedPackages) -> String {
    let counts = [
        ('+', changes.added.len()),
        ('-', changes.removed.len()),
        ('~', changes.changed.len()),
    ];
    let mut words = Vec::new();
    for (sign, count) in counts {
        if count > 0 {
            words.push(format!("{sign}{count}"));
        }
    }
    words.join(" ")
}

/// Prints the reports of a sync or an import, then fetched and repaired objects and errors. Returns
/// the exit code for them.
pub(crate) fn print_copies(reports: &[SyncReport], args: ReportArgs) -> anyhow::Result<Exit> {
    print_done(reports, args.json)?;
    for report in reports.iter().filter(|_| !args.json) {
        let name = &report.catalog;
        for key in &report.not_rebuilt {
            remark(&format!(
                "{name}: {key} was fetched: the compressor of this program produces other bytes"
            ));
        }
        for key in &report.repaired {
            remark(&format!("{name}: {key} was replaced"));
        }
        if report.not_served {
            say(&format!(
                "{name}: the origin lists it and does not serve it"
            ));
        }
        print_error(name, report.error.clone());
    }
    let outcomes = reports.iter().map(|report| report.outcome);
    Ok(Exit::of(outcomes, args.detailed_exitcode))
}

impl Table for SyncReport {
    const COLUMNS: &'static [Column<Self>] = &[
        ("NAME", |report| report.catalog.to_string()),
        ("OUTCOME", |report| words(report.outcome)),
        ("SERIAL", |report| cell(report.serial)),
        ("CONTENT", |report| {
            cell(report.content_hash.as_ref().map(short))
        }),
        ("MOVED", |report| bytes(report.moved.bytes)),
        ("REBUILT", |report| bytes(report.rebuilt.bytes)),
        ("KEPT", |report| bytes(report.kept.bytes)),
        ("ALL.JSON.GZ", |report| bytes(report.full_bytes)),
        ("TIME", |report| millis(report.duration)),
    ];

    const IS_FAILED: fn(&Self) -> bool = |report| !report.outcome.is_success();
}
