use model::{CatalogName, Current, SignedBy, Snapshot, Status, Verified};
use serde_json::json;

use super::{TextTable, bytes, number, print_json, printable, short};

/// A catalog of a store and its documents, as far as they exist.
pub(crate) struct CatalogRow {
    pub(crate) name: CatalogName,
    pub(crate) current: Option<Current>,
    pub(crate) snapshot: Option<Snapshot>,
    pub(crate) status: Option<Status>,
}

/// Prints one line for each catalog, then the errors of the last polls.
pub(crate) fn table(rows: &[CatalogRow]) -> anyhow::Result<()> {
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
    let mut table = TextTable::new(heads);
    for row in rows {
        let current = row.current.as_ref();
        let snapshot = row.snapshot.as_ref();
        let status = row.status.as_ref();
        let mut cells = vec![
            row.name.to_string(),
            number(current.map(|current| current.serial)),
            current.map(|current| short(&current.content_hash)).unwrap_or_default(),
            number(snapshot.map(|snapshot| snapshot.packages.len())),
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
        table.row(cells);
    }
    table.print()?;
    for row in rows {
        if let Some(error) = row.status.as_ref().and_then(|status| status.error.as_ref()) {
            println!("{}: {}", row.name, printable(error));
        }
    }
    Ok(())
}

/// Prints the documents themselves, and the digest by which the catalog is pulled as an image.
pub(crate) fn json(rows: &[CatalogRow]) -> anyhow::Result<()> {
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

/// Prints one line for each package.
pub(crate) fn packages_table(snapshot: &Snapshot) -> anyhow::Result<()> {
    let mut table = TextTable::new(["PACKAGE", "METAS", "SIZE", "STORED", "SHARD"]);
    for shard in &snapshot.packages {
        table.row([
            shard.name.clone(),
            shard.metas.to_string(),
            bytes(shard.lines.size),
            bytes(shard.stored.size),
            short(&shard.lines.sha256),
        ]);
    }
    table.print()
}

/// Prints the packages as the snapshot names them.
pub(crate) fn packages_json(snapshot: &Snapshot) -> anyhow::Result<()> {
    print_json(&snapshot.packages)
}

impl CatalogRow {
    fn verified(&self) -> Option<&Verified> {
        self.current.as_ref()?.verified()
    }
}

/// Returns the method of each signature and the first 12 characters of its key.
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
