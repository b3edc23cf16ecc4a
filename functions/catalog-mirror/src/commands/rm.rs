use std::sync::Arc;

use clap::Args;
use inspect::published;
use model::CatalogName;
use model::text::chain;
use serde::Serialize;
use store::Store;
use terminal::{Exit, join, print_done, print_failure, print_report};

use crate::args::{Access, StoreArgs};

#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Remove a catalog also if compositions are made of it, or rings follow it. They stay served as
    /// they are, and wait for it.
    #[arg(long)]
    force: bool,
    /// Print JSON instead of lines.
    #[arg(long)]
    json: bool,
    /// Catalogs to remove. One that the store does not have is an error.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<CatalogName>,
}

/// Result for one catalog.
#[derive(Serialize)]
struct Removal {
    catalog: CatalogName,
    /// Number of documents that were removed.
    documents: usize,
    /// Cause for which it was not removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(crate) async fn run(args: RmArgs) -> anyhow::Result<Exit> {
    let store = args.store.open_alone(Access::Write).await?;
    let mut removals = Vec::new();
    for name in &args.names {
        let removed = remove(&store, name, &args).await;
        let error = removed.as_ref().err();
        removals.push(Removal {
            catalog: name.clone(),
            error: error.map(|error| chain(error.as_ref())),
            documents: removed.unwrap_or(0),
        });
    }
    print_report(&removals, args.json, |removals| print_removals(removals))?;
    let is_done = removals.iter().all(|removal| removal.error.is_none());
    Ok(Exit::of_check(is_done))
}

/// Removes a catalog. Returns the number of its documents.
async fn remove(
    store: &Arc<dyn Store>,
    name: &CatalogName,
    args: &RmArgs,
) -> anyhow::Result<usize> {
    let mut followers = published::followers(&**store, name).await?;
    followers.retain(|follower| !args.names.contains(follower));
    anyhow::ensure!(
        args.force || followers.is_empty(),
        "other catalogs are made of it or follow it: {}. Remove them too, or add --force.",
        join(&followers)
    );
    match publish::remove(&**store, name).await? {
        Some(removed) => Ok(removed),
        None => anyhow::bail!("{}", published::unknown(&**store, name).await?),
    }
}

fn print_removals(removals: &[Removal]) -> anyhow::Result<()> {
    for removal in removals {
        let name = &removal.catalog;
        match &removal.error {
            Some(error) => print_failure(name.as_str(), error),
            None => print_done(&format!(
                "{name}: removed {} documents. Its objects stay until `catalog-mirror gc` has collected them.",
                removal.documents
            ))?,
        }
    }
    Ok(())
}
