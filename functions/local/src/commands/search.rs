use std::{path::PathBuf, sync::Arc};

use ::sync::{Address, Origin, StoreOrigin, collect};
use anyhow::Context;
use clap::Args;
use model::{
    CatalogName, Current, Document, Facts, Key, ObjectDigest, ObjectRef, SearchPackage, Sha256, Snapshot,
    StoredDocument,
};
use olm::{SEARCH, SEARCH_LIMIT_MAX, SearchFilter, SearchHit, SearchIndex, SearchQuery, SearchResults};
use serde::Serialize;

use super::sync::{SyncOrigin, origin};
use crate::{
    args::{Access, StoreArgs},
    exit::Exit,
    output::{print_json, print_rows},
};

/// Longest sentence about a package in the table, in characters.
const SUMMARY_CHARS: usize = 60;

#[derive(Debug, Args)]
#[command(after_help = "\
A package is found if it has all words: in its name, the names, keywords and kinds of APIs of its newest bundle, its \
provider or its descriptions. Case and accents do not count, the start of a word is enough, and one typo is forgiven. A query has at \
most ten words. Of a package with more than 64 KiB of keywords, kinds and words the first are found.

Exit codes: 0 done, even if nothing was found, 1 a catalog cannot be searched.")]
pub(crate) struct SearchArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Search another mirror, its CDN or its bucket instead of the store.
    #[arg(long, value_name = "URL", conflicts_with = "store")]
    pub(crate) url: Option<Address>,
    /// PEM bundle of certificates to trust in addition to the system's, for --url. May be repeated.
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) ca_file: Vec<PathBuf>,
    /// File of header fields to send to --url, one a line, such as `Authorization: Bearer ...`.
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) header_file: Option<PathBuf>,
    /// Catalog to search. May be repeated. Default: all.
    #[arg(long, value_name = "NAME")]
    pub(crate) catalog: Vec<CatalogName>,
    /// Only the package of this name.
    #[arg(long, value_name = "NAME")]
    pub(crate) package: Option<String>,
    /// Only packages of this category, such as Database.
    #[arg(long, value_name = "TEXT")]
    pub(crate) category: Option<String>,
    /// Only packages of this provider.
    #[arg(long, value_name = "TEXT")]
    pub(crate) provider: Option<String>,
    /// Only packages of this capability level, such as "Deep Insights".
    #[arg(long, value_name = "TEXT")]
    pub(crate) capability: Option<String>,
    /// Only packages for this CPU, such as arm64.
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// Maximum number of packages of each catalog.
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = search_limit)]
    pub(crate) limit: usize,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Words to find. Without any, all packages are listed.
    #[arg(value_name = "QUERY")]
    pub(crate) query: Vec<String>,
}

/// Parses a number of packages.
fn search_limit(text: &str) -> Result<usize, String> {
    let limit = text.parse().ok().filter(|limit| (1..=SEARCH_LIMIT_MAX).contains(limit));
    limit.ok_or_else(|| format!("write a number from 1 to {SEARCH_LIMIT_MAX}"))
}

pub(crate) async fn run(args: SearchArgs) -> anyhow::Result<Exit> {
    let origin = match &args.url {
        Some(url) => {
            let from = SyncOrigin::Http(url.clone());
            origin(&from, &args.store.s3, &args.ca_file, args.header_file.as_deref()).await?
        }
        None => Arc::new(StoreOrigin(args.store.open_alone(Access::Read).await?)),
    };
    let names = if args.catalog.is_empty() {
        origin.names().await.context("cannot list the catalogs")?
    } else {
        args.catalog.iter().cloned().collect()
    };
    anyhow::ensure!(!names.is_empty(), "there are no catalogs");
    let query = SearchQuery {
        text: args.query.join(" "),
        filter: SearchFilter {
            package: args.package,
            category: args.category,
            provider: args.provider,
            capability: args.capability,
            arch: args.arch,
        },
        offset: 0,
        limit: args.limit,
    };
    let (mut answers, mut exit) = (Vec::new(), Exit::Success);
    for name in names {
        match search(&*origin, &name, &query).await {
            Ok(answer) => answers.push(answer),
            Err(error) => {
                eprintln!("error: {name}: {error:#}");
                exit = Exit::Failed;
            }
        }
    }
    print_found(&answers, query.limit, args.json)?;
    Ok(exit)
}

async fn search(origin: &dyn Origin, name: &CatalogName, query: &SearchQuery) -> anyhow::Result<SearchAnswer> {
    let bytes = origin.document(&Key::Current(name.clone()), None).await?;
    let current = Current::from_bytes(&bytes).context("cannot read its current.json")?;
    let snapshot: Snapshot = object(origin, &current.snapshot.digest).await?;
    let texts = snapshot
        .facts
        .get(SEARCH.name)
        .context("it was published without an index for search: publish it again (`catalog-mirror poll --force`)")?;
    let document: Facts<SearchPackage> = object(origin, texts).await?;
    Ok(SearchAnswer {
        catalog: name.clone(),
        content_hash: current.content_hash,
        query: query.text.clone(),
        found: SearchIndex::new(document).find(query)?,
    })
}

/// Reads a stored document, and checks its bytes against their hash.
async fn object<D: StoredDocument>(origin: &dyn Origin, digest: &ObjectDigest) -> anyhow::Result<D> {
    let object: ObjectRef = digest.with_kind(D::KIND);
    let key = object.key();
    let bytes = collect(origin.object(&key, digest.size).await?).await?;
    anyhow::ensure!(
        ObjectDigest::of(&bytes) == *digest,
        "{key} does not have the bytes of its name"
    );
    D::from_stored(&bytes).with_context(|| format!("cannot read {key}"))
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

/// Prints all answers as JSON, or the best packages of all catalogs and the number of the others.
pub(crate) fn print_found(answers: &[SearchAnswer], limit: usize, json: bool) -> anyhow::Result<()> {
    if json {
        return print_json(&answers);
    }
    let hits = answers.iter().flat_map(|answer| {
        let results = answer.found.results.iter();
        results.map(|hit| (&answer.catalog, hit))
    });
    let mut hits: Vec<(&CatalogName, &SearchHit)> = hits.collect();
    // Stable: without a text all have the same score, and catalogs stay together.
    hits.sort_by(|(_, one), (_, other)| other.score.total_cmp(&one.score));
    hits.truncate(limit);
    let rows = hits.iter().map(|(catalog, hit)| {
        let summary = cut(&hit.summary);
        let (package, name, version) = (&hit.package, &hit.display_name, &hit.version);
        let cells = [
            catalog.as_str(),
            package,
            name,
            version,
            &hit.channel,
            &hit.provider,
            &summary,
        ];
        cells.map(str::to_owned).to_vec()
    });
    let headers = "CATALOG | PACKAGE | NAME | VERSION | CHANNEL | PROVIDER | SUMMARY";
    print_rows(headers, &rows.collect::<Vec<_>>())?;
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
