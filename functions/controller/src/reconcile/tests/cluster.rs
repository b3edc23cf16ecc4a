//! An API server in this process, with one ClusterCatalog and one Secret, and a controller for it.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{RawQuery, State},
    http::{Method, StatusCode, Uri},
    routing::get,
};
use futures_util::stream;
use kube::{
    Api, Client,
    runtime::{events::Recorder, reflector, watcher::Event},
};
use model::{Current, Key};
use publish::{Mirror, MirrorSettings, PollMetrics};
use serde_json::{Value, json};
use source::{SourceSettings, Sources};
use store::StoreExt;
use storekit::MemoryStore;
use testkit::{ImageBuilder, Layer, Registry};
use tokio::sync::watch;

use crate::{
    catalog::ClusterCatalog,
    election::{Election, Role},
    metrics::ControllerMetrics,
    named::hold,
    poll::Puller,
    reconcile::{Action, Context, ReconcileError, reconcile},
    secrets::{ClusterSecrets, ObjectName},
    served::Served,
    worker::Worker,
};

const CATALOGS: &str = "/apis/olm.operatorframework.io/v1/clustercatalogs/a";
const LIST: &str = "/apis/olm.operatorframework.io/v1/clustercatalogs";

#[derive(Default)]
struct Objects {
    catalog: Value,
    secret: Option<Value>,
    version: u64,
    /// Requests that write, as `METHOD PATH`.
    writes: Vec<String>,
    /// Change by another writer, right before the next write.
    meddling: Option<Value>,
}

/// The API server, the registry, the store, and the controller.
pub(super) struct Cluster {
    objects: Arc<Mutex<Objects>>,
    pub(super) registry: Registry,
    pub(super) store: MemoryStore,
    known: Mutex<reflector::store::Writer<ClusterCatalog>>,
    context: Arc<Context>,
}

impl Cluster {
    /// Starts with a ClusterCatalog of `HOST/cat` and this rest of a reference, in a registry that wants the login `user:hunter2`.
    pub(super) async fn start(reference: &str) -> Self {
        let registry = Registry::builder().basic("user", "hunter2").start().await;
        let text = format!("{}/cat{reference}", registry.host());
        let objects = Objects {
            catalog: json!({
                "metadata": {"name": "a", "uid": "u", "generation": 1},
                "spec": {"source": {"type": "Image", "image": {"ref": text}}, "availabilityMode": "Available"},
            }),
            secret: Some(login(registry.host(), "hunter2")),
            ..Objects::default()
        };
        let objects = Arc::new(Mutex::new(objects));
        let store = MemoryStore::default();
        let (known, context) = controller(&objects, &registry, &store);
        Self {
            objects,
            registry,
            store,
            known: Mutex::new(known),
            context,
        }
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
        let (known, context) = controller(&self.objects, &self.registry, &self.store);
        (self.known, self.context) = (Mutex::new(known), context);
    }

    /// Replaces the controller by that of a replica that does not lead, with an empty store of its own.
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

    /// Works as a replica that does not lead until `end`. The API server has no Lease.
    pub(super) async fn work_until(&self, end: impl Future<Output = ()>) {
        let object = ClusterCatalog::clone(&self.object());
        self.see(&Event::InitApply(object));
        self.see(&Event::InitDone);
        let role = Arc::new(watch::Sender::new(Role::Follower));
        let client = self.context.catalogs.clone().into_client();
        let election = Election::new(client, "olmv1-system", role.clone());
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
        let layer = Layer::new().dir("configs").file("configs/catalog.yaml", text);
        let image = ImageBuilder::catalog("/configs").layer(layer).build();
        self.registry.push("cat", tag, &image);
        format!("{}/cat@{}", self.registry.host(), image.digest)
    }

    fn lock(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap()
    }

    /// Changes the object, but not its generation.
    pub(super) fn edit(&self, patch: &Value) {
        merge(&mut self.lock().catalog, patch);
    }

    /// Changes the spec of the object, or deletes it, which is a new generation.
    pub(super) fn change(&self, patch: &Value) {
        self.edit(patch);
        let generation = self.get("/metadata/generation").as_i64().unwrap() + 1;
        self.edit(&json!({"metadata": {"generation": generation}}));
        self.object();
    }

    /// Lets another writer change the object right before the next write.
    pub(super) fn meddle(&self, patch: Value) {
        self.lock().meddling = Some(patch);
    }

    /// Sets the password in the pull secret; `None` removes the secret.
    pub(super) fn set_password(&self, password: Option<&str>) {
        let host = self.registry.host();
        self.lock().secret = password.map(|password| login(host, password));
    }

    /// Returns what was written since the last call.
    pub(super) fn writes(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().writes)
    }

    /// Returns a part of the object.
    pub(super) fn get(&self, path: &str) -> Value {
        self.lock().catalog.pointer(path).cloned().unwrap_or_default()
    }

    /// Returns a condition as `status reason observedGeneration`.
    pub(super) fn condition(&self, kind: &str) -> String {
        let conditions = self.get("/status/conditions");
        let mut conditions = conditions.as_array().into_iter().flatten();
        let found = conditions.find(|found| found["type"] == kind).unwrap();
        let text = |field: &str| found[field].as_str().unwrap();
        format!("{} {} {}", text("status"), text("reason"), found["observedGeneration"])
    }

    /// Returns the object as it is now, which the controller knows from now on.
    fn object(&self) -> Arc<ClusterCatalog> {
        let object: ClusterCatalog = serde_json::from_value(self.lock().catalog.clone()).unwrap();
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

    /// Holds what the status of the object names now, as a replica that does not lead.
    pub(super) async fn hold(&self) -> Action {
        hold(self.object(), Arc::clone(&self.context)).await.unwrap()
    }

    /// Reconciles twice: the first time sets the finalizer, or writes the status before the finalizer goes.
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

    /// Reconciles an object that needs nothing.
    pub(super) async fn reconcile_idly(&self) {
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
    objects: &Arc<Mutex<Objects>>,
    registry: &Registry,
    store: &MemoryStore,
) -> (reflector::store::Writer<ClusterCatalog>, Arc<Context>) {
    let server = Router::new().route(LIST, get(list)).fallback(answer);
    let client = Client::new(server.with_state(objects.clone()), "default");
    let mut settings = SourceSettings::default();
    let logins = settings.logins.clone();
    settings.http.plain_http = vec![registry.host().to_owned()];
    settings.http.retry.attempts = Some(1);
    let images = Sources::new(settings).unwrap();
    let store: Arc<dyn store::Store> = Arc::new(store.clone());
    let mirror = Mirror::new(images, store.clone(), MirrorSettings::default(), PollMetrics::default());
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

/// Answers with the list of objects, or to a watch with no change of it.
async fn list(State(objects): State<Arc<Mutex<Objects>>>, RawQuery(query): RawQuery) -> Body {
    if query.is_some_and(|query| query.contains("watch=true")) {
        return Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
    }
    let catalog = &objects.lock().unwrap().catalog;
    let list = json!({"metadata": {"resourceVersion": "1"}, "items": [catalog]});
    list.to_string().into()
}

async fn answer(
    State(objects): State<Arc<Mutex<Objects>>>,
    method: Method,
    uri: Uri,
    body: Bytes,
) -> (StatusCode, String) {
    let mut objects = objects.lock().unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    match (&method, uri.path()) {
        (&Method::GET, CATALOGS) => (StatusCode::OK, objects.catalog.to_string()),
        (&Method::PATCH, path) if path.starts_with(CATALOGS) => objects.patch(path, &body),
        (&Method::GET, path) if path.ends_with("/secrets/global") => match &objects.secret {
            Some(secret) => (StatusCode::OK, secret.to_string()),
            None => failure(StatusCode::NOT_FOUND),
        },
        (&Method::POST, path) if path.ends_with("/selfsubjectreviews") => {
            let person = json!({"status": {"userInfo": {"username": "person"}}});
            (StatusCode::CREATED, person.to_string())
        }
        (_, path) if path.contains("/events") => {
            objects.writes.push("event".to_owned());
            (StatusCode::CREATED, body.to_string())
        }
        _ => failure(StatusCode::NOT_FOUND),
    }
}

impl Objects {
    fn patch(&mut self, path: &str, patch: &Value) -> (StatusCode, String) {
        if let Some(meddling) = self.meddling.take() {
            merge(&mut self.catalog, &meddling);
            self.next_version();
        }
        if patch["metadata"]["resourceVersion"] != self.catalog["metadata"]["resourceVersion"] {
            return failure(StatusCode::CONFLICT);
        }
        let (what, parts) = match path.ends_with("/status") {
            true => ("status", json!({"status": patch["status"]})),
            false => ("object", json!({"metadata": patch["metadata"]})),
        };
        self.writes.push(what.to_owned());
        merge(&mut self.catalog, &parts);
        self.next_version();
        (StatusCode::OK, self.catalog.to_string())
    }

    fn next_version(&mut self) {
        self.version += 1;
        self.catalog["metadata"]["resourceVersion"] = json!(self.version.to_string());
    }
}

fn login(host: &str, password: &str) -> Value {
    let config = json!({"auths": {host: {"username": "user", "password": password}}}).to_string();
    let data = k8s_openapi::ByteString(config.into_bytes());
    json!({"metadata": {"name": "global"}, "data": {".dockerconfigjson": data}})
}

fn failure(status: StatusCode) -> (StatusCode, String) {
    let (code, reason) = (status.as_u16(), status.canonical_reason().unwrap().replace(' ', ""));
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": ""});
    (status, body.to_string())
}

/// Applies a merge patch (RFC 7386).
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in fields {
        match value {
            Value::Null => drop(target.as_object_mut().unwrap().remove(name)),
            value => merge(&mut target[name], value),
        }
    }
}
