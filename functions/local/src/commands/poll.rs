use config::Config;
use std::collections::BTreeSet;

use ::poll::{Catalog, Report};
use futures_util::future::join_all;
use layout::{CatalogName, Outcome};
use notify::{Metrics, Settings};

use crate::{cli::Poll, exit::Exit, output, wiring};

pub(crate) async fn run(args: Poll) -> anyhow::Result<Exit> {
    let config = wiring::config(&args.catalogs)?;
    let catalogs = chosen(&config, &args.names)?;
    let place = args.store.place(&config)?;
    let store = args.store.open(&config).await?;
    let notifier = wiring::notifier(&config, store.clone(), Settings::default(), Metrics::default())?;
    let mirror = wiring::mirror((&args.catalogs, &place), &config, store, ::poll::Metrics::default())?;
    let names: Vec<_> = catalogs.iter().map(|catalog| catalog.name.clone()).collect();
    notifier.adopt(&names).await;
    let progress = output::progress::show(mirror.progress(), args.json);
    let reports = mirror.turn_all(&catalogs, args.force).await;
    progress.finish();
    if args.json {
        output::reports::json(&reports)?;
    } else {
        output::reports::table(&reports)?;
    }
    join_all(reports.iter().map(|report| notifier.after(report))).await;
    Ok(exit(&reports))
}

fn chosen(config: &Config, names: &[CatalogName]) -> anyhow::Result<Vec<Catalog>> {
    let known: BTreeSet<&CatalogName> = config.catalogs.iter().map(|catalog| &catalog.name).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        anyhow::bail!("the catalog {unknown} is not configured");
    }
    if known.is_empty() {
        anyhow::bail!("there is nothing to poll: name catalogs with --config or --catalog");
    }
    let wanted = |catalog: &&Catalog| names.is_empty() || names.contains(&catalog.name);
    Ok(config.catalogs.iter().filter(wanted).cloned().collect())
}

fn exit(reports: &[Report]) -> Exit {
    if reports.iter().any(|report| !report.outcome.is_success()) {
        Exit::Failed
    } else if reports.iter().any(|report| report.outcome == Outcome::Published) {
        Exit::Changed
    } else {
        Exit::Fine
    }
}
