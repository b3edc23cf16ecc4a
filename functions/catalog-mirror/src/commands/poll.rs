use clap::Args;
use model::CatalogName;
use publish::PollOptions;
use terminal::Exit;

use crate::args::{CatalogArgs, ReportArgs, StoreArgs};
use crate::polls::{self, PollPlace};

#[derive(Debug, Args)]
pub(crate) struct PollArgs {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    catalogs: CatalogArgs,
    /// Pull even if the digest is known or has failed for good, and publish even if many packages
    /// are gone or the content would be held back.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    report: ReportArgs,
    /// Catalogs of the configuration to poll. Default: all.
    #[arg(value_name = "NAME")]
    names: Vec<CatalogName>,
}

pub(crate) async fn run(args: PollArgs) -> anyhow::Result<Exit> {
    let PollArgs {
        store,
        catalogs,
        force,
        report,
        names,
    } = args;
    let place = PollPlace {
        store,
        catalogs,
        report,
    };
    let options = PollOptions {
        force,
        ..PollOptions::default()
    };
    polls::run(place, |config| polls::chosen(config, &names), options).await
}
