use anyhow::Context;
use clap::Args;
use model::CatalogName;

use crate::args::{Access, StoreArgs};
use crate::published;
use terminal::{Exit, join, print_done, print_failure, say};

#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Remove a catalog also if compositions are made of it. They stay served as they are, and wait
    /// for it.
    #[arg(long)]
    force: bool,
    /// Catalogs to remove. One that the store does not have is an error.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<CatalogName>,
}

pub(crate) async fn run(args: RmArgs) -> anyhow::Result<Exit> {
    let store = args.store.open_alone(Access::Write).await?;
    let mut exit = Exit::Success;
    for name in &args.names {
        let mut followers = publish::followers(&*store, name).await?;
        followers.retain(|follower| !args.names.contains(follower));
        if !args.force && !followers.is_empty() {
            let followers = join(&followers);
            say(&format!(
                "{name}: compositions are made of it: {followers}. Remove them too, or add --force."
            ));
            exit = Exit::Failed;
            continue;
        }
        let removed = publish::remove(&*store, name).await;
        match removed.with_context(|| format!("cannot remove {name}"))? {
            Some(removed) => print_done(&format!(
                "{name}: removed {removed} documents. Its objects stay until `catalog-mirror gc` has collected them."
            ))?,
            None => {
                print_failure("error", &published::unknown(&*store, name).await?);
                exit = Exit::Failed;
            }
        }
    }
    Ok(exit)
}
