//! Test set-up: a poller with a registry in this process, a store in memory and fake services.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use model::{Current, Key, Status};
use poller::{CatalogMessage, ConfigDocument, Deadline, Environment, Poller, Services};
use serde_json::{Value, json};
use store::StoreExt;
use storekit::MemoryStore;
use testkit::{ImageBuilder, Layer, Registry, RegistryBuilder};
use upkeep::Receiver;

pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// A poller with its registry, store and services.
pub(crate) struct World {
    pub(crate) registry: Registry,
    pub(crate) store: MemoryStore,
    pub(crate) outside: Arc<FakeServices>,
    pub(crate) poller: Poller,
    environment: Arc<Environment>,
    /// Seconds by which the clock of the store is behind.
    pub(crate) behind: Arc<AtomicU64>,
}

/// Services whose answers a test sets.
#[derive(Default)]
pub(crate) struct FakeServices {
    /// Text of `catalogs.yaml`, and its version.
    pub(crate) catalogs: Mutex<(String, u64)>,
    pub(crate) secret: Mutex<Option<String>>,
    /// Batches in the order in which they were sent.
    pub(crate) sent: Mutex<Vec<Vec<CatalogMessage>>>,
    /// Index of the message to refuse in the next batch.
    pub(crate) refuse: Mutex<Option<usize>>,
}

#[async_trait]
impl Services for FakeServices {
    async fn catalogs(
        &self,
        _: &str,
        _: &str,
        known: Option<&str>,
    ) -> anyhow::Result<Option<ConfigDocument>> {
        let (text, version) = self.catalogs.lock().unwrap().clone();
        let tag = Some(version.to_string());
        if known == tag.as_deref() {
            return Ok(None);
        }
        Ok(Some(ConfigDocument { text, tag }))
    }

    async fn secret(&self, id: &str) -> anyhow::Result<String> {
        let secret = self.secret.lock().unwrap().clone();
        secret.ok_or_else(|| anyhow::anyhow!("there is no secret {id}"))
    }

    async fn send(&self, _: &str, messages: &[CatalogMessage]) -> anyhow::Result<Vec<usize>> {
        self.sent.lock().unwrap().push(messages.to_vec());
        let refused = self.refuse.lock().unwrap().take();
        Ok(refused.into_iter().collect())
    }

    fn bus(&self, bus: &str) -> Box<dyn Receiver> {
        panic!("no test names the bus {bus}")
    }
}

impl World {
    /// Starts a poller of these catalogs, each from the repository of its name. `variables` add to
    /// the required ones.
    pub(crate) async fn start(names: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::start_with(Registry::builder(), names, variables).await
    }

    pub(crate) async fn start_with(
        builder: RegistryBuilder,
        names: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let registry = builder.start().await;
        let behind = Arc::new(AtomicU64::new(0));
        let clock = behind.clone();
        let store = MemoryStore::with_clock(move || {
            SystemTime::now() - Duration::from_secs(clock.load(Ordering::Relaxed))
        });
        let outside = Arc::new(FakeServices::default());
        let mut all = BTreeMap::from([
            ("STORE", "s3://bucket"),
            ("CATALOGS", "s3://bucket/catalogs.yaml"),
            ("METRICS", "off"),
        ]);
        all.extend(variables.iter().copied());
        let environment = Environment::read(|name| all.get(name).map(|value| (*value).to_owned()));
        let environment = Arc::new(environment.unwrap());
        let poller = Poller::new(
            environment.clone(),
            Arc::new(store.clone()),
            outside.clone(),
        );
        let world = Self {
            registry,
            store,
            outside,
            poller,
            environment,
            behind,
        };
        world.configure(names);
        world
    }

    /// Starts a poller that has published these catalogs, each with one bundle.
    pub(crate) async fn published(names: &[&str]) -> Self {
        let world = Self::start(names, &[]).await;
        names.iter().for_each(|name| world.push(name, 1));
        world.handle(json!({})).await.unwrap();
        world
    }

    /// Replaces the function by a new instance, as after a crash.
    pub(crate) fn restart(&mut self) {
        let store = Arc::new(self.store.clone());
        self.poller = Poller::new(self.environment.clone(), store, self.outside.clone());
    }

    /// Replaces the configuration by these catalogs.
    pub(crate) fn configure(&self, names: &[&str]) {
        let host = self.registry.host();
        let mut text = format!("registries: {{plainHttp: ['{host}']}}\ncatalogs:\n");
        for name in names {
            text += &format!("- {{name: {name}, source: '{host}/{name}:latest'}}\n");
        }
        self.reconfigure(|_| text);
    }

    /// Replaces the configuration by one that is made of it.
    pub(crate) fn reconfigure(&self, change: impl FnOnce(&str) -> String) {
        let mut catalogs = self.outside.catalogs.lock().unwrap();
        *catalogs = (change(&catalogs.0), catalogs.1 + 1);
    }

    /// Sets the secret to a login at the registry.
    pub(crate) fn set_password(&self, password: &str) {
        let login =
            json!({"auths": {(self.registry.host()): {"username": "user", "password": password}}});
        *self.outside.secret.lock().unwrap() = Some(login.to_string());
    }

    /// Pushes a catalog of one package with this number of bundles.
    pub(crate) fn push(&self, name: &str, bundles: usize) {
        let mut text = "schema: olm.package\nname: p\n".to_owned();
        for bundle in 0..bundles {
            text += &format!("---\nschema: olm.bundle\nname: p.v{bundle}\npackage: p\n");
        }
        self.push_text(name, &text);
    }

    pub(crate) fn push_text(&self, name: &str, text: &str) {
        let layer = Layer::new()
            .dir("configs")
            .file("configs/p/catalog.yaml", text);
        let image = ImageBuilder::catalog("/configs").layer(layer).build();
        self.registry.push(name, "latest", &image);
    }

    pub(crate) async fn handle(&self, event: Value) -> anyhow::Result<Value> {
        self.handle_within(event, MINUTE).await
    }

    pub(crate) async fn handle_within(
        &self,
        event: Value,
        time: Duration,
    ) -> anyhow::Result<Value> {
        self.poller.handle(event, Deadline::after(time)).await
    }

    pub(crate) async fn current(&self, name: &str) -> Option<Current> {
        let key = Key::Current(name.parse().unwrap());
        let found = self.store.read_document(&key).await.unwrap();
        found.map(|(current, _)| current)
    }

    pub(crate) async fn status(&self, name: &str) -> Status {
        let key = Key::Status(name.parse().unwrap());
        let found = self.store.read_document(&key).await.unwrap();
        found.expect("the catalog was polled").0
    }
}

/// Returns an event of `tests/events`, as the service sent it.
pub(crate) fn recorded(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/events/{name}.json"));
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Returns the error of the first report.
pub(crate) fn first_error(answer: &Value) -> &str {
    answer["reports"][0]["error"].as_str().unwrap_or_default()
}

/// Returns catalog and outcome of each report.
pub(crate) fn outcomes(answer: &Value) -> Vec<(&str, &str)> {
    let mut outcomes = Vec::new();
    for report in answer["reports"].as_array().unwrap() {
        let catalog = report["catalog"].as_str().unwrap();
        outcomes.push((catalog, report["outcome"].as_str().unwrap()));
    }
    outcomes
}
