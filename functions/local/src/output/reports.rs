use ::poll::{Changes, Report};
use serde::Serialize;

use super::{bytes, print_json, print_table, short};

/// One line per catalog, then what went wrong.
pub(crate) fn table(reports: &[Report]) -> anyhow::Result<()> {
    let mut table = super::table([
        "NAME",
        "OUTCOME",
        "SERIAL",
        "CONTENT",
        "PACKAGES",
        "PULLED",
        "PUBLISHED",
        "TIME",
    ]);
    for report in reports {
        table.add_row([
            report.catalog.to_string(),
            report.outcome.as_str().to_owned(),
            report.serial.map(|serial| serial.to_string()).unwrap_or_default(),
            report.content_hash.as_ref().map(short).unwrap_or_default(),
            changes(&report.changes),
            bytes(report.bytes_pulled),
            bytes(report.bytes_published),
            format!("{} ms", report.duration.as_millis()),
        ]);
    }
    print_table(&table)?;
    for report in reports {
        if let Some(error) = report.error_text() {
            eprintln!("{}: {error}", report.catalog);
        }
    }
    Ok(())
}

/// `+2 -1 ~3`, leaving out what is none.
pub(crate) fn changes(changes: &Changes) -> String {
    let counts = [
        ('+', changes.added.len()),
        ('-', changes.removed.len()),
        ('~', changes.changed.len()),
    ];
    let told = counts
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(sign, count)| format!("{sign}{count}"));
    told.collect::<Vec<_>>().join(" ")
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    catalog: &'a str,
    outcome: &'static str,
    error: Option<String>,
    digest: Option<&'a str>,
    content_hash: Option<String>,
    serial: Option<u64>,
    changes: &'a Changes,
    layers_fetched: usize,
    layers_skipped: usize,
    bytes_pulled: u64,
    objects_published: u64,
    bytes_published: u64,
    duration_ms: u128,
}

/// An array with everything the reports know.
pub(crate) fn json(reports: &[Report]) -> anyhow::Result<()> {
    let lines = reports.iter().map(|report| Line {
        catalog: report.catalog.as_str(),
        outcome: report.outcome.as_str(),
        error: report.error_text(),
        digest: report.digest.as_deref(),
        content_hash: report.content_hash.map(|hash| hash.to_string()),
        serial: report.serial,
        changes: &report.changes,
        layers_fetched: report.layers_fetched,
        layers_skipped: report.layers_skipped,
        bytes_pulled: report.bytes_pulled,
        objects_published: report.objects_published,
        bytes_published: report.bytes_published,
        duration_ms: report.duration.as_millis(),
    });
    print_json(&lines.collect::<Vec<_>>())
}
