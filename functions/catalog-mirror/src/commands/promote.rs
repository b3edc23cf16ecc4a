use std::slice;

use clap::Args;
use model::CatalogName;
use publish::{PollOptions, Promotion};
use terminal::Exit;

use crate::polls::{self, PollPlace};

#[derive(Debug, Args)]
#[command(after_help = "\
`history NAME` lists what waits; `diff NAME SOURCE` shows what would change, SOURCE being the catalog that the ring follows. A \
ring never goes back by this: `rollback` does that.")]
pub(crate) struct PromoteArgs {
    #[command(flatten)]
    place: PollPlace,
    /// Name of the ring.
    #[arg(value_name = "NAME")]
    name: CatalogName,
    /// Content hash of the state, or its first digits. Default: the newest one.
    #[arg(value_name = "CONTENT_HASH")]
    content_hash: Option<String>,
}

pub(crate) async fn run(args: PromoteArgs) -> anyhow::Result<Exit> {
    let promotion = args
        .content_hash
        .map_or(Promotion::Newest, Promotion::State);
    let options = PollOptions {
        promotion: Some(promotion),
        ..PollOptions::default()
    };
    polls::run(args.place, slice::from_ref(&args.name), options).await
}
