use model::{CatalogName, Sha256};
use olm::{SearchHit, SearchResults};
use serde_json::json;

use super::{TextTable, print_json};

/// Longest sentence about a package in the table, in characters.
const SUMMARY_CHARS: usize = 60;

/// Packages of one catalog that were found.
pub(crate) struct CatalogAnswer {
    pub(crate) catalog: CatalogName,
    pub(crate) content_hash: Sha256,
    pub(crate) found: SearchResults,
}

/// Prints the best packages of all catalogs, and the number of the others.
pub(crate) fn table(answers: &[CatalogAnswer], limit: usize) -> anyhow::Result<()> {
    let hits = answers
        .iter()
        .flat_map(|answer| answer.found.results.iter().map(|hit| (&answer.catalog, hit)));
    let mut hits: Vec<(&CatalogName, &SearchHit)> = hits.collect();
    // Stable: without a text all have the same score, and catalogs stay together.
    hits.sort_by(|(_, one), (_, other)| other.score.total_cmp(&one.score));
    hits.truncate(limit);
    let mut table = TextTable::new([
        "CATALOG", "PACKAGE", "NAME", "VERSION", "CHANNEL", "PROVIDER", "SUMMARY",
    ]);
    for (catalog, hit) in &hits {
        table.row([
            catalog.as_str(),
            &hit.package,
            &hit.display_name,
            &hit.version,
            &hit.channel,
            &hit.provider,
            &cut(&hit.summary),
        ]);
    }
    table.print()?;
    let total: u64 = answers.iter().map(|answer| answer.found.total).sum();
    match total.saturating_sub(hits.len() as u64) {
        0 if total == 0 => println!("no package has all of these words"),
        0 => {}
        more => println!("{more} more; --limit shows more of them, --category, --provider and --arch fewer"),
    }
    Ok(())
}

/// Prints an answer for each catalog, as `GET /catalogs/{catalog}/search` has it.
pub(crate) fn json(query: &str, answers: &[CatalogAnswer]) -> anyhow::Result<()> {
    let answers = answers.iter().map(|answer| {
        json!({
            "catalog": answer.catalog,
            "contentHash": answer.content_hash,
            "query": query,
            "total": answer.found.total,
            "results": answer.found.results,
            "facets": answer.found.facets,
        })
    });
    print_json(&answers.collect::<Vec<_>>())
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SUMMARY_CHARS) {
        Some((at, _)) => format!("{}...", text[..at].trim_end()),
        None => text.to_owned(),
    }
}
