//! The program: servers that run from the start, and the work of the leader.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context;
use axum::{Router, middleware, routing::get};
use futures_util::StreamExt;
use http_api::HttpSettings;
use kube::{
    Api, Client,
    runtime::{WatchStreamExt, events::Recorder, reflector, watcher},
};
use prometheus_client::{metrics::gauge::Gauge, registry::Registry};
use publish::Mirror;
use reader::{PublishedCatalogs, ReaderSettings};
use source::{Logins, RegistryRules};
use store::{Store, StorePlace};
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use upkeep::GcMetrics;

use crate::{
    access::{self, Right, TokenAccess},
    authorities::Authorities,
    catalog::ClusterCatalog,
    election::Election,
    flags::Flags,
    health::Health,
    metrics::ControllerMetrics,
    reconcile::Reconciler,
    replicas::{self, FollowSettings, Follower, Leadership},
    secrets::ClusterSecrets,
    token::OwnToken,
    webhook, wiring,
    worker::Worker,
};

/// Name under which events are sent and fields are managed.
const NAME: &str = "catalog-mirror-controller";

/// Largest number of blocking threads, as in the command line program: enough for two catalogs that are scanned at a time.
const BLOCKING_THREADS: usize = 24;

/// Maximum time for which a pointer is used without asking the store again: a burst of requests asks once, and no reader notices.
const POINTER_FRESHNESS: Duration = Duration::from_millis(1);

/// Maximum time without a byte from the API server. A watch ends by itself after 295 s, and begins anew.
const READ_TIME: Duration = Duration::from_secs(330);

/// Runs until a signal.
pub(crate) fn run(flags: Flags) -> anyhow::Result<()> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.enable_all().max_blocking_threads(BLOCKING_THREADS).build()?;
    let ended = runtime.block_on(serve(flags));
    // Does not wait for blocking threads: one may still be reading an abandoned pull.
    runtime.shutdown_background();
    ended
}

/// Parts that the servers and the leader share.
pub(crate) struct Program {
    pub(crate) flags: Flags,
    pub(crate) client: Client,
    pub(crate) place: StorePlace,
    pub(crate) store: Arc<dyn Store>,
    /// ClusterCatalogs as they are now.
    pub(crate) objects: reflector::Store<ClusterCatalog>,
    /// True once the ClusterCatalogs were listed.
    pub(crate) listed: watch::Receiver<bool>,
    /// Value 1 if this replica works on the ClusterCatalogs, else 0.
    pub(crate) leading: Gauge,
    pub(crate) leadership: Arc<Leadership>,
    pub(crate) follower: Arc<Follower>,
    /// Cancelled when the program stops.
    pub(crate) stop: CancellationToken,
}

async fn serve(flags: Flags) -> anyhow::Result<()> {
    let started = Instant::now();
    let place = wiring::place(&flags);
    let store = wiring::open(&place).await?;
    let mut config = wiring::api_server(flags.kubeconfig.as_deref()).await?;
    (config.read_timeout, config.reset_reader_on_write) = (Some(READ_TIME), true);
    let namespace = match flags.system_namespace.as_str() {
        "" => config.default_namespace.clone(),
        namespace => namespace.to_owned(),
    };
    let token = OwnToken::of(&config);
    let client = Client::try_from(config).context("cannot set up the client of the API server")?;

    let mut registry = Registry::with_prefix("catalog_mirror");
    let polls = publish::PollMetrics::register(&mut registry);
    let requests = http_api::HttpMetrics::register(&mut registry);
    let collections = GcMetrics::register(&mut registry);
    let connections = server::ServerMetrics::register(&mut registry);
    let reconciles = ControllerMetrics::register(&mut registry);
    let leading = Gauge::default();
    registry.register(
        "controller_leader",
        "1 if this replica works on the ClusterCatalogs",
        leading.clone(),
    );
    let listener = wiring::bind(&flags.catalogs_server_addr).await?;
    let address = wiring::own_address(&flags, listener.local_addr()?.port()).await;
    let election = Election::new(client.clone(), &namespace, address);
    let authorities = Authorities::of(&flags);
    let follower = Arc::new(Follower::new(FollowSettings {
        me: election.me().to_owned(),
        store: store.clone(),
        owns_store: flags.store.is_none(),
        link: wiring::link(&flags, authorities.clone(), token),
    }));
    let leadership = Arc::new(Leadership::default());
    registry.register(
        "controller_followers",
        "replicas that report to this one, which leads",
        leadership.metric.clone(),
    );
    registry.register(
        "controller_behind",
        "catalogs that this replica forwards to the leader, because it has not copied their state yet",
        follower.metric.clone(),
    );
    let (logins, rules) = (Logins::default(), RegistryRules::default());
    let mirror = Arc::new(wiring::mirror(
        &authorities,
        &place,
        store.clone(),
        &logins,
        &rules,
        polls.clone(),
    )?);

    // Everything that can be wrong is found before the first port is open.
    let api = wiring::server(&flags, connections, true)?;
    let stop = server::stop_on_signals()?;
    let (objects, watching) = watch_objects(&client, stop.clone());
    let (is_listed, listed) = watch::channel(false);
    let waiting = objects.clone();
    // One task waits for all: of several that wait for a store of kube, it wakes the last one only.
    tokio::spawn(async move { is_listed.send_replace(waiting.wait_until_ready().await.is_ok()) });
    let program = Arc::new(Program {
        client,
        place,
        store,
        objects,
        listed,
        leading,
        leadership,
        follower,
        stop: stop.clone(),
        flags,
    });
    let health = program.health(started);
    let mut tasks = vec![watching];
    tasks.extend(program.probes(&health).await?);
    tasks.extend(program.metrics(registry, polls).await?);
    tasks.extend(program.webhook().await?);
    tracing::info!(address = %listener.local_addr()?, store = %program.place, base = program.flags.base(), "serving");
    let settings = ReaderSettings {
        // Another replica may have published to the same store, and a status may name that state already.
        freshness: program.place.freshness().min(POINTER_FRESHNESS),
        offload: http_api::offload,
        ..ReaderSettings::default()
    };
    let catalogs = PublishedCatalogs::new(program.store.clone(), settings);
    let routes = program.api(http_api::router(catalogs, HttpSettings::default(), requests));
    tasks.push(tokio::spawn(api.run(listener, routes, stop.clone())));
    let reconciler = program.reconciler(mirror, logins, rules, namespace, reconciles);
    let watching = authorities.watch(reconciler.clone(), program.follower.clone());
    let watching = AbortOnDropHandle::new(tokio::spawn(watching));

    let worker = Worker {
        reconciler,
        collections,
        program,
    };
    worker.run(election).await;
    drop(watching);
    for task in tasks {
        task.await?;
    }
    Ok(())
}

impl Program {
    fn health(&self, started: Instant) -> Arc<Health> {
        Arc::new(Health {
            objects: self.objects.clone(),
            listed: self.listed.clone(),
            store: self.store.clone(),
            follower: self.follower.clone(),
            started,
            was_ready: false.into(),
        })
    }

    /// Starts the server of the probes.
    async fn probes(&self, health: &Arc<Health>) -> anyhow::Result<Option<JoinHandle<()>>> {
        let address = match self.flags.health_probe_bind_address.as_str() {
            "" | "0" => return Ok(None),
            address => address,
        };
        self.start(address, health.clone().routes(), false).await.map(Some)
    }

    /// Returns the routes of the HTTP API: those of the catalogs, some of which another replica may answer, and the leader's list.
    fn api(&self, catalogs: Router) -> Router {
        let access = Arc::new(TokenAccess::new(self.client.clone(), Right::Replica));
        let list = Router::new()
            .route(replicas::LIST_PATH, get(replicas::answer))
            .with_state(self.leadership.clone())
            .layer(middleware::from_fn_with_state(access, access::check));
        let forward = middleware::from_fn_with_state(self.follower.clone(), replicas::forward);
        catalogs.layer(forward).merge(list)
    }

    /// Starts the server of `/metrics`.
    async fn metrics(&self, registry: Registry, polls: publish::PollMetrics) -> anyhow::Result<Option<JoinHandle<()>>> {
        let Some(address) = self.flags.metrics_address()? else {
            return Ok(None);
        };
        let objects = self.objects.clone();
        let page = server::MetricsPage::new(registry, move || {
            let objects = objects.state();
            polls.refresh(objects.iter().map(|object| object.name()));
        });
        let access = Arc::new(TokenAccess::new(self.client.clone(), Right::Metrics));
        let routes = page
            .route()
            .layer(middleware::from_fn_with_state(access, access::check));
        self.start(address, routes, true).await.map(Some)
    }

    /// Starts the webhook. The API server speaks TLS only.
    async fn webhook(&self) -> anyhow::Result<Option<JoinHandle<()>>> {
        if self.flags.tls_cert.is_none() {
            return Ok(None);
        }
        let address = format!(":{}", self.flags.webhook_server_port);
        let server = wiring::server(&self.flags, server::ServerMetrics::default(), true)?.with_content();
        let listener = wiring::bind(&address).await?;
        Ok(Some(tokio::spawn(server.run(
            listener,
            webhook::routes(),
            self.stop.clone(),
        ))))
    }

    /// Starts a server beside the HTTP API. Its connections are not counted.
    async fn start(&self, address: &str, routes: Router, has_tls: bool) -> anyhow::Result<JoinHandle<()>> {
        let server = wiring::server(&self.flags, server::ServerMetrics::default(), has_tls)?;
        let listener = wiring::bind(address).await?;
        Ok(tokio::spawn(server.run(listener, routes, self.stop.clone())))
    }

    fn reconciler(
        &self,
        mirror: Arc<Mirror>,
        logins: Logins,
        rules: RegistryRules,
        namespace: String,
        metrics: ControllerMetrics,
    ) -> Arc<Reconciler> {
        Arc::new(Reconciler {
            catalogs: Api::all(self.client.clone()),
            objects: self.objects.clone(),
            mirror,
            store: self.store.clone(),
            rules,
            secrets: ClusterSecrets::new(self.client.clone(), self.flags.global_pull_secret.clone(), logins),
            events: Recorder::new(self.client.clone(), NAME.into()),
            metrics,
            base: self.flags.base(),
            leadership: self.leadership.clone(),
            namespace,
            last: Default::default(),
            all_due: Default::default(),
        })
    }
}

/// Starts the watch of all ClusterCatalogs, which every replica needs, and returns what it keeps up to date.
fn watch_objects(client: &Client, stop: CancellationToken) -> (reflector::Store<ClusterCatalog>, JoinHandle<()>) {
    let (objects, writer) = reflector::store();
    let events = watcher(Api::all(client.clone()), watcher::Config::default())
        .default_backoff()
        .reflect(writer);
    let watching = events.for_each(|event| async {
        if let Err(error) = event {
            tracing::warn!(error = model::text::chain(&error), "cannot watch ClusterCatalogs");
        }
    });
    let task = async move {
        stop.run_until_cancelled(watching).await;
    };
    (objects, tokio::spawn(task))
}
