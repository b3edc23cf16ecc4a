//! The program: servers that run from the start, and the work of the leader.

use std::{
    collections::BTreeSet,
    future::pending,
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use anyhow::Context;
use axum::{Router, middleware};
use futures_util::{Stream, StreamExt};
use http_api::PublishedCatalogs;
use kube::{
    Api, Client,
    runtime::{
        Controller, WatchStreamExt, controller::Error as ControllerError, events::Recorder, reflector, watcher,
        watcher::Event,
    },
};
use prometheus_client::registry::Registry;
use publish::{GcMetrics, Mirror, Retention};
use source::Logins;
use store::{Store, StorePlace};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{
    access::{self, MetricsAccess},
    catalog::ClusterCatalog,
    election::{Election, Leading},
    flags::Flags,
    health::Health,
    reconcile::{ReconcileError, Reconciler},
    secrets::PullSecrets,
    wiring,
};

/// Name under which events are sent and fields are managed.
const NAME: &str = "catalog-mirror-controller";

/// Largest number of blocking threads, as in the command line program: enough for two catalogs that are scanned at a time.
const BLOCKING_THREADS: usize = 24;

/// Time between two looks at the folder of certificates.
const CA_INTERVAL: Duration = Duration::from_secs(10);

/// Runs until a signal.
pub(crate) fn run(flags: Flags) -> anyhow::Result<()> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.enable_all().max_blocking_threads(BLOCKING_THREADS).build()?;
    let ended = runtime.block_on(serve(flags));
    // Does not wait for blocking threads: one may still be reading an abandoned pull.
    runtime.shutdown_background();
    ended
}

/// What the servers and the leader share.
struct Program {
    flags: Flags,
    client: Client,
    place: StorePlace,
    store: Arc<dyn Store>,
    objects: reflector::Store<ClusterCatalog>,
    leading: Leading,
    stop: CancellationToken,
}

async fn serve(flags: Flags) -> anyhow::Result<()> {
    let started = Instant::now();
    let place = wiring::place(&flags);
    let store = wiring::open(&place).await?;
    let config = kube::Config::infer().await.context("cannot find the API server")?;
    let namespace = match flags.system_namespace.as_str() {
        "" => config.default_namespace.clone(),
        namespace => namespace.to_owned(),
    };
    let client = Client::try_from(config).context("cannot set up the client of the API server")?;

    let mut registry = Registry::with_prefix("catalog_mirror");
    let polls = publish::PollMetrics::register(&mut registry);
    let requests = http_api::HttpMetrics::register(&mut registry);
    let collections = GcMetrics::register(&mut registry);
    let connections = server::ServerMetrics::register(&mut registry);
    let leading = Leading::default();
    registry.register(
        "controller_leader",
        "1 if this replica works on the ClusterCatalogs",
        leading.metric.clone(),
    );
    let logins = Logins::default();
    let mirror = Arc::new(wiring::mirror(&flags, &place, store.clone(), &logins, polls.clone())?);

    // Everything that can be wrong is found before the first port is open.
    let api = wiring::server(&flags, connections, true)?;
    let stop = server::stop_on_signals()?;
    let (objects, watching) = watch(&client);
    let program = Arc::new(Program {
        client,
        place,
        store,
        objects,
        leading,
        stop: stop.clone(),
        flags,
    });
    let health = program.health(started);
    let mut tasks = vec![tokio::spawn(watching.run(stop.clone()))];
    tasks.extend(program.probes(&health).await?);
    tasks.extend(program.metrics(registry, polls).await?);
    let listener = wiring::bind(&program.flags.catalogs_server_addr).await?;
    tracing::info!(address = %listener.local_addr()?, store = %program.place, base = program.flags.base(), "serving");
    let settings = http_api::HttpSettings {
        freshness: program.place.freshness(),
        ..http_api::HttpSettings::default()
    };
    let catalogs = PublishedCatalogs::new(program.store.clone(), settings, requests);
    tasks.push(tokio::spawn(api.run(listener, catalogs.router(), stop.clone())));
    if let Some(folder) = program.flags.pull_cas_dir.clone() {
        tasks.push(tokio::spawn(stop_on_change(folder, stop.clone())));
    }

    let worker = Worker {
        reconciler: program.reconciler(mirror.clone(), logins),
        mirror,
        collections,
        program,
    };
    worker.run(&namespace).await;
    for task in tasks {
        task.await?;
    }
    Ok(())
}

impl Program {
    fn health(&self, started: Instant) -> Arc<Health> {
        let health = Arc::new(Health {
            objects: self.objects.clone(),
            is_listed: false.into(),
            store: self.store.clone(),
            leading: self.leading.clone(),
            started,
            was_ready: false.into(),
        });
        let listed = health.clone();
        tokio::spawn(async move {
            if listed.objects.wait_until_ready().await.is_ok() {
                listed.is_listed.store(true, Ordering::Relaxed);
            }
        });
        health
    }

    /// Starts the server of the probes.
    async fn probes(&self, health: &Arc<Health>) -> anyhow::Result<Option<JoinHandle<()>>> {
        let address = match self.flags.health_probe_bind_address.as_str() {
            "" | "0" => return Ok(None),
            address => address,
        };
        self.start(address, health.clone().routes(), false).await.map(Some)
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
        let access = Arc::new(MetricsAccess::new(self.client.clone()));
        let routes = page
            .route()
            .layer(middleware::from_fn_with_state(access, access::check));
        self.start(address, routes, true).await.map(Some)
    }

    /// Starts a server beside the HTTP API. Its connections are not counted.
    async fn start(&self, address: &str, routes: Router, has_tls: bool) -> anyhow::Result<JoinHandle<()>> {
        let server = wiring::server(&self.flags, server::ServerMetrics::default(), has_tls)?;
        let listener = wiring::bind(address).await?;
        Ok(tokio::spawn(server.run(listener, routes, self.stop.clone())))
    }

    fn reconciler(&self, mirror: Arc<Mirror>, logins: Logins) -> Arc<Reconciler> {
        Arc::new(Reconciler {
            catalogs: Api::all(self.client.clone()),
            objects: self.objects.clone(),
            mirror,
            store: self.store.clone(),
            secrets: PullSecrets::new(self.client.clone(), self.flags.global_pull_secret.clone(), logins),
            events: Recorder::new(self.client.clone(), NAME.into()),
            base: self.flags.base(),
            last: Default::default(),
        })
    }
}

/// The watch of all ClusterCatalogs, which runs on every replica.
struct Watching<S>(S);

fn watch(
    client: &Client,
) -> (
    reflector::Store<ClusterCatalog>,
    Watching<impl Stream<Item = Result<Event<ClusterCatalog>, watcher::Error>> + Send + 'static>,
) {
    let (objects, writer) = reflector::store();
    let events = watcher(Api::all(client.clone()), watcher::Config::default())
        .default_backoff()
        .reflect(writer);
    (objects, Watching(events))
}

impl<S: Stream<Item = Result<Event<ClusterCatalog>, watcher::Error>> + Send + 'static> Watching<S> {
    async fn run(self, stop: CancellationToken) {
        let watching = self.0.for_each(|event| async {
            if let Err(error) = event {
                tracing::warn!(error = model::text::chain(&error), "cannot watch ClusterCatalogs");
            }
        });
        stop.run_until_cancelled(watching).await;
    }
}

/// The part that works on ClusterCatalogs while this replica leads.
struct Worker {
    program: Arc<Program>,
    reconciler: Arc<Reconciler>,
    mirror: Arc<Mirror>,
    collections: GcMetrics,
}

impl Worker {
    /// Works whenever this replica leads, until the program stops.
    async fn run(&self, namespace: &str) {
        let stop = &self.program.stop;
        if !self.program.flags.leader_elect {
            return self.lead(stop.cancelled()).await;
        }
        let mut election = Election::new(self.program.client.clone(), namespace);
        while election.acquire(stop).await {
            self.lead(election.hold(stop)).await;
            if stop.is_cancelled() {
                // Nothing is written any more, so another replica may begin.
                return election.release().await;
            }
        }
    }

    /// Works until `end`. Nothing is written after that.
    async fn lead(&self, end: impl Future<Output = ()>) {
        tracing::info!("this replica leads");
        self.program.leading.set(true);
        let work = CancellationToken::new();
        let collecting = publish::collect_regularly(
            self.program.store.clone(),
            Retention::default(),
            self.collections.clone(),
            work.clone(),
        );
        tokio::select! {
            () = end => {}
            () = self.reconcile_all() => {}
            () = self.remove_orphans() => {}
        }
        self.program.leading.set(false);
        tracing::info!("this replica does not lead any more");
        work.cancel();
        if let Err(error) = collecting.await {
            tracing::error!(%error, "the collection of garbage broke off");
        }
        // An orderly end is no death of the process.
        self.mirror.withdraw_pulls().await;
        // The next leader polls all catalogs anew, and so does this one if it leads again.
        self.reconciler.forget();
    }

    async fn reconcile_all(&self) {
        let controller = Controller::new(
            Api::<ClusterCatalog>::all(self.program.client.clone()),
            watcher::Config::default(),
        );
        let done = controller.run(
            |object, reconciler: Arc<Reconciler>| reconciler.reconcile(object),
            |object, error: &ReconcileError, _| Reconciler::after_error(&object, error),
            self.reconciler.clone(),
        );
        done.for_each(|done| async move {
            match done {
                // The errors of reconciliations are logged with their objects, and a removed object needs nothing.
                Ok(_) | Err(ControllerError::ReconcilerFailed(..) | ControllerError::ObjectNotFound(_)) => {}
                Err(error) => tracing::warn!(error = model::text::chain(&error), "cannot watch ClusterCatalogs"),
            }
        })
        .await;
    }

    /// Removes catalogs without a ClusterCatalog, such as one whose finalizer was removed by hand, from the default store. A
    /// store that was named may have catalogs of others.
    async fn remove_orphans(&self) {
        if self.program.flags.store.is_some() {
            return pending().await;
        }
        loop {
            if self.program.objects.wait_until_ready().await.is_err() {
                return pending().await;
            }
            if let Err(error) = self.remove_orphans_once().await {
                tracing::warn!(
                    error = model::text::chain(&error),
                    "cannot remove catalogs without a ClusterCatalog"
                );
            }
            tokio::time::sleep(self.program.flags.gc_interval).await;
        }
    }

    async fn remove_orphans_once(&self) -> Result<(), store::ReadError> {
        let store = &*self.program.store;
        let published = publish::catalog_names(store).await?.catalogs;
        let known: BTreeSet<String> = self
            .program
            .objects
            .state()
            .iter()
            .map(|object| object.name().to_owned())
            .collect();
        for name in published {
            if !known.contains(name.as_str()) {
                publish::remove(store, &name).await?;
                tracing::info!(catalog = %name, "removed a catalog that has no ClusterCatalog");
            }
        }
        Ok(())
    }
}

/// Stops the program when the certificates for registries change. The pod starts again with the new ones; the store stays.
async fn stop_on_change(folder: PathBuf, stop: CancellationToken) {
    let read = || wiring::ca_content(&folder).ok();
    let before = read();
    while stop
        .run_until_cancelled(tokio::time::sleep(CA_INTERVAL))
        .await
        .is_some()
    {
        // A folder that cannot be read is being replaced.
        let now = read();
        if now.is_some() && now != before {
            tracing::warn!(folder = %folder.display(), "stopping, because the certificates for registries have changed");
            return stop.cancel();
        }
    }
}
