use std::path::PathBuf;
use std::time::Duration;

use ::sync::{Copier, SyncOptions, SyncOrigin};
use clap::Args;
use config::poll_interval;
use model::CatalogName;
use store::StorePlace;

use terminal::Exit;

use crate::args::{Access, AllowArgs, ReportArgs, S3Args, TrustArgs};
use crate::reports::print_copies;
use crate::{progress, wiring};

#[derive(Debug, Args)]
pub(crate) struct SyncArgs {
    /// URL of a mirror (a CDN, `serve`, any static file server over the folder of a store), or a
    /// store.
    #[arg(value_name = "FROM")]
    pub(crate) from: SyncOrigin,
    /// Store to bring up to date: a folder, or s3://BUCKET[/PREFIX].
    #[arg(value_name = "TO")]
    pub(crate) to: StorePlace,
    /// Catalogs to copy. Default: all that FROM lists in its catalogs.json.
    #[arg(value_name = "NAME")]
    names: Vec<CatalogName>,
    /// Keep running and check for changes at this interval, from 1s to 365d.
    #[arg(long, value_name = "INTERVAL", num_args = 0..=1, default_missing_value = "10m", value_parser = poll_interval)]
    pub(crate) watch: Option<Duration>,
    /// Fetch all.json, the index and the image too. Default: build them from the shards, unless
    /// FROM is a folder.
    #[arg(long)]
    fetch_all: bool,
    /// Check the objects of TO against their hashes, and replace damaged ones.
    #[arg(long)]
    recheck: bool,
    #[command(flatten)]
    allow: AllowArgs,
    /// PEM bundle of certificates to trust in addition to the system's. May be repeated.
    #[arg(long, value_name = "FILE")]
    ca_file: Vec<PathBuf>,
    /// File of header fields to send to FROM, one a line, such as `Authorization: Bearer ...`.
    #[arg(long, value_name = "FILE")]
    header_file: Option<PathBuf>,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    s3: S3Args,
}

pub(crate) async fn run(args: SyncArgs) -> anyhow::Result<Exit> {
    args.s3
        .check_used([&args.to].into_iter().chain(args.from.store()))?;
    let origin = wiring::origin(
        &args.from,
        &args.s3,
        &args.ca_file,
        args.header_file.as_deref(),
    )
    .await?;
    let options = SyncOptions {
        // Copying from a folder costs less than compressing.
        fetch_all: args.fetch_all || matches!(args.from.store(), Some(StorePlace::Folder(_))),
        recheck: args.recheck,
        trust: wiring::trust(&args.trust)?,
        ..args.allow.options(args.from.shown())
    };
    let copier = Copier::new(
        origin,
        args.s3.open(&args.to, Access::Create).await?,
        options,
    );
    // The origin's list is read again in each round.
    let round = async || -> anyhow::Result<_> {
        match args.names.as_slice() {
            [] => Ok(copier.copy_listed().await?),
            names => Ok(copier.copy_all(names).await),
        }
    };
    let Some(interval) = args.watch else {
        let shown = progress::show_copy(copier.progress(), args.report.json);
        let reports = round().await;
        shown.finish_and_clear();
        return print_copies(&reports?, args.report);
    };
    // A copy in progress is abandoned, and the old state stays published.
    wiring::watch(interval, "cannot sync", round).await?;
    Ok(Exit::Success)
}
