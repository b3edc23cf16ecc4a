use std::collections::BTreeSet;

use clap::Args;
use config::{Config, ServerConfig};
use futures_util::future::join_all;
use model::CatalogName;
use publish::{Catalog, ChangedPackages, Report};

use crate::args::{Access, CatalogArgs, ReportArgs, StoreArgs};
use crate::table::{Column, Table, print};
use crate::wiring;
use terminal::Exit;
use terminal::{bytes, cell, millis, print_error, short};

#[derive(Debug, Args)]
pub(crate) struct PollArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) catalogs: CatalogArgs,
    /// Pull even if the digest is known or has failed for good, and publish even if many packages
    /// are gone.
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    /// Catalogs of the configuration to poll. Default: all.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<CatalogName>,
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
    let progress = crate::progress::show_poll(mirror.progress(), args.report.json);
    let stop = server::stop_on_signals()?;
    let polling = mirror.poll_all(&catalogs, args.force);
    let reports = stop.run_until_cancelled(polling).await;
    progress.finish_and_clear();
    let Some(reports) = reports else {
        // Ctrl-C is no death of the process.
        mirror.withdraw_pulls().await;
        anyhow::bail!("stopped by a signal");
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
    let is_chosen = |catalog: &&Catalog| names.is_empty() || names.contains(&catalog.name);
    Ok(config.catalogs.iter().filter(is_chosen).cloned().collect())
}

impl Table for Report {
    const COLUMNS: &'static [Column<Self>] = &[
        ("NAME", |report| report.catalog.to_string()),
        ("OUTCOME", |report| report.outcome.as_str().to_owned()),
        ("SERIAL", |report| cell(report.serial)),
        ("CONTENT", |report| {
            cell(report.content_hash.as_ref().map(short))
        }),
        ("PACKAGES", |report| changes(&report.changes)),
        ("PULLED", |report| bytes(report.bytes_pulled)),
        ("PUBLISHED", |report| bytes(report.bytes_published)),
        ("TIME", |report| millis(report.duration)),
    ];

    const IS_FAILED: fn(&Self) -> bool = |report| !report.outcome.is_success();
}

/// Prints the reports of polls and rollbacks, then their errors.
pub(super) fn print_polls(reports: &[Report], json: bool) -> anyhow::Result<()> {
    print(reports, json)?;
    if !json {
        let failed = |report: &Report| print_error(&report.catalog, report.error_text());
        reports.iter().for_each(failed);
    }
    Ok(())
}

/// Returns the numbers of added, removed and changed packages, such as `+2 -1 ~3`. A zero is left
/// out.
pub(super) fn changes(changes: &ChangedPackages) -> String {
    let counts = [
        ('+', changes.added.len()),
        ('-', changes.removed.len()),
        ('~', changes.changed.len()),
    ];
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    let counts = counts.map(|(sign, count)| format!("{sign}{count}"));
    counts.collect::<Vec<_>>().join(" ")
}
