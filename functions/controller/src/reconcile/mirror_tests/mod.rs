//! ClusterCatalogs whose source is a mirror.

mod hostile;

use std::time::{Duration, Instant};

use model::{Key, Sha256};
use publish::{Catalog, Mirror, MirrorSettings, PollMetrics, PollOptions};
use serde_json::json;
use source::{Logins, PlainHttp, SourceSettings, Sources};
use store::{MemoryStore, StoreExt};
use testkit::{FileServer, Kind};
use trust::{Signer, SigningKey};

use super::cluster::Cluster;

/// A mirror with the catalog `up`, as files behind TLS.
struct Upstream {
    server: FileServer,
    store: MemoryStore,
    signer: Option<Signer>,
}

impl Upstream {
    async fn start() -> Self {
        Self {
            server: FileServer::tls().await,
            store: MemoryStore::default(),
            signer: None,
        }
    }

    /// Publishes what the registry of `cluster` has under a tag.
    async fn publish(&self, cluster: &Cluster, tag: &str) {
        let host = cluster.registry.host();
        let logins = Logins::default();
        let login = json!({"auths": {host: {"username": "user", "password": "hunter2"}}}).to_string();
        logins.set([("the test", login.as_str())]).unwrap();
        let mut settings = SourceSettings {
            logins,
            ..SourceSettings::default()
        };
        settings.http.plain_http = PlainHttp::Hosts(vec![host.to_owned()]);
        let store = std::sync::Arc::new(self.store.clone());
        let signed = MirrorSettings {
            signer: self.signer.clone(),
            ..MirrorSettings::default()
        };
        let mirror = Mirror::new(Sources::new(settings).unwrap(), store, signed, PollMetrics::default());
        let source: source::Source = cluster.registry.reference("cat", tag).parse().unwrap();
        let catalog = Catalog::new("up".parse().unwrap(), source);
        let options = PollOptions {
            accept_gone: true,
            ..PollOptions::default()
        };
        let report = mirror.poll(&catalog, options).await;
        assert_eq!(report.error_text(), None);
        for (key, bytes) in self.store.objects() {
            let tag = Sha256::of(&bytes).to_entity_tag();
            self.server.put_tagged(&format!("/m/{key}"), bytes, Some(&tag));
        }
    }

    fn url(&self) -> String {
        self.server.url("/m/catalogs/up")
    }

    fn origin(&self) -> String {
        format!("{},secret=mirror", self.server.url("/m"))
    }

    fn ca(&self) -> [(&str, &str); 1] {
        [("ca.crt", self.server.ca_pem())]
    }

    /// Returns the reference of the status for what is published now.
    async fn reference(&self) -> String {
        let image = pointer(&self.store, "up").await.image.unwrap();
        format!("{}/m/up@sha256:{}", self.server.host(), image.digest.sha256)
    }
}

async fn pointer(store: &MemoryStore, name: &str) -> model::Current {
    let key = Key::Current(name.parse().unwrap());
    store.read_document(&key).await.unwrap().unwrap().0
}

/// A catalog that is copied from a mirror of the image `v1`.
async fn copied(packages: &[&str]) -> (Cluster, Upstream) {
    let mut cluster = Cluster::start(":v1").await;
    cluster.push("v1", packages);
    let upstream = Upstream::start().await;
    upstream.publish(&cluster, "v1").await;
    cluster.allow(&upstream.origin());
    cluster.set_mirror_secret(Some(&upstream.ca()));
    cluster.annotate(Some(&upstream.url()));
    cluster.registry.reset();
    cluster.settle().await;
    assert_eq!(
        cluster.condition("Serving"),
        "True Available 1",
        "{}",
        message(&cluster)
    );
    (cluster, upstream)
}

fn message(cluster: &Cluster) -> String {
    let conditions = cluster.get("/status/conditions");
    let mut all = conditions.as_array().into_iter().flatten();
    let found = all.find(|condition| condition["type"] == "Progressing");
    found
        .and_then(|found| found["message"].as_str())
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test]
async fn copy_equals_its_origin_and_moves_what_changed() {
    let (mut cluster, upstream) = copied(&["p", "q", "r"]).await;
    let bytes = async |store: &MemoryStore, name: &str| {
        let key = Key::Current(name.parse().unwrap());
        store.read_all(&key, 1 << 20).await.unwrap().0
    };
    assert_eq!(bytes(&cluster.store, "a").await, bytes(&upstream.store, "up").await);
    assert_eq!(
        cluster.get("/status/resolvedSource/image/ref"),
        upstream.reference().await
    );
    assert_eq!(cluster.registry.requests().len(), 0, "the registry is not asked");
    let first = upstream.reference().await;

    cluster.writes();
    let before = upstream.server.requests().len();
    cluster.restart();
    cluster.reconcile().await.unwrap();
    assert_eq!(
        upstream.server.statuses()[before..],
        [304],
        "an unchanged catalog is one request"
    );
    assert_eq!(cluster.writes(), Vec::<String>::new());

    cluster.push("v1", &["p", "q", "r", "s"]);
    upstream.publish(&cluster, "v1").await;
    let before = upstream.server.requests().len();
    cluster.restart();
    cluster.reconcile().await.unwrap();
    let requests = upstream.server.requests();
    let paths: Vec<&str> = requests[before..].iter().map(|request| request.path.as_str()).collect();
    assert_eq!(paths[0], "/m/catalogs/up/current.json");
    assert!(paths[1].starts_with("/m/snapshots/"), "{paths:?}");
    assert_eq!(
        paths.iter().filter(|path| path.starts_with("/m/packages/")).count(),
        1,
        "{paths:?}"
    );
    assert_eq!(bytes(&cluster.store, "a").await, bytes(&upstream.store, "up").await);
    assert_ne!(first, upstream.reference().await);
    assert_eq!(
        cluster.get("/status/resolvedSource/image/ref"),
        upstream.reference().await
    );
}

#[tokio::test]
async fn change_of_the_source_starts_anew_while_the_old_state_is_served() {
    let mut cluster = Cluster::start(":v1").await;
    let image = cluster.push("v1", &["p", "q"]);
    cluster.settle().await;
    assert_eq!(cluster.get("/status/resolvedSource/image/ref"), json!(image));
    // The second mirror has a later serial, and the first one an earlier one of another history.
    let mut first = Upstream::start().await;
    let second = Upstream::start().await;
    first.signer = Some(signer().1);
    for (upstream, packages) in [
        (&first, &["vault"][..]),
        (&second, &["cache"]),
        (&second, &["cache", "queue"]),
    ] {
        cluster.push("up", packages);
        upstream.publish(&cluster, "up").await;
        cluster.allow(&upstream.origin());
    }
    cluster.push("v1", &["p", "q"]);
    cluster.registry.reset();
    for (upstream, count) in [(&second, 2), (&first, 1), (&second, 2), (&first, 1)] {
        cluster.set_mirror_secret(None);
        cluster.annotate(Some(&upstream.url()));
        let served = cluster.packages().await;
        cluster.reconcile().await.unwrap();
        assert_eq!(cluster.condition("Progressing"), "True Retrying 1");
        assert_eq!(cluster.packages().await, served, "the old state is served");
        cluster.set_mirror_secret(Some(&upstream.ca()));
        cluster.restart();
        cluster.reconcile().await.unwrap();
        assert_eq!(
            cluster.condition("Progressing"),
            "True Succeeded 1",
            "{}",
            message(&cluster)
        );
        assert_eq!(cluster.packages().await, Some(count));
        assert_eq!(
            cluster.get("/status/resolvedSource/image/ref"),
            upstream.reference().await
        );
    }
    assert_eq!(cluster.registry.requests().len(), 0);
    cluster.annotate(None);
    cluster.reconcile().await.unwrap();
    assert_eq!(cluster.packages().await, Some(2), "{}", message(&cluster));
    assert_eq!(cluster.get("/status/resolvedSource/image/ref"), json!(image));
}

#[tokio::test]
async fn image_is_pulled_after_a_mirror_of_the_same_digest() {
    let (cluster, _upstream) = copied(&["p"]).await;
    cluster.annotate(None);
    cluster.reconcile().await.unwrap();
    assert_eq!(
        cluster.condition("Progressing"),
        "True Succeeded 1",
        "{}",
        message(&cluster)
    );
    assert!(
        cluster.registry.count(Kind::Blob) > 0,
        "what the mirror said of the image is not believed"
    );
    let reference = cluster.get("/status/resolvedSource/image/ref");
    assert!(
        reference.as_str().unwrap().starts_with(cluster.registry.host()),
        "{reference}"
    );
}

#[tokio::test]
async fn digest_of_the_object_must_be_that_of_the_mirror() {
    let (cluster, upstream) = copied(&["p"]).await;
    let reference = cluster.get("/status/resolvedSource/image/ref");
    let pinned = cluster.push("v2", &["p", "q"]);
    cluster.registry.reset();
    cluster.change(&json!({"spec": {"source": {"image": {"ref": pinned}}}}));
    cluster.reconcile().await.unwrap();
    assert_eq!(cluster.condition("Progressing"), "False Blocked 2");
    let text = message(&cluster);
    assert!(
        text.contains("the origin has the content of sha256:") && text.contains("is asked for"),
        "{text}"
    );
    assert_eq!(cluster.get("/status/resolvedSource/image/ref"), reference);
    let next = cluster.reconciler.last.lock().unwrap()["a"].next;
    assert!(
        next.is_some_and(|next| next > Instant::now()),
        "the mirror may get there"
    );
    assert_eq!(cluster.registry.requests().len(), 0, "the image is not asked for");

    upstream.publish(&cluster, "v2").await;
    cluster.reconciler.forget();
    cluster.reconcile().await.unwrap();
    assert_eq!(cluster.condition("Progressing"), "True Succeeded 2");
    assert_eq!(cluster.packages().await, Some(2));
}

#[tokio::test]
async fn copy_follows_the_interval_of_the_object() {
    let (cluster, _upstream) = copied(&["p"]).await;
    assert!(
        cluster.reconciler.last.lock().unwrap()["a"].next.is_none(),
        "once for each start"
    );
    cluster.change(&json!({"spec": {"source": {"image": {"pollIntervalMinutes": 10}}}}));
    cluster.reconcile().await.unwrap();
    let next = cluster.reconciler.last.lock().unwrap()["a"].next.unwrap();
    let wait = next.saturating_duration_since(Instant::now());
    assert!(
        (Duration::from_secs(530)..Duration::from_secs(600)).contains(&wait),
        "{wait:?}"
    );
}

fn signer() -> (String, Signer) {
    let key = SigningKey::from_pem(SigningKey::generate_pem().unwrap().as_bytes()).unwrap();
    (key.public().to_pem(), Signer::new(vec![key], Vec::new()))
}
