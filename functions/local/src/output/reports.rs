use publish::{ChangedPackages, Report};

use super::{TextTable, bytes, number, print_json, short};

/// Prints one line for each catalog, then the errors.
pub(crate) fn table(reports: &[Report]) -> anyhow::Result<()> {
    let mut table = TextTable::new([
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
        table.row([
            report.catalog.to_string(),
            report.outcome.as_str().to_owned(),
            number(report.serial),
            report.content_hash.as_ref().map(short).unwrap_or_default(),
            changes(&report.changes),
            bytes(report.bytes_pulled),
            bytes(report.bytes_published),
            format!("{} ms", report.duration.as_millis()),
        ]);
    }
    table.print()?;
    let failed = |report: &Report| Some((report.catalog.to_string(), report.error_text()?));
    super::print_errors(reports.iter().filter_map(failed));
    Ok(())
}

/// Returns the numbers of added, removed and changed packages, such as `+2 -1 ~3`. A zero is left out.
fn changes(changes: &ChangedPackages) -> String {
    let counts = [
        ('+', changes.added.len()),
        ('-', changes.removed.len()),
        ('~', changes.changed.len()),
    ];
    let counts = counts
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(sign, count)| format!("{sign}{count}"));
    counts.collect::<Vec<_>>().join(" ")
}

/// Prints an array with all fields of the reports.
pub(crate) fn json(reports: &[Report]) -> anyhow::Result<()> {
    print_json(&reports)
}
