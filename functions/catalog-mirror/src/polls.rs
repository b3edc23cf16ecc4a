//! Polls of configured catalogs by a command that ends after them.

use std::collections::BTreeSet;

use clap::Args;
use config::{Config, ServerConfig};
use futures_util::future::join_all;
use model::CatalogName;
use publish::{Catalog, PollMetrics, PollOptions};
use server::StopSignal;
use terminal::{Exit, print_failure};

use crate::args::{Access, CatalogArgs, ReportArgs, StoreArgs};
use crate::reports::print_polls;
use crate::{progress, wiring};

/// Arguments of all commands that poll.
#[derive(Debug, Args)]
pub(crate) struct PollPlace {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    catalogs: CatalogArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// Polls the named catalogs of the configuration, or all of them, prints the reports, and sends the
/// events. Only rings are promoted.
pub(crate) async fn run(
    place: PollPlace,
    names: &[CatalogName],
    options: PollOptions,
) -> anyhow::Result<Exit> {
    let PollPlace {
        store,
        catalogs: args,
        report,
    } = place;
    let mut config = wiring::config(&store, &args, ServerConfig::default())?;
    let catalogs = chosen(&config, names)?;
    if options.promotion.is_some() {
        refuse_others_than_rings(&catalogs)?;
    }
    let place = store.place(&config, None)?;
    let store = store.s3.open(&place, Access::Create).await?;
    let notifier = wiring::notifier(&mut config, store.clone());
    let mirror = wiring::mirror(&args, &place, &config, store, PollMetrics::default())?;
    let names: Vec<_> = catalogs
        .iter()
        .map(|catalog| catalog.name.clone())
        .collect();
    // Before the poll: a new receiver gets what changes from now on, not the whole catalog.
    notifier.register_receivers(&names).await;
    let shown = progress::show_poll(mirror.progress(), report.json);
    let stop = server::stop_on_signals()?;
    let polling = mirror.poll_all(&catalogs, options);
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
    print_polls(&reports, report.json)?;
    // After the report is printed: a receiver that does not answer must not delay it.
    join_all(reports.iter().map(|report| notifier.after(report))).await;
    let outcomes = reports.iter().map(|report| report.outcome);
    Ok(Exit::of(outcomes, report.detailed_exitcode))
}

fn refuse_others_than_rings(catalogs: &[Catalog]) -> anyhow::Result<()> {
    let mut catalogs = catalogs.iter();
    if let Some(other) = catalogs.find(|catalog| catalog.source.ring().is_none()) {
        anyhow::bail!(
            "{} is no ring: only a catalog with `ring` in the configuration is promoted",
            other.name
        );
    }
    Ok(())
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
