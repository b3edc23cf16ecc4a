use model::CatalogName;
use serde::Serialize;
use upkeep::Verification;

use super::{TextTable, bytes, print_json};

type Verifications = [(CatalogName, Verification)];

/// Prints one line for each catalog, then every finding.
pub(crate) fn table(results: &Verifications) -> anyhow::Result<()> {
    let mut table = TextTable::new(["NAME", "SNAPSHOTS", "OBJECTS", "SIZE", "FINDINGS"]);
    for (name, found) in results {
        table.row([
            name.to_string(),
            found.snapshots.to_string(),
            found.objects.to_string(),
            bytes(found.bytes),
            found.findings.len().to_string(),
        ]);
    }
    table.print()?;
    for finding in results.iter().flat_map(|(_, found)| &found.findings) {
        println!("{} {}", finding.key, finding.problem);
    }
    Ok(())
}

#[derive(Serialize)]
struct VerificationLine<'a> {
    catalog: &'a CatalogName,
    #[serde(flatten)]
    found: &'a Verification,
}

/// Prints an array with the counts and findings of each catalog.
pub(crate) fn json(results: &Verifications) -> anyhow::Result<()> {
    let lines = results
        .iter()
        .map(|(catalog, found)| VerificationLine { catalog, found });
    print_json(&lines.collect::<Vec<_>>())
}
