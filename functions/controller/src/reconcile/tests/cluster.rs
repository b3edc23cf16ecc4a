//! An API server in this process, with one ClusterCatalog and one Secret, and a controller for it.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kube::Api;
use kube::runtime::events::Recorder;
use kube::runtime::reflector;
use kube::runtime::watcher::Event;
use model::{Current, Key};
use publish::{Mirror, MirrorSettings, PollMetrics};
use serde_json::{Value, json};
use source::{SourceSettings, Sources};
use store::StoreExt;
use storekit::MemoryStore;
use testkit::{ImageBuilder, Layer, Registry};
use tokio::sync::watch;

use crate::catalog::ClusterCatalog;
use crate::election::{Election, Role};
use crate::metrics::ControllerMetrics;
use crate::named::hold;
use crate::poll::Puller;
use crate::reconcile::{Action, Context, ReconcileError, reconcile};
use crate::schedule::LastWork;
use crate::secrets::{ClusterSecrets, ObjectName};
use crate::served::Served;
use crate::tests::{ApiServer, LEASE_PATH};
use crate::worker::Worker;

const CATALOG: &str = "/apis/olm.operatorframework.io/v1/clustercatalogs/a";
const SECRET: &str = "/api/v1/namespaces/olmv1-system/secrets/global";

/// The API server, the registry, the store, and the controller.
pub(super) struct Cluster {
    server: ApiServer,
    pub(super) registry: Registry,
    pub(super) store: MemoryStore,
    known: Mutex<reflector::store::Writer<ClusterCatalog>>,
    context: Arc<Context>,
}

impl Cluster {
    /// Starts with a ClusterCatalog of `HOST/cat` and this rest of a reference, in a registry that
    /// wants the login `user:hunter2`.
    pub(super) async fn start(reference: &str) -> Self {
        let registry = Registry::builder().basic("user", "hunter2").start().await;
        let text = format!("{}/cat{reference}", registry.host());
        let server = ApiServer::default();
        let object = json!({
            "metadata": {"name": "a", "uid": "u", "generation": 1},
            "spec": {"source": {"type": "Image", "image": {"ref": text}}, "availabilityMode": "Available"},
        });
        server.lock().change(CATALOG, &object);
        let store = MemoryStore::default();
        let (known, context) = controller(&server, &registry, &store);
        let cluster = Self {
            server,
            registry,
            store,
            known: Mutex::new(known),
            context,
        };
        cluster.set_password(Some("hunter2"));
        cluster
    }

    /// Starts with a published catalog of these packages.
    pub(super) async fn settled(packages: &[&str]) -> Self {
        let cluster = Self::start(":v1").await;
        cluster.push("v1", packages);
        cluster.settle().await;
        cluster
    }

    /// Replaces the controller by another one on the same store, as after a restart.
    pub(super) fn restart(&mut self) {
        let (known, context) = controller(&self.server, &self.registry, &self.store);
        (self.known, self.context) = (Mutex::new(known), context);
    }

    /// Replaces the controller by that of a replica that does not lead, with an empty store of its
    /// own.
    pub(super) fn follow(&mut self) {
        self.store = MemoryStore::default();
        self.restart();
        let context = Arc::get_mut(&mut self.context).unwrap();
        context.served = Arc::new(Served {
            has_own_store: true,
            role: watch::channel(Role::Follower).1,
            ..Served::led(context.served.objects.clone(), context.served.store.clone())
        });
    }

    /// Works as a replica that does not lead until `end`.
    pub(super) async fn work_until(&self, end: impl Future<Output = ()>) {
        let spec = json!({"holderIdentity": "other", "leaseDurationSeconds": 137});
        self.server
            .lock()
            .change(LEASE_PATH, &json!({"metadata": {}, "spec": spec}));
        let object = ClusterCatalog::clone(&self.object());
        self.see(&Event::InitApply(object));
        self.see(&Event::InitDone);
        let role = Arc::new(watch::Sender::new(Role::Follower));
        let election = Election::new(self.server.client(), "olmv1-system", role.clone());
        let worker = Worker {
            context: self.context.clone(),
            role,
            collections: Default::default(),
            removal_interval: None,
            stop: Default::default(),
        };
        tokio::select! {
            () = worker.run(Some(election)) => panic!("the work ended"),
            () = end => {}
        }
    }

    /// Pushes a catalog with these packages.
    pub(super) fn push(&self, tag: &str, packages: &[&str]) -> String {
        let text = |name: &&str| format!("---\nschema: olm.package\nname: {name}\n");
        let text: String = packages.iter().map(text).collect();
        let layer = Layer::new()
            .dir("configs")
            .file("configs/catalog.yaml", text);
        let image = ImageBuilder::catalog("/configs").layer(layer).build();
        self.registry.push("cat", tag, &image);
        format!("{}/cat@{}", self.registry.host(), image.digest)
    }

    /// Changes the object, but not its generation.
    pub(super) fn edit(&self, patch: &Value) {
        self.server.lock().change(CATALOG, patch);
    }

    /// Changes the spec of the object, or deletes it, which is a new generation.
    pub(super) fn change(&self, patch: &Value) {
        self.edit(patch);
        let generation = self.get("/metadata/generation").as_i64().unwrap() + 1;
        self.edit(&json!({"metadata": {"generation": generation}}));
        self.object();
    }

    /// Sets the password in the pull secret; `None` removes the secret.
    pub(super) fn set_password(&self, password: Option<&str>) {
        let Some(password) = password else {
            return drop(self.server.lock().objects.remove(SECRET));
        };
        let login = json!({"username": "user", "password": password});
        let config = json!({"auths": {(self.registry.host()): login}}).to_string();
        let data = k8s_openapi::ByteString(config.into_bytes());
        let secret = json!({"metadata": {"name": "global"}, "data": {".dockerconfigjson": data}});
        self.server.lock().change(SECRET, &secret);
    }

    /// Returns what was written since the last call, each time the last part of the path.
    pub(super) fn writes(&self) -> Vec<String> {
        std::mem::take(&mut self.server.lock().writes)
    }

    /// Returns a part of the object.
    pub(super) fn get(&self, path: &str) -> Value {
        self.server.lock().objects[CATALOG]
            .pointer(path)
            .cloned()
            .unwrap_or_default()
    }

    /// Returns a condition as `status reason observedGeneration`.
    pub(super) fn condition(&self, kind: &str) -> String {
        let conditions = self.get("/status/conditions");
        let mut conditions = conditions.as_array().into_iter().flatten();
        let found = conditions.find(|found| found["type"] == kind).unwrap();
        let text = |field: &str| found[field].as_str().unwrap();
        format!(
            "{} {} {}",
            text("status"),
            text("reason"),
            found["observedGeneration"]
        )
    }

    /// Returns the object as it is now, which the controller knows from now on.
    fn object(&self) -> Arc<ClusterCatalog> {
        let object: ClusterCatalog =
            serde_json::from_value(self.server.lock().objects[CATALOG].clone()).unwrap();
        self.see(&Event::Apply(object.clone()));
        Arc::new(object)
    }

    fn see(&self, event: &Event<ClusterCatalog>) {
        self.known.lock().unwrap().apply_watcher_event(event);
    }

    /// Reconciles the object as it is now.
    pub(super) async fn reconcile(&self) -> Result<Action, ReconcileError> {
        reconcile(self.object(), Arc::clone(&self.context)).await
    }

    /// Reconciles the object as it was before a change by another writer.
    pub(super) async fn reconcile_before(&self, change: &Value) -> Result<Action, ReconcileError> {
        let object = self.object();
        self.edit(change);
        reconcile(object, Arc::clone(&self.context)).await
    }

    /// Holds what the status of the object names now, as a replica that does not lead.
    pub(super) async fn hold(&self) -> Action {
        hold(self.object(), Arc::clone(&self.context))
            .await
            .unwrap()
    }

    /// Reconciles twice: the first time sets the finalizer, or writes the status before the
    /// finalizer goes.
    pub(super) async fn settle(&self) {
        for _ in 0..2 {
            self.reconcile().await.unwrap();
        }
    }

    /// Returns the time until the next poll.
    pub(super) fn wait(&self) -> Duration {
        let last = self.context.served.polls.get("a").unwrap();
        last.next.unwrap().saturating_duration_since(Instant::now())
    }

    /// Lets the time of the next poll come.
    pub(super) fn pass_time(&self) {
        let polls = &self.context.served.polls;
        let last = polls.get("a").unwrap();
        let next = Some(Instant::now());
        polls.set("a", LastWork { next, ..last });
    }

    /// Reconciles an object that needs nothing.
    pub(super) async fn reconcile_idly(&self) {
        self.writes();
        self.reconcile().await.unwrap();
        assert_eq!(self.writes(), Vec::<String>::new());
    }

    /// Changes the image of the object.
    pub(super) fn name_image(&self, tag: &str) {
        let reference = self.registry.reference("cat", tag);
        self.change(&json!({"spec": {"source": {"image": {"ref": reference}}}}));
    }

    /// Returns the names of the served packages; `None` if nothing is served.
    pub(super) async fn packages(&self) -> Option<u64> {
        let key = Key::Current("a".parse().unwrap());
        let found = self.store.read_document::<Current>(&key).await.unwrap();
        found.map(|(current, _)| current.packages)
    }
}

fn controller(
    server: &ApiServer,
    registry: &Registry,
    store: &MemoryStore,
) -> (reflector::store::Writer<ClusterCatalog>, Arc<Context>) {
    let client = server.client();
    let mut settings = SourceSettings::default();
    let logins = settings.logins.clone();
    settings.http.plain_http = vec![registry.host().to_owned()];
    settings.http.retry.attempts = Some(1);
    let images = Sources::new(settings).unwrap();
    let store: Arc<dyn store::Store> = Arc::new(store.clone());
    let mirror = Mirror::new(
        images,
        store.clone(),
        MirrorSettings::default(),
        PollMetrics::default(),
    );
    let (known, writer) = reflector::store();
    let global = ObjectName::new("olmv1-system", "global");
    let puller = Puller {
        mirror: Arc::new(mirror),
        secrets: ClusterSecrets::new(client.clone(), Some(global), logins),
        rules: Default::default(),
    };
    let context = Context {
        catalogs: Api::all(client.clone()),
        served: Arc::new(Served::led(known, store)),
        puller: Arc::new(puller),
        events: Recorder::new(client, "test".into()),
        metrics: ControllerMetrics::register(&mut prometheus_client::registry::Registry::default()),
        base: "https://catalogs.example/catalogs".to_owned(),
    };
    (writer, Arc::new(context))
}
