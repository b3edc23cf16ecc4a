//! ClusterCatalogs whose source is a mirror.

use std::time::{Duration, Instant};

use model::{Key, Sha256};
use publish::{Catalog, Mirror, MirrorSettings, PollMetrics, PollOptions};
use serde_json::json;
use source::{Images, Logins, PlainHttp, SourceSettings};
use store::{MemoryStore, StoreExt};
use testkit::{FileAnswer, FileServer, Kind};
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
        let mirror = Mirror::new(Images::new(settings).unwrap(), store, signed, PollMetrics::default());
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

#[tokio::test]
async fn wrong_annotation_is_blocked_and_no_server_is_asked() {
    let (cluster, upstream) = copied(&["p"]).await;
    let before = upstream.server.requests().len();
    let host = upstream.server.host();
    let https = |rest: &str| format!("https://{rest}");
    for (annotation, hint) in [
        (String::new(), "write https://HOST/catalogs/NAME"),
        ("mirror".to_owned(), "write https://HOST/catalogs/NAME"),
        ("file:///m/catalogs/up".to_owned(), "write https://HOST/catalogs/NAME"),
        (
            https(&format!("user:hunter2@{host}/m/catalogs/up")),
            "credentials belong in the Secret",
        ),
        (
            https(&format!("{host}/m/catalogs/up?token=hunter2")),
            "credentials belong in the Secret",
        ),
        (
            https(&format!("{host}/m/catalogs/up#a")),
            "credentials belong in the Secret",
        ),
        (https(&format!("{host}/m/up")), "does not end in /catalogs/NAME"),
        (
            https(&format!("{host}/m/catalogs/Up")),
            "does not end in /catalogs/NAME",
        ),
        (
            https(&format!("{host}/m/..%2fother/catalogs/up")),
            "has a % or an empty part",
        ),
        (
            https(&format!("{host}/m//other/catalogs/up")),
            "has a % or an empty part",
        ),
        (
            https(&format!("{host}/m/../other/catalogs/up")),
            "/other/ is not allowed as a mirror",
        ),
        (
            https(&format!("{host}/mm/catalogs/up")),
            "/mm/ is not allowed as a mirror",
        ),
        (https(&format!("{host}/catalogs/up")), "is not allowed as a mirror"),
        (
            https(&format!("{}/m/catalogs/up", host.replace(".1:", ".2:"))),
            "is not allowed as a mirror",
        ),
        (https("169.254.169.254/catalogs/up"), "is not allowed as a mirror"),
        (format!("http://{host}/m/catalogs/up"), "is not allowed as a mirror"),
    ] {
        cluster.annotate(Some(&annotation));
        cluster.reconcile().await.unwrap();
        assert_eq!(cluster.condition("Progressing"), "False Blocked 1", "{annotation}");
        let text = message(&cluster);
        assert!(text.contains(hint) && !text.contains("hunter2"), "{annotation}: {text}");
        assert!(
            cluster.reconciler.last.lock().unwrap()["a"].next.is_none(),
            "{annotation}"
        );
        assert_eq!(cluster.packages().await, Some(1), "{annotation}");
    }
    assert_eq!(upstream.server.requests().len(), before);
}

#[tokio::test]
async fn wrong_secret_and_wrong_mirror_are_named_in_the_condition() {
    let mut cluster = Cluster::start(":v1").await;
    cluster.push("v1", &["p"]);
    let mut upstream = Upstream::start().await;
    let (public, signer) = signer();
    upstream.signer = Some(signer);
    upstream.publish(&cluster, "v1").await;
    upstream.server.require("user", "hunter2");
    cluster.allow(&upstream.origin());
    cluster.annotate(Some(&upstream.url()));
    let ca = upstream.server.ca_pem();
    let other = Upstream::start().await;
    let other_key = SigningKey::generate_pem().unwrap();
    let other_public = SigningKey::from_pem(other_key.as_bytes()).unwrap().public().to_pem();
    let header = ("header", "Authorization: Basic dXNlcjpodW50ZXIy");
    let ca = ("ca.crt", ca);
    cluster.reconcile().await.unwrap();
    let rows: [(&[(&str, &str)], &str); 13] = [
        (&[header], "cannot fetch catalogs/up/current.json"),
        (
            &[header, ("ca.crt", "hunter2")],
            "certificates of authorities are not PEM",
        ),
        (
            &[header, ("ca.crt", other.server.ca_pem())],
            "cannot fetch catalogs/up/current.json",
        ),
        (&[ca], "401 Unauthorized, it wants credentials"),
        (
            &[ca, ("header", "Authorization: Basic aHVudGVyMg==")],
            "401 Unauthorized, it wants credentials",
        ),
        (
            &[ca, ("header", "hunter2")],
            "line 1 of header in the Secret olmv1-system/mirror is not a header field",
        ),
        (&[ca, header, ("tls.crt", "a")], "has only one of tls.crt and tls.key"),
        (
            &[ca, header, ("tls.crt", "a"), ("tls.key", "hunter2")],
            "client certificate or its private key is not PEM",
        ),
        (
            &[ca, header, ("tls.crt", ca.1), ("tls.key", &other_key)],
            "client certificate and its private key cannot be used",
        ),
        (
            &[ca, header, ("public.key", "hunter2")],
            "public.key in the Secret olmv1-system/mirror cannot be used as a public key",
        ),
        (
            &[ca, header, ("key.pub", &other_key)],
            "a private key where a public key is wanted",
        ),
        (
            &[ca, header, ("public.key", &other_public)],
            "none of these keys is trusted",
        ),
        (&[ca, header, ("public.key", &public)], ""),
    ];
    for (data, hint) in rows {
        cluster.set_mirror_secret(Some(data));
        cluster.reconciler.forget();
        cluster.reconcile().await.unwrap();
        let text = message(&cluster);
        let expected = if hint.is_empty() {
            "True Succeeded 1"
        } else {
            "True Retrying 1"
        };
        assert_eq!(cluster.condition("Progressing"), expected, "{hint}: {text}");
        assert!(
            text.contains(hint) && !text.contains("hunter2") && !text.contains("aHVudGVy"),
            "{hint}: {text}"
        );
        assert_eq!(cluster.packages().await, hint.is_empty().then_some(1), "{hint}");
    }
    cluster.set_mirror_secret(None);
    cluster.reconciler.forget();
    cluster.reconcile().await.unwrap();
    assert!(message(&cluster).contains("the Secret olmv1-system/mirror of --mirror-origin does not exist"));
    assert_eq!(cluster.packages().await, Some(1), "the old state is served");
}

#[tokio::test]
async fn redirect_to_another_server_gets_no_secret() {
    let (mut cluster, upstream) = copied(&["p"]).await;
    let other = FileServer::start().await;
    let path = "/m/catalogs/up/current.json";
    let rows = [
        (other.url("/x"), "it leads from https to plain http"),
        ("https://169.254.169.254/x".to_owned(), "link-local"),
    ];
    for (to, hint) in rows {
        cluster.restart();
        upstream.server.script(path, FileAnswer::Redirect(to));
        cluster.reconcile().await.unwrap();
        assert!(message(&cluster).contains(hint), "{}", message(&cluster));
    }
    let other = FileServer::tls().await;
    let both = format!("{}{}", upstream.server.ca_pem(), other.ca_pem());
    cluster.set_mirror_secret(Some(&[("ca.crt", &both), ("header", "Authorization: Bearer hunter2")]));
    cluster.restart();
    upstream.server.script(path, FileAnswer::Redirect(other.url("/x")));
    cluster.reconcile().await.unwrap();
    let asked = other.requests();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].authorization, None);
    let sent = upstream.server.requests().pop().unwrap();
    assert_eq!(sent.authorization.as_deref(), Some("Bearer hunter2"));
}

fn signer() -> (String, Signer) {
    let key = SigningKey::from_pem(SigningKey::generate_pem().unwrap().as_bytes()).unwrap();
    (key.public().to_pem(), Signer::new(vec![key], Vec::new()))
}
