//! Content of a store: catalogs, packages, search results, verifications and volumes of an archive.

use model::{CatalogName, Current, ObjectDigest, Sha256, ShardRef, SignedBy, Status, Verified};
use olm::{SearchHit, SearchResults};
use serde::Serialize;
use upkeep::Verification;

use super::{Table, bytes, cell, print, print_json, print_table, printable, short};

/// Longest sentence about a package in the table, in characters.
const SUMMARY_CHARS: usize = 60;

/// Catalog of a store and its documents, as far as they exist.
#[derive(Serialize)]
pub(crate) struct ListedCatalog {
    pub(crate) name: CatalogName,
    pub(crate) current: Option<Current>,
    pub(crate) packages: Option<usize>,
    pub(crate) metas: Option<u64>,
    pub(crate) size: Option<u64>,
    /// Digest by which the catalog is pulled as an image.
    pub(crate) image: Option<String>,
    pub(crate) status: Option<Status>,
}

impl Table for ListedCatalog {
    const HEADERS: &'static [&'static str] = &[
        "NAME",
        "SERIAL",
        "CONTENT",
        "PACKAGES",
        "SIZE",
        "PUBLISHED",
        "LAST POLL",
        "OUTCOME",
        "SOURCE",
        "SIGNED BY",
    ];
    // Most stores have no policies, and the table is wide enough.
    const LAST_IS_OPTIONAL: bool = true;

    fn row(&self) -> Vec<String> {
        let (current, status) = (self.current.as_ref(), self.status.as_ref());
        let time = humantime::format_rfc3339_seconds;
        vec![
            self.name.to_string(),
            cell(current.map(|current| current.serial)),
            cell(current.map(|current| short(&current.content_hash))),
            cell(self.packages),
            cell(self.size.map(bytes)),
            cell(current.map(|current| time(current.published_at))),
            cell(status.map(|status| time(status.last_poll))),
            cell(status.map(|status| status.outcome.as_str())),
            cell(current.map(|current| &current.source.reference)),
            cell(current.and_then(Current::verified).map(signers)),
        ]
    }
}

/// Prints the catalogs of a store, then the errors of the last polls.
pub(crate) fn print_catalogs(catalogs: &[ListedCatalog], json: bool) -> anyhow::Result<()> {
    print(catalogs, json)?;
    for catalog in catalogs.iter().filter(|_| !json) {
        if let Some(error) = catalog.status.as_ref().and_then(|status| status.error.as_ref()) {
            println!("{}: {}", catalog.name, printable(error));
        }
    }
    Ok(())
}

/// Returns the method of each signature and the first 12 characters of its key.
fn signers(verified: &Verified) -> String {
    let one = |by: &SignedBy| format!("{} {}", by.method, by.key.chars().take(12).collect::<String>());
    verified.by.iter().map(one).collect::<Vec<_>>().join(", ")
}

impl Table for ShardRef {
    const HEADERS: &'static [&'static str] = &["PACKAGE", "METAS", "SIZE", "STORED", "SHARD"];

    fn row(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            self.metas.to_string(),
            bytes(self.lines.size),
            bytes(self.stored.size),
            short(&self.lines.sha256),
        ]
    }
}

/// Packages of one catalog that were found, as `GET /catalogs/{catalog}/search` has them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SearchAnswer {
    pub(crate) catalog: CatalogName,
    pub(crate) content_hash: Sha256,
    pub(crate) query: String,
    #[serde(flatten)]
    pub(crate) found: SearchResults,
}

/// Package that was found, and its catalog.
struct FoundPackage<'a>(&'a CatalogName, &'a SearchHit);

impl Table for FoundPackage<'_> {
    const HEADERS: &'static [&'static str] = &[
        "CATALOG", "PACKAGE", "NAME", "VERSION", "CHANNEL", "PROVIDER", "SUMMARY",
    ];

    fn row(&self) -> Vec<String> {
        let Self(catalog, hit) = self;
        vec![
            catalog.to_string(),
            hit.package.clone(),
            hit.display_name.clone(),
            hit.version.clone(),
            hit.channel.clone(),
            hit.provider.clone(),
            cut(&hit.summary),
        ]
    }
}

/// Prints all answers as JSON, or the best packages of all catalogs and the number of the others.
pub(crate) fn print_found(answers: &[SearchAnswer], limit: usize, json: bool) -> anyhow::Result<()> {
    if json {
        return print_json(&answers);
    }
    let hits = answers.iter().flat_map(|answer| {
        let results = answer.found.results.iter();
        results.map(|hit| FoundPackage(&answer.catalog, hit))
    });
    let mut hits: Vec<FoundPackage<'_>> = hits.collect();
    // Stable: without a text all have the same score, and catalogs stay together.
    hits.sort_by(|one, other| other.1.score.total_cmp(&one.1.score));
    hits.truncate(limit);
    print_table(&hits)?;
    let total: u64 = answers.iter().map(|answer| answer.found.total).sum();
    match total.saturating_sub(hits.len() as u64) {
        0 if total == 0 => println!("no package has all of these words"),
        0 => {}
        more => println!("{more} more; --limit shows more of them, --category, --provider and --arch fewer"),
    }
    Ok(())
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SUMMARY_CHARS) {
        Some((at, _)) => format!("{}...", text[..at].trim_end()),
        None => text.to_owned(),
    }
}

/// Catalog that was verified.
#[derive(Serialize)]
pub(crate) struct VerifiedCatalog {
    pub(crate) catalog: CatalogName,
    #[serde(flatten)]
    pub(crate) found: Verification,
}

impl Table for VerifiedCatalog {
    const HEADERS: &'static [&'static str] = &["NAME", "SNAPSHOTS", "OBJECTS", "SIZE", "FINDINGS"];

    fn row(&self) -> Vec<String> {
        vec![
            self.catalog.to_string(),
            self.found.snapshots.to_string(),
            self.found.objects.to_string(),
            bytes(self.found.bytes),
            self.found.findings.len().to_string(),
        ]
    }
}

/// Prints the catalogs that were verified, then every finding.
pub(crate) fn print_verified(catalogs: &[VerifiedCatalog], json: bool) -> anyhow::Result<()> {
    print(catalogs, json)?;
    for finding in catalogs
        .iter()
        .filter(|_| !json)
        .flat_map(|catalog| &catalog.found.findings)
    {
        println!("{} {}", finding.key, finding.problem);
    }
    Ok(())
}

/// Volume of an archive that was written. The other side compares its hash.
#[derive(Serialize)]
pub(crate) struct WrittenVolume {
    pub(crate) file: String,
    #[serde(flatten)]
    pub(crate) stored: ObjectDigest,
}

impl Table for WrittenVolume {
    const HEADERS: &'static [&'static str] = &["VOLUME", "SIZE", "SHA256"];

    fn row(&self) -> Vec<String> {
        vec![
            self.file.clone(),
            bytes(self.stored.size),
            self.stored.sha256.to_string(),
        ]
    }
}
