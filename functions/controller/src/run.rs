//! The program: servers that run from the start, and the work of the leader.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use api::HttpSettings;
use axum::{Router, middleware};
use futures_util::StreamExt;
use kube::runtime::events::Recorder;
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, Client};
use prometheus_client::registry::Registry;
use reader::{PublishedCatalogs, ReaderSettings};
use server::Server;
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use upkeep::GcMetrics;

use crate::catalog::ClusterCatalog;
use crate::election::{Election, Role};
use crate::flags::Flags;
use crate::health::Health;
use crate::metrics::ControllerMetrics;
use crate::newest::Newest;
use crate::reconcile::Context;
use crate::served::{Gate, Served, refuse_behind};
use crate::worker::Worker;
use crate::{access, authorities, webhook, wiring};

/// Name under which events are sent and fields are managed.
const NAME: &str = "catalog-mirror-controller";

/// Maximum time for which a pointer is used without asking the store again: a burst of requests
/// asks once, and no reader notices.
const POINTER_FRESHNESS: Duration = Duration::from_millis(1);

/// Maximum time without a byte from the API server. A watch ends by itself after 295 s, and begins
/// anew.
const READ_TIME: Duration = Duration::from_secs(330);

/// Runs until a signal.
pub(crate) fn run(flags: Flags) -> anyhow::Result<()> {
    server::block_on(serve(flags))?
}

async fn serve(flags: Flags) -> anyhow::Result<()> {
    let started = Instant::now();
    let place = wiring::place(&flags);
    let store = wiring::open(&place).await?;
    let mut config = wiring::api_server(flags.kubeconfig.as_deref()).await?;
    config.read_timeout = Some(READ_TIME);
    config.reset_reader_on_write = true;
    let namespace = match flags.system_namespace.as_str() {
        "" => config.default_namespace.clone(),
        namespace => namespace.to_owned(),
    };
    let client = Client::try_from(config).context("cannot set up the client of the API server")?;

    let mut registry = Registry::with_prefix("catalog_mirror");
    let polls = publish::PollMetrics::register(&mut registry);
    let requests = api::HttpMetrics::register(&mut registry);
    let collections = GcMetrics::register(&mut registry);
    let connections = server::ServerMetrics::register(&mut registry);
    let metrics = ControllerMetrics::register(&mut registry);
    let puller = wiring::puller(&flags, &client, &place, store.clone(), polls.clone())?;

    // Everything that can be wrong is found before the first port is open.
    let mut api = wiring::server(&flags, connections, true)?;
    if flags.access_log {
        api = api.with_access_log(server::AccessLog::start(std::io::stdout()));
    }
    let stop = server::stop_on_signals()?.token;
    let (objects, listed, watching) = watch_objects(&client, stop.clone());
    let role = Arc::new(watch::Sender::new(Role::Follower));
    let served = Arc::new(Served {
        objects: objects.clone(),
        listed,
        store: store.clone(),
        has_own_store: flags.leader_elect && flags.store.is_none(),
        role: role.subscribe(),
        polls: Arc::default(),
    });
    let context = Arc::new(Context {
        catalogs: Api::all(client.clone()),
        served: served.clone(),
        puller: Arc::new(puller),
        events: Recorder::new(client.clone(), NAME.into()),
        metrics: metrics.clone(),
        base: flags.base(),
    });
    let health = Arc::new(Health {
        served: served.clone(),
        started,
        was_ready: false.into(),
    });
    let mut tasks = vec![watching];
    let mut start =
        async |server: Server, address: &str, routes: Router| -> anyhow::Result<SocketAddr> {
            let listener = wiring::bind(address).await?;
            let address = listener.local_addr()?;
            tasks.push(tokio::spawn(server.run(listener, routes, stop.clone())));
            Ok(address)
        };
    let beside = |has_tls| wiring::server(&flags, server::ServerMetrics::default(), has_tls);
    if !matches!(flags.health_probe_bind_address.as_str(), "" | "0") {
        start(
            beside(false)?,
            &flags.health_probe_bind_address,
            health.routes(),
        )
        .await?;
    }
    if let Some(address) = flags.metrics_address()? {
        let role = role.clone();
        let page = api::beside(server::metrics_route(registry, move || {
            polls.refresh(objects.state().iter().map(|object| object.name()));
            metrics.set_role(&role.borrow());
        }));
        let page = page.layer(middleware::from_fn_with_state(
            client.clone(),
            access::check,
        ));
        start(beside(true)?, address, page).await?;
    }
    // The API server speaks TLS only.
    if flags.tls_cert.is_some() {
        let address = format!(":{}", flags.webhook_server_port);
        let server = beside(true)?.with_content();
        start(server, &address, webhook::routes()).await?;
    }
    let settings = ReaderSettings {
        // Another replica may have published to the same store, and a status may name that state
        // already.
        freshness: POINTER_FRESHNESS,
        offload: api::offload,
        ..ReaderSettings::default()
    };
    let catalogs = PublishedCatalogs::new(store, settings);
    let gate = Gate {
        served: served.clone(),
        newest: Newest::new(Api::all(client.clone()), served.store.clone()),
        catalogs: catalogs.clone(),
    };
    let gate = middleware::from_fn_with_state(Arc::new(gate), refuse_behind);
    let routes = api::router(catalogs, HttpSettings::default(), requests).layer(gate);
    let address = start(api, &flags.catalogs_server_addr, routes).await?;
    tracing::info!(%address, store = %place, base = flags.base(), "serving");

    let authorities = flags.pull_cas_dir.clone().map(|folder| {
        let watching =
            authorities::watch(folder, context.puller.mirror.clone(), served.polls.clone());
        AbortOnDropHandle::new(tokio::spawn(watching))
    });
    let election = flags
        .leader_elect
        .then(|| Election::new(client, &namespace, role.clone()));
    let worker = Worker {
        context,
        role,
        collections,
        removal_interval: flags.store.is_none().then_some(flags.gc_interval),
        stop,
    };
    worker.run(election).await;
    drop(authorities);
    for task in tasks {
        task.await?;
    }
    Ok(())
}

/// Starts the watch of all ClusterCatalogs, which every replica needs. Returns what it keeps up to
/// date, and a flag that becomes true once they were listed.
fn watch_objects(
    client: &Client,
    stop: CancellationToken,
) -> (
    reflector::Store<ClusterCatalog>,
    watch::Receiver<bool>,
    JoinHandle<()>,
) {
    let (objects, writer) = reflector::store();
    // Not `wait_until_ready` of kube: of several that wait for one store, it wakes the last one
    // only.
    let (is_listed, listed) = watch::channel(false);
    let watcher = watcher(Api::all(client.clone()), watcher::Config::default());
    let mut events = watcher.default_backoff().reflect(writer).boxed();
    let task = async move {
        while let Some(Some(event)) = stop.run_until_cancelled(events.next()).await {
            match event {
                Ok(watcher::Event::InitDone) => drop(is_listed.send_replace(true)),
                Ok(_) => {}
                Err(error) => tracing::warn!(
                    error = model::text::chain(&error),
                    "cannot watch ClusterCatalogs"
                ),
            }
        }
    };
    (objects, listed, tokio::spawn(task))
}
