use config::Config;
use std::sync::Arc;

use ::poll::Schedule;
use prometheus_client::registry::Registry;
use store::Store;
use tokio_util::sync::CancellationToken;

use crate::{
    cli::Serve,
    collect,
    exit::Exit,
    server::{self, MetricsPage},
    wiring,
};

pub(crate) async fn run(args: Serve) -> anyhow::Result<Exit> {
    let config = wiring::config_to_serve(&args.catalogs, (&args.listen).into())?;
    if config.catalogs.is_empty() && !args.no_poll {
        anyhow::bail!("there is nothing to poll: name catalogs with --config or --catalog, or serve with --no-poll");
    }
    let place = args.store.place(&config)?;
    let store = if args.no_poll {
        args.store.open_to_read(&config).await?
    } else {
        args.store.open(&config).await?
    };
    let mut registry = Registry::with_prefix("catalog_mirror");
    let polls = ::poll::Metrics::register(&mut registry);
    let requests = ::serve::Metrics::register(&mut registry);
    let events = notify::Metrics::register(&mut registry);
    let door = wiring::server(&config.server, listen::Metrics::register(&mut registry))?;
    let catalogs = config.catalogs.iter().map(|catalog| catalog.name.to_string()).collect();

    // Before anybody is told that it runs, and may tell it to stop.
    let stop = server::stop_on_signals()?;
    let listener = server::bind(args.listen.listen).await?;
    tracing::info!(address = %listener.local_addr()?, store = %place, "listening");
    warn_of_eavesdroppers(&args, &config);
    let polling = (!args.no_poll)
        .then(|| {
            let metrics = (polls.clone(), events);
            start_polling(&args, &config, &store, metrics, &stop)
        })
        .transpose()?;

    let collecting = (!args.no_poll)
        .then(|| config.retention.clone())
        .flatten()
        .map(|settings| collect::start(store.clone(), settings, stop.clone()));

    let settings = ::serve::Settings {
        cache_bytes: args.listen.cache_size << 20,
        freshness: place.freshness(),
        trust: config.keys.trust(),
        ..::serve::Settings::default()
    };
    let page = MetricsPage {
        registry,
        polls,
        catalogs,
    };
    let router = ::serve::router(store, settings, requests).merge(page.route());
    door.run(listener, router, stop.clone()).await;
    stop.cancel();
    if let Some(polling) = polling {
        polling.await?;
    }
    if let Some(collecting) = collecting {
        collecting.await?;
    }
    Ok(Exit::Fine)
}

/// Something in front may speak TLS, so it is no mistake for sure.
fn warn_of_eavesdroppers(args: &Serve, config: &Config) {
    let (server, address) = (&config.server, args.listen.listen.ip());
    if server.readers.is_some() && server.tls_cert.is_none() && !address.is_loopback() {
        tracing::warn!("without --tls-cert the readers' passwords and tokens can be read on the way");
    }
}

fn start_polling(
    args: &Serve,
    config: &Config,
    store: &Arc<dyn Store>,
    (polls, events): (::poll::Metrics, notify::Metrics),
    stop: &CancellationToken,
) -> anyhow::Result<tokio::task::JoinHandle<()>> {
    let place = args.store.place(config)?;
    let mirror = Arc::new(wiring::mirror((&args.catalogs, &place), config, store.clone(), polls)?);
    let settings = notify::Settings::patient();
    let notifier = Arc::new(wiring::notifier(config, store.clone(), settings, events)?);
    let names: Vec<_> = config.catalogs.iter().map(|catalog| catalog.name.clone()).collect();
    let tell = notifier.clone();
    let schedule = Schedule::new(mirror, config.catalogs.clone()).after_each(move |report| tell.spawn_after(report));
    let stop = stop.clone();
    Ok(tokio::spawn(async move {
        if stop.run_until_cancelled(notifier.adopt(&names)).await.is_some() {
            schedule.run(stop).await;
        }
    }))
}
