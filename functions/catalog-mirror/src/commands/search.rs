use std::sync::Arc;

use anyhow::Context;
use clap::{Args, builder::RangedU64ValueParser};
use inspect::published;
use model::{CatalogName, Facts, SearchPackage, Sha256, text::chain};
use olm::{
    SEARCH, SEARCH_LIMIT_MAX, SearchFacet, SearchHit, SearchIndex, SearchQuery, SearchResults,
};
use serde::Serialize;
use store::{Store, read_stored};

use crate::args::{Access, StoreArgs};
use terminal::{Exit, cut, print_json, print_line, print_rows};

/// Longest name for people in the table, in characters.
const NAME_CHARS: usize = 50;

/// Longest sentence about a package in the table, in characters.
const SUMMARY_CHARS: usize = 90;

#[derive(Debug, Args)]
#[command(after_help = "\
A package is found if it has all words: in its name, the names, keywords and kinds of APIs of its newest bundle, its \
provider or its descriptions. Case and accents do not count, the start of a word is enough, and one typo is forgiven. A query has at \
most ten words. Of a package with more than 64 KiB of keywords, kinds and words the first are found.

SUMMARY begins with the name for people. CATALOG is shown if several are searched; --json has all fields, such as the provider.

Exit codes: 0 done, even if nothing was found, 1 a catalog cannot be searched.")]
pub(crate) struct SearchArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Catalog to search. May be repeated. Default: all.
    #[arg(long, value_name = "NAME")]
    catalog: Vec<CatalogName>,
    /// Only the package of this name.
    #[arg(long, value_name = "NAME")]
    package: Option<String>,
    /// Only packages of this category, such as Database.
    #[arg(long, value_name = "TEXT")]
    category: Option<String>,
    /// Only packages of this provider.
    #[arg(long, value_name = "TEXT")]
    provider: Option<String>,
    /// Only packages of this capability level, such as "Deep Insights".
    #[arg(long, value_name = "TEXT")]
    capability: Option<String>,
    /// Only packages for this CPU, such as arm64.
    #[arg(long, value_name = "ARCH")]
    arch: Option<String>,
    /// Maximum number of packages of each catalog.
    #[arg(long, value_name = "NUMBER", default_value_t = 20,
          value_parser = RangedU64ValueParser::<usize>::new().range(1..=SEARCH_LIMIT_MAX as u64))]
    limit: usize,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Words to find. Without any, all packages are listed.
    #[arg(value_name = "QUERY")]
    query: Vec<String>,
}

pub(crate) async fn run(args: SearchArgs) -> anyhow::Result<Exit> {
    let store = args.store.open_alone(Access::Read).await?;
    let filter = [
        (SearchFacet::Package, args.package),
        (SearchFacet::Category, args.category),
        (SearchFacet::Provider, args.provider),
        (SearchFacet::Capability, args.capability),
        (SearchFacet::Arch, args.arch),
    ];
    let filter = filter
        .into_iter()
        .filter_map(|(facet, value)| Some((facet, value?)));
    let query = SearchQuery {
        text: args.query.join(" "),
        filter: filter.collect(),
        offset: 0,
        limit: args.limit,
    };
    let mut answers = Vec::new();
    let mut exit = Exit::Success;
    for name in published::some_names(&store, &args.catalog).await? {
        match search(&store, &name, &query).await {
            Ok(answer) => answers.push(answer),
            Err(error) => {
                terminal::print_failure("error", &chain(error.as_ref()));
                exit = Exit::Failed;
            }
        }
    }
    if args.json {
        print_json(&answers)?;
    } else if !answers.is_empty() {
        print_found(&answers, query.limit)?;
    }
    Ok(exit)
}

async fn search(
    store: &Arc<dyn Store>,
    name: &CatalogName,
    query: &SearchQuery,
) -> anyhow::Result<SearchAnswer> {
    let state = published::state(store, name).await?;
    let snapshot = published::snapshot(&state).await?;
    let texts = snapshot.facts.get(SEARCH.name).with_context(|| {
        format!("{name} was published without an index for search: publish it again (`catalog-mirror poll --force`)")
    })?;
    let document: Facts<SearchPackage> = read_stored(&**store, texts).await?;
    Ok(SearchAnswer {
        catalog: name.clone(),
        content_hash: state.current().content_hash,
        query: query.text.clone(),
        found: SearchIndex::new(document).find(query)?,
    })
}

/// Packages of one catalog that were found, as `GET /catalogs/{catalog}/search` has them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SearchAnswer {
    catalog: CatalogName,
    content_hash: Sha256,
    query: String,
    #[serde(flatten)]
    found: SearchResults,
}

/// Package that was found, and its catalog.
struct FoundPackage<'a> {
    catalog: &'a CatalogName,
    hit: &'a SearchHit,
}

/// Prints the best packages of all catalogs and the number of the others.
fn print_found(answers: &[SearchAnswer], limit: usize) -> anyhow::Result<()> {
    let mut found = Vec::new();
    for SearchAnswer {
        catalog,
        found: of_catalog,
        ..
    } in answers
    {
        let hits = of_catalog.results.iter();
        found.extend(hits.map(|hit| FoundPackage { catalog, hit }));
    }
    // Stable: without a text all have the same score, and catalogs stay together.
    found.sort_by(|one, other| other.hit.score.total_cmp(&one.hit.score));
    found.truncate(limit);
    let mut heads = vec!["PACKAGE", "VERSION", "CHANNEL", "SUMMARY"];
    let mut rows: Vec<Vec<String>> = found.iter().map(FoundPackage::cells).collect();
    if answers.len() > 1 {
        heads.insert(0, "CATALOG");
        for (row, package) in rows.iter_mut().zip(&found) {
            row.insert(0, package.catalog.to_string());
        }
    }
    print_rows(&heads, &rows)?;
    let total: u64 = answers.iter().map(|answer| answer.found.total).sum();
    match total.saturating_sub(found.len() as u64) {
        0 if total == 0 => print_line("no package has all of these words"),
        0 => Ok(()),
        more => print_line(&format!(
            "{more} more; --limit shows more of them, --category, --provider and --arch fewer"
        )),
    }
}

impl FoundPackage<'_> {
    /// Returns the cells of the package, without its catalog.
    fn cells(&self) -> Vec<String> {
        let hit = self.hit;
        let name = cut(&hit.display_name, NAME_CHARS);
        let summary = cut(&hit.summary, SUMMARY_CHARS);
        let text = match (name.is_empty(), summary.is_empty()) {
            (false, false) => format!("{name}: {summary}"),
            _ => name + &summary,
        };
        vec![
            hit.package.clone(),
            hit.version.clone(),
            hit.channel.clone(),
            text,
        ]
    }
}
