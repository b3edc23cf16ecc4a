use clap::Args;
use model::CatalogName;
use publish::PollOptions;
use terminal::Exit;

use crate::polls::{self, PollPlace};

#[derive(Debug, Args)]
pub(crate) struct PollArgs {
    #[command(flatten)]
    place: PollPlace,
    /// Pull even if the digest is known or has failed for good, and publish even if many packages
    /// are gone or the content would be held back.
    #[arg(long)]
    force: bool,
    /// Catalogs of the configuration to poll. Default: all.
    #[arg(value_name = "NAME")]
    names: Vec<CatalogName>,
}

pub(crate) async fn run(args: PollArgs) -> anyhow::Result<Exit> {
    let options = PollOptions {
        force: args.force,
        ..PollOptions::default()
    };
    polls::run(args.place, &args.names, options).await
}
