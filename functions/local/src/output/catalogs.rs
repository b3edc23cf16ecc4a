use layout::{CatalogName, Current, SignedBy, Snapshot, Status, Verified};
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
    let mut heads = vec![
        "NAME",
        "SERIAL",
        "CONTENT",
        "PACKAGES",
        "SIZE",
        "PUBLISHED",
        "LAST POLL",
        "OUTCOME",
        "SOURCE",
    ];
    // Most stores have no policies, and the table is wide enough.
    let is_verified = rows.iter().any(|row| row.verified().is_some());
    if is_verified {
        heads.push("SIGNED BY");
    }
    let mut table = super::table(heads);
    for row in rows {
        let current = row.current.as_ref();
        let snapshot = row.snapshot.as_ref();
        let status = row.status.as_ref();
        let mut cells = vec![
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
        ];
        if is_verified {
            cells.push(row.verified().map(signers).unwrap_or_default());
        }
        table.add_row(cells);
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

impl Row {
    fn verified(&self) -> Option<&Verified> {
        self.current.as_ref()?.verified()
    }
}

/// How, and by the beginning of which key.
fn signers(verified: &Verified) -> String {
    let one = |by: &SignedBy| format!("{} {}", by.method, by.key.chars().take(12).collect::<String>());
    let all: Vec<_> = verified.by.iter().map(one).collect();
    all.join(", ")
}

fn image(snapshot: &Snapshot) -> Option<String> {
    let image = snapshot.image.as_ref()?;
    Some(format!("sha256:{}", image.index.sha256))
}

fn time(time: std::time::SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}
