use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use config::{Config, ServerConfig};
use futures_util::FutureExt;
use model::CatalogName;
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use publish::{Catalog, Mirror, Schedule};
use reader::{PublishedCatalogs, ReaderSettings};
use store::Store;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use upkeep::Notifier;

use crate::args::{Access, CatalogArgs, GrpcArgs, StoreArgs};
#[cfg(feature = "grpc")]
use crate::grpc_listener;
use crate::wiring;

/// Maximum time to send an event, where no command waits: half an hour covers most restarts of a
/// receiver.
const NOTIFY_TIME: Duration = Duration::from_secs(30 * 60);

/// Largest `--cache-size`, 1 TiB in MiB.
const CACHE_MIB_MAX: u64 = 1 << 20;

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    catalogs: CatalogArgs,
    /// Address to listen on, or a port of 127.0.0.1.
    #[arg(long, env = "CATALOG_MIRROR_LISTEN", hide_env_values = true, default_value = "127.0.0.1:8080", value_name = "ADDRESS", value_parser = config::listen_address)]
    listen: SocketAddr,
    /// PEM chain of certificates for TLS. Reloaded when it changes.
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// PEM private key of --tls-cert.
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Answer only to the users in this file. One a line: NAME:$2y$... (htpasswd -B) or
    /// NAME:sha256:HEX.
    #[arg(long, value_name = "FILE")]
    readers: Option<PathBuf>,
    /// Write a JSON line for each request to standard output.
    #[arg(long)]
    access_log: bool,
    /// Memory for cached shards, indexes and catalogs, in MiB, at most 1 TiB.
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u64).range(0..=CACHE_MIB_MAX))]
    cache_size: u64,
    /// Serve the store and poll nothing. The store may be read-only.
    #[arg(long)]
    no_poll: bool,
    #[command(flatten)]
    grpc: GrpcArgs,
}

pub(crate) async fn run(args: ServeArgs) -> anyhow::Result<()> {
    // Everything that can be wrong is found before the port is open, so that no request reaches a
    // server that fails.
    let server = ServerConfig {
        tls_cert: args.tls_cert.clone(),
        tls_key: args.tls_key.clone(),
        readers: args.readers.clone(),
        ..ServerConfig::default()
    };
    let mut config = wiring::config(&args.store, &args.catalogs, server)?;
    if config.catalogs.is_empty() && !args.no_poll {
        anyhow::bail!(
            "there is nothing to poll: name catalogs with --config or --catalog, or serve with --no-poll"
        );
    }
    let place = args.store.place(&config, None)?;
    let access = if args.no_poll {
        Access::Follow
    } else {
        Access::Create
    };
    let store = args.store.s3.open(&place, access).await?;
    let mut registry = Registry::with_prefix("catalog_mirror");
    let polls = publish::PollMetrics::register(&mut registry);
    let requests = api::HttpMetrics::register(&mut registry);
    let events = upkeep::NotifyMetrics::register(&mut registry);
    let collections = upkeep::GcMetrics::register(&mut registry);
    let connections = server::ServerMetrics::register(&mut registry);
    let mut server = wiring::server(&config.server, connections)?;
    if args.access_log {
        server = server.with_access_log(server::AccessLog::start(io::stdout()));
    }
    let polled = CancellationToken::new();
    // Signals are handled before the log says that the server listens: a supervisor may stop it
    // from then on.
    let stop = server::stop_on_signals()?.token;
    let polling = if args.no_poll {
        polled.cancel();
        None
    } else {
        let end_first = first_polls(&config, &*store, polled.clone()).await?;
        let mirror = wiring::mirror(
            &args.catalogs,
            &place,
            &config,
            store.clone(),
            polls.clone(),
        )?;
        config.events.metrics = events;
        config.events.total = NOTIFY_TIME;
        let notifier = wiring::notifier(&mut config, store.clone());
        Some(poll(
            mirror,
            notifier,
            config.catalogs.clone(),
            end_first,
            stop.clone(),
        ))
    };

    let listener = wiring::bind(args.listen, "--listen").await?;
    let reading = ReaderSettings {
        cache_bytes: args.cache_size << 20,
        freshness: place.freshness(),
        trust: config.keys.trust(),
        offload: api::offload,
        ..ReaderSettings::default()
    };
    let catalogs = PublishedCatalogs::new(store.clone(), reading);
    #[cfg(feature = "grpc")]
    let (grpc, prepared, mut tasks) =
        grpc_listener::start(&args.grpc, &config, catalogs.clone(), &mut registry, &stop).await?;
    #[cfg(not(feature = "grpc"))]
    let (grpc, prepared, mut tasks) = {
        let problem =
            "this program was built without the registry API: build it with --features grpc";
        anyhow::ensure!(args.grpc.grpc.is_none(), problem);
        (None::<SocketAddr>, async {}, Vec::new())
    };
    let address = listener.local_addr()?;
    let url = server.url(address);
    tracing::info!(%address, url, store = %place, "listening");
    if let Some(address) = grpc {
        tracing::info!(%address, "answering the registry API");
    }
    // A proxy in front may speak TLS, so it is not an error.
    if config.server.readers.is_some()
        && config.server.tls_cert.is_none()
        && !args.listen.ip().is_loopback()
    {
        tracing::warn!(
            "without --tls-cert the passwords and tokens of users can be read on the network"
        );
    }
    if let Some(polling) = polling {
        tasks.push(tokio::spawn(
            polling.instrument(tracing::info_span!("schedule")),
        ));
        let retention = config.retention.clone();
        tasks.extend(
            retention.map(|settings| {
                upkeep::collect_regularly(store, settings, collections, stop.clone())
            }),
        );
    }

    let is_ready = Arc::new(AtomicBool::new(
        polled.is_cancelled() && args.grpc.grpc.is_none(),
    ));
    let settings = api::HttpSettings {
        ready: is_ready.clone(),
        origins: api::Origins::of_mirror(config.server.readers.is_some(), &config.server.cors),
        title: config.server.title.clone(),
        ..api::HttpSettings::default()
    };
    let names: Vec<String> = config
        .catalogs
        .iter()
        .map(|catalog| catalog.name.to_string())
        .collect();
    let page = server::metrics_route(registry, move || {
        polls.refresh(names.iter().map(String::as_str));
    });
    let waiting = async move {
        polled.cancelled().await;
        prepared.await;
        is_ready.store(true, Ordering::Relaxed);
    };
    let until_stop = stop.clone().run_until_cancelled_owned(waiting);
    tasks.push(tokio::spawn(until_stop.map(drop)));
    let router = api::router(catalogs, settings, requests).merge(api::beside(page));
    server.run(listener, router, stop.clone()).await;
    stop.cancel();
    // A poll in progress is abandoned; a collection in progress ends first.
    for task in tasks {
        task.await?;
    }
    Ok(())
}

/// Returns the end of a poll, whatever its outcome was. It cancels `polled` once each catalog was
/// polled or is published: `/readyz` waits for one poll of each catalog only, because a registry
/// that does not answer must not keep the other catalogs from clients.
async fn first_polls(
    config: &Config,
    store: &dyn Store,
    polled: CancellationToken,
) -> anyhow::Result<impl Fn(&CatalogName) + Send + Sync + use<>> {
    let names = config.catalogs.iter().map(|catalog| catalog.name.clone());
    let pending: Mutex<BTreeSet<CatalogName>> = Mutex::new(names.collect());
    let end = move |catalog: &CatalogName| {
        let mut pending = pending.lock();
        pending.remove(catalog);
        if pending.is_empty() {
            polled.cancel();
        }
    };
    publish::catalog_names(store).await?.iter().for_each(&end);
    Ok(end)
}

/// Polls at the intervals of the catalogs, and sends the events that follow, until `stop` is
/// cancelled.
async fn poll(
    mirror: Mirror,
    notifier: Notifier,
    catalogs: Vec<Catalog>,
    end_first: impl Fn(&CatalogName) + Send + Sync + 'static,
    stop: CancellationToken,
) {
    let names: Vec<_> = catalogs
        .iter()
        .map(|catalog| catalog.name.clone())
        .collect();
    let registered = stop
        .run_until_cancelled(notifier.register_receivers(&names))
        .await;
    let notifier = Arc::new(notifier);
    let schedule = Schedule::new(Arc::new(mirror), catalogs, move |report| {
        end_first(&report.catalog);
        notifier.spawn_after(report);
    });
    if registered.is_some() {
        schedule.run(stop).await;
    }
}
