use keep::GcReport;

use super::{bytes, print_json, print_table};

/// What became of the objects.
pub(crate) fn table(report: &GcReport) -> anyhow::Result<()> {
    let mut table = super::table(["", "SNAPSHOTS", "OBJECTS", "SIZE"]);
    let swept = if report.dry_run { "would be swept" } else { "swept" };
    for (what, snapshots, amount) in [
        ("kept", Some(report.snapshots), report.kept),
        (swept, Some(report.expired), report.swept),
        ("waiting", None, report.waiting),
    ] {
        let snapshots = snapshots.map(|count| count.to_string()).unwrap_or_default();
        table.add_row([
            what.to_owned(),
            snapshots,
            amount.objects.to_string(),
            bytes(amount.bytes),
        ]);
    }
    print_table(&table)
}

/// The same for programs.
pub(crate) fn json(report: &GcReport) -> anyhow::Result<()> {
    print_json(report)
}
