use keep::Verification;
use layout::CatalogName;
use serde::Serialize;

use super::{bytes, print_json, print_table};

type Results = [(CatalogName, Verification)];

/// One line per catalog, then every finding.
pub(crate) fn table(results: &Results) -> anyhow::Result<()> {
    let mut table = super::table(["NAME", "SNAPSHOTS", "OBJECTS", "SIZE", "FINDINGS"]);
    for (name, found) in results {
        table.add_row([
            name.to_string(),
            found.snapshots.to_string(),
            found.objects.to_string(),
            bytes(found.bytes),
            found.findings.len().to_string(),
        ]);
    }
    print_table(&table)?;
    for finding in results.iter().flat_map(|(_, found)| &found.findings) {
        println!("{} {}", finding.key, finding.problem);
    }
    Ok(())
}

#[derive(Serialize)]
struct Line<'a> {
    catalog: &'a CatalogName,
    #[serde(flatten)]
    found: &'a Verification,
}

/// The same for programs.
pub(crate) fn json(results: &Results) -> anyhow::Result<()> {
    let lines = results.iter().map(|(catalog, found)| Line { catalog, found });
    print_json(&lines.collect::<Vec<_>>())
}
