use anyhow::Context;
use clap::Args;
use model::CatalogName;

use crate::{
    args::{Access, StoreArgs},
    exit::Exit,
    output, published,
};

#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Remove a catalog also if compositions are made of it. They stay served as they are, and wait for it.
    #[arg(long)]
    pub(crate) force: bool,
    /// Catalogs to remove. One that the store does not have is an error.
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<CatalogName>,
}

pub(crate) async fn run(args: RmArgs) -> anyhow::Result<Exit> {
    let store = args.store.open_alone(Access::Write).await?;
    let mut exit = Exit::Success;
    for name in &args.names {
        let followers = publish::followers(&*store, name).await?;
        let mut followers = followers
            .iter()
            .filter(|follower| !args.names.contains(follower))
            .peekable();
        if !args.force && followers.peek().is_some() {
            let followers: Vec<&str> = followers.map(CatalogName::as_str).collect();
            let followers = followers.join(", ");
            eprintln!("{name}: compositions are made of it: {followers}. Remove them too, or add --force.");
            exit = Exit::Failed;
            continue;
        }
        let removed = publish::remove(&*store, name)
            .await
            .with_context(|| format!("cannot remove {name}"))?;
        match removed {
            Some(removed) => println!(
                "{name}: removed {removed} documents. Its objects stay until `catalog-mirror gc` has collected them."
            ),
            None => {
                output::print_failure("error", &published::unknown(&*store, name).await?);
                exit = Exit::Failed;
            }
        }
    }
    Ok(exit)
}
