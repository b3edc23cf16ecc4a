use layout::{CatalogName, Current, Snapshot, Status};
use serde_json::json;

use super::{bytes, print_json, print_table, short};

/// What the store says of one catalog.
pub(crate) struct Row {
    pub(crate) name: CatalogName,
    pub(crate) current: Option<Current>,
    pub(crate) snapshot: Option<Snapshot>,
    pub(crate) status: Option<Status>,
}

/// One line per catalog, then the errors of the last polls.
pub(crate) fn table(rows: &[Row]) -> anyhow::Result<()> {
    let mut table = super::table([
        "NAME",
        "SERIAL",
        "CONTENT",
        "PACKAGES",
        "SIZE",
        "PUBLISHED",
        "LAST POLL",
        "OUTCOME",
        "SOURCE",
    ]);
    for row in rows {
        let current = row.current.as_ref();
        let snapshot = row.snapshot.as_ref();
        let status = row.status.as_ref();
        table.add_row([
            row.name.to_string(),
            current.map(|current| current.serial.to_string()).unwrap_or_default(),
            current.map(|current| short(&current.content_hash)).unwrap_or_default(),
            snapshot
                .map(|snapshot| snapshot.packages.len().to_string())
                .unwrap_or_default(),
            snapshot.map(|snapshot| bytes(snapshot.size)).unwrap_or_default(),
            current.map(|current| time(current.published_at)).unwrap_or_default(),
            status.map(|status| time(status.last_poll)).unwrap_or_default(),
            status
                .map(|status| status.outcome.as_str().to_owned())
                .unwrap_or_default(),
            current
                .map(|current| current.source.reference.clone())
                .unwrap_or_default(),
        ]);
    }
    print_table(&table)?;
    for row in rows {
        if let Some(error) = row.status.as_ref().and_then(|status| status.error.as_ref()) {
            println!("{}: {error}", row.name);
        }
    }
    Ok(())
}

/// The documents themselves, and by which digest the catalog is pulled as an image.
pub(crate) fn json(rows: &[Row]) -> anyhow::Result<()> {
    let lines = rows.iter().map(|row| {
        json!({
            "name": row.name,
            "current": row.current,
            "packages": row.snapshot.as_ref().map(|snapshot| snapshot.packages.len()),
            "metas": row.snapshot.as_ref().map(|snapshot| snapshot.metas),
            "size": row.snapshot.as_ref().map(|snapshot| snapshot.size),
            "image": row.snapshot.as_ref().and_then(image),
            "status": row.status,
        })
    });
    print_json(&lines.collect::<Vec<_>>())
}

/// One line per package.
pub(crate) fn packages_table(snapshot: &Snapshot) -> anyhow::Result<()> {
    let mut table = super::table(["PACKAGE", "METAS", "SIZE", "STORED", "SHARD"]);
    for shard in &snapshot.packages {
        table.add_row([
            shard.name.clone(),
            shard.metas.to_string(),
            bytes(shard.size),
            bytes(shard.stored.size),
            short(&shard.sha256),
        ]);
    }
    print_table(&table)
}

/// The packages as the snapshot names them.
pub(crate) fn packages_json(snapshot: &Snapshot) -> anyhow::Result<()> {
    print_json(&snapshot.packages)
}

fn image(snapshot: &Snapshot) -> Option<String> {
    let image = snapshot.image.as_ref()?;
    Some(format!("sha256:{}", image.index.sha256))
}

fn time(time: std::time::SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}
