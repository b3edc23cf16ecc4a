use std::collections::BTreeSet;

use clap::Args;
use config::{Config, ServerConfig};
use futures_util::future::join_all;
use model::CatalogName;
use publish::Catalog;
use server::StopSignal;
use terminal::{Exit, print_failure};

use crate::args::{Access, CatalogArgs, ReportArgs, StoreArgs};
use crate::reports::print_polls;
use crate::{progress, wiring};

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
    let mut config = wiring::config(&args.store, &args.catalogs, ServerConfig::default())?;
    let catalogs = chosen(&config, &args.names)?;
    let place = args.store.place(&config, None)?;
    let store = args.store.s3.open(&place, Access::Create).await?;
    let notifier = wiring::notifier(&mut config, store.clone());
    let mirror = wiring::mirror(
        &args.catalogs,
        &place,
        &config,
        store,
        publish::PollMetrics::default(),
    )?;
    let names: Vec<_> = catalogs
        .iter()
        .map(|catalog| catalog.name.clone())
        .collect();
    // Before the poll: a new receiver gets what changes from now on, not the whole catalog.
    notifier.register_receivers(&names).await;
    let shown = progress::show_poll(mirror.progress(), args.report.json);
    let stop = server::stop_on_signals()?;
    let polling = mirror.poll_all(&catalogs, args.force);
    let reports = stop.token.run_until_cancelled(polling).await;
    shown.finish_and_clear();
    let Some(reports) = reports else {
        // Ctrl-C is no death of the process.
        mirror.withdraw_pulls().await;
        print_failure("error", "stopped by a signal");
        return Ok(match stop.signal() {
            Some(StopSignal::Terminate) => Exit::Terminated,
            _ => Exit::Interrupted,
        });
    };
    print_polls(&reports, args.report.json)?;
    // After the report is printed: a receiver that does not answer must not delay it.
    join_all(reports.iter().map(|report| notifier.after(report))).await;
    let outcomes = reports.iter().map(|report| report.outcome);
    Ok(Exit::of(outcomes, args.report.detailed_exitcode))
}

/// Returns the named catalogs of the configuration, or all of them.
fn chosen(config: &Config, names: &[CatalogName]) -> anyhow::Result<Vec<Catalog>> {
    let known: BTreeSet<&CatalogName> = config
        .catalogs
        .iter()
        .map(|catalog| &catalog.name)
        .collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        anyhow::bail!("the catalog {unknown} is not configured");
    }
    if known.is_empty() {
        anyhow::bail!("there is nothing to poll: name catalogs with --config or --catalog");
    }
    let mut chosen = config.catalogs.clone();
    if !names.is_empty() {
        chosen.retain(|catalog| names.contains(&catalog.name));
    }
    Ok(chosen)
}
