use std::slice;

use clap::Args;
use config::Config;
use model::CatalogName;
use publish::{PollOptions, Promotion};
use terminal::Exit;

use crate::args::{CatalogArgs, ReportArgs, StoreArgs};
use crate::polls::{self, PollPlace};

#[derive(Debug, Args)]
#[command(after_help = "\
`history NAME` lists what waits; `diff NAME SOURCE` shows what would change, SOURCE being the catalog that the ring follows. A \
ring never goes back by this: `rollback` does that.")]
pub(crate) struct PromoteArgs {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    catalogs: CatalogArgs,
    #[command(flatten)]
    report: ReportArgs,
    /// Name of the ring.
    #[arg(value_name = "NAME")]
    name: CatalogName,
    /// Content hash of the state, or its first digits. Default: the newest one.
    #[arg(value_name = "CONTENT_HASH")]
    content_hash: Option<String>,
}

pub(crate) async fn run(args: PromoteArgs) -> anyhow::Result<Exit> {
    let PromoteArgs {
        store,
        catalogs,
        report,
        name,
        content_hash,
    } = args;
    let place = PollPlace {
        store,
        catalogs,
        report,
    };
    let options = PollOptions {
        promotion: Some(content_hash.map_or(Promotion::Newest, Promotion::State)),
        ..PollOptions::default()
    };
    let choose = |config: &Config| {
        let chosen = polls::chosen(config, slice::from_ref(&name))?;
        let is_ring = chosen.iter().all(|catalog| catalog.source.ring().is_some());
        anyhow::ensure!(
            is_ring,
            "{name} is no ring: only a catalog with `ring` in the configuration is promoted"
        );
        Ok(chosen)
    };
    polls::run(place, choose, options).await
}
