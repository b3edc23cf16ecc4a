use std::slice;

use clap::{ArgGroup, Args};
use inspect::published;
use model::CatalogName;
use upkeep::RollbackOptions;

use crate::args::{Access, KeyArgs, ReportArgs, StoreArgs, files_and_keys};
use crate::reports::print_polls;
use crate::wiring;
use terminal::Exit;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("target").required(true))]
#[command(after_help = "\
With --config the receivers in `notify` get their events at once. Receivers of a mirror that is polled elsewhere get them by \
its next poll.")]
pub(crate) struct RollbackArgs {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    keys: KeyArgs,
    /// Publish the state before the current one.
    #[arg(long, group = "target")]
    previous: bool,
    /// Publish a state that was not verified, or under another policy, although the source is
    /// verified now.
    #[arg(long)]
    unverified: bool,
    /// Name of the catalog.
    #[arg(value_name = "NAME")]
    pub(crate) name: CatalogName,
    /// Content hash of the state to publish, or its first digits.
    #[arg(value_name = "CONTENT_HASH", group = "target")]
    content_hash: Option<String>,
}

pub(crate) async fn run(args: RollbackArgs) -> anyhow::Result<Exit> {
    let mut config = files_and_keys(&args.store.config, &args.keys)?;
    let place = args.store.place(&config, None)?;
    let store = args.store.s3.open(&place, Access::Write).await?;
    // Refuses a name that the store does not have, before anything is sent.
    published::names_or_all(&store, slice::from_ref(&args.name)).await?;
    let notifier = wiring::notifier(&mut config, store.clone());
    // A rollback is a publication, so its events are sent now and not only by the next poll.
    notifier
        .register_receivers(slice::from_ref(&args.name))
        .await;
    let options = RollbackOptions {
        target: args.content_hash,
        unverified: args.unverified,
        signer: config.keys.signer(),
        ..RollbackOptions::default()
    };
    let reports = [upkeep::rollback(&store, &args.name, &options).await];
    print_polls(&reports, args.report.json)?;
    notifier.after(&reports[0]).await;
    Ok(Exit::of(
        [reports[0].outcome],
        args.report.detailed_exitcode,
    ))
}
