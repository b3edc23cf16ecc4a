use ::poll::{Changes, Report};

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

/// An array with everything the reports know.
pub(crate) fn json(reports: &[Report]) -> anyhow::Result<()> {
    print_json(&reports)
}
