use compose::Decision;

use super::{TextTable, print_json};

/// Prints the reasons as a JSON list.
pub(crate) fn json(decisions: &[Decision]) -> anyhow::Result<()> {
    print_json(&decisions)
}

/// Prints one line for each bundle, and for each package that was not read.
pub(crate) fn table(decisions: &[Decision]) -> anyhow::Result<()> {
    let mut table = TextTable::new(["", "PACKAGE", "BUNDLE", "VERSION", "REASON"]);
    for decision in decisions {
        let sign = if decision.kept { "+" } else { "-" };
        let version = decision.version.as_deref().unwrap_or_default();
        table.row([sign, &decision.package, &decision.bundle, version, &decision.reason]);
    }
    table.print()
}
