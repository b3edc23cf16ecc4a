use ::sync::{Manifest, Report};
use layout::Stored;
use serde::Serialize;
use serde_json::json;

use super::{bytes, print_json, print_table, short};

/// One line per catalog, then what went wrong or was done besides.
pub(crate) fn table(reports: &[Report]) -> anyhow::Result<()> {
    let mut table = super::table([
        "NAME",
        "OUTCOME",
        "SERIAL",
        "CONTENT",
        "MOVED",
        "REBUILT",
        "KEPT",
        "ALL.JSON.GZ",
        "TIME",
    ]);
    for report in reports {
        table.add_row([
            report.catalog.to_string(),
            report.outcome.as_str().to_owned(),
            report.serial.map(|serial| serial.to_string()).unwrap_or_default(),
            report.content_hash.as_ref().map(short).unwrap_or_default(),
            bytes(report.moved.bytes),
            bytes(report.rebuilt.bytes),
            bytes(report.kept.bytes),
            bytes(report.full_bytes),
            format!("{} ms", report.duration.as_millis()),
        ]);
    }
    print_table(&table)?;
    for report in reports {
        for key in &report.not_rebuilt {
            eprintln!(
                "{}: {key} was moved: this program's compressor gives other bytes",
                report.catalog
            );
        }
        for key in &report.repaired {
            eprintln!("{}: {key} was replaced", report.catalog);
        }
        if let Some(error) = report.error_text() {
            eprintln!("{}: {error}", report.catalog);
        }
    }
    Ok(())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    catalog: &'a str,
    outcome: &'static str,
    error: Option<String>,
    serial: Option<u64>,
    content_hash: Option<String>,
    moved: ::sync::Tally,
    rebuilt: ::sync::Tally,
    kept: ::sync::Tally,
    not_rebuilt: &'a [String],
    repaired: &'a [String],
    full_bytes: u64,
    duration_ms: u128,
}

/// An array with everything the reports know.
pub(crate) fn json(reports: &[Report]) -> anyhow::Result<()> {
    let lines = reports.iter().map(|report| Line {
        catalog: report.catalog.as_str(),
        outcome: report.outcome.as_str(),
        error: report.error_text(),
        serial: report.serial,
        content_hash: report.content_hash.map(|hash| hash.to_string()),
        moved: report.moved,
        rebuilt: report.rebuilt,
        kept: report.kept,
        not_rebuilt: &report.not_rebuilt,
        repaired: &report.repaired,
        full_bytes: report.full_bytes,
        duration_ms: report.duration.as_millis(),
    });
    print_json(&lines.collect::<Vec<_>>())
}

/// A volume that was written: its file, and what it holds.
pub(crate) type Written = (String, Stored);

/// One line per volume, as people compare them on the other side.
pub(crate) fn volumes_table(volumes: &[Written]) -> anyhow::Result<()> {
    let mut table = super::table(["VOLUME", "SIZE", "SHA256"]);
    for (name, stored) in volumes {
        table.add_row([name.clone(), bytes(stored.size), stored.sha256.to_string()]);
    }
    print_table(&table)
}

/// The same for programs, with what the archive brings.
pub(crate) fn volumes_json(manifest: &Manifest, volumes: &[Written]) -> anyhow::Result<()> {
    let volumes = volumes
        .iter()
        .map(|(name, stored)| json!({"file": name, "size": stored.size, "sha256": stored.sha256}));
    print_json(&json!({
        "catalogs": manifest.catalogs,
        "objects": manifest.objects.len(),
        "bytes": manifest.objects.iter().map(|object| object.size).sum::<u64>(),
        "volumes": volumes.collect::<Vec<_>>(),
    }))
}
