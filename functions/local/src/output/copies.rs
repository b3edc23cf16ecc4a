use ::sync::{Manifest, SyncReport};
use model::ObjectDigest;
use publish::ObjectStats;
use serde::Serialize;
use serde_json::json;

use super::{TextTable, bytes, number, print_json, short};

/// Prints one line for each catalog, then rebuilt and repaired objects and errors.
pub(crate) fn table(reports: &[SyncReport]) -> anyhow::Result<()> {
    let mut table = TextTable::new([
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
        table.row([
            report.catalog.to_string(),
            report.outcome.as_str().to_owned(),
            number(report.serial),
            report.content_hash.as_ref().map(short).unwrap_or_default(),
            bytes(report.moved.bytes),
            bytes(report.rebuilt.bytes),
            bytes(report.kept.bytes),
            bytes(report.full_bytes),
            format!("{} ms", report.duration.as_millis()),
        ]);
    }
    table.print()?;
    for report in reports {
        for key in &report.not_rebuilt {
            eprintln!(
                "{}: {key} was fetched: the compressor of this program produces other bytes",
                report.catalog
            );
        }
        for key in &report.repaired {
            eprintln!("{}: {key} was replaced", report.catalog);
        }
        if report.not_served {
            eprintln!("{}: the origin lists it and does not serve it", report.catalog);
        }
    }
    let failed = |report: &SyncReport| Some((report.catalog.to_string(), report.error_text()?));
    super::print_errors(reports.iter().filter_map(failed));
    Ok(())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReportLine<'a> {
    catalog: &'a str,
    outcome: &'static str,
    error: Option<String>,
    serial: Option<u64>,
    content_hash: Option<String>,
    moved: ObjectStats,
    rebuilt: ObjectStats,
    kept: ObjectStats,
    not_rebuilt: &'a [String],
    repaired: &'a [String],
    full_bytes: u64,
    not_served: bool,
    duration_ms: u128,
}

/// Prints an array with all fields of the reports.
pub(crate) fn json(reports: &[SyncReport]) -> anyhow::Result<()> {
    let lines = reports.iter().map(|report| ReportLine {
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
        not_served: report.not_served,
        duration_ms: report.duration.as_millis(),
    });
    print_json(&lines.collect::<Vec<_>>())
}

/// A volume that was written: the name of its file, and its hash and size.
pub(crate) type WrittenVolume = (String, ObjectDigest);

/// Prints one line for each volume, with the hash to compare on the other side.
pub(crate) fn volumes_table(volumes: &[WrittenVolume]) -> anyhow::Result<()> {
    let mut table = TextTable::new(["VOLUME", "SIZE", "SHA256"]);
    for (name, stored) in volumes {
        table.row([name.clone(), bytes(stored.size), stored.sha256.to_string()]);
    }
    table.print()
}

/// Prints the volumes and the content of the archive as JSON.
pub(crate) fn volumes_json(manifest: &Manifest, volumes: &[WrittenVolume]) -> anyhow::Result<()> {
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
