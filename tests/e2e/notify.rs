//! Webhooks, sent by the binary.

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::mpsc};

use crate::support::binary::{Ran, Server};
use crate::support::work::Work;

/// Secret of the receiver: `whsec_` and the base64 of the bytes 0 to 31.
const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// A folder with a configuration, a secret and a store, and a receiver of events.
struct Site {
    work: Work,
    url: String,
    events: mpsc::UnboundedReceiver<Value>,
}

impl Site {
    async fn start() -> Self {
        let work = Work::new();
        work.write("secret", SECRET);
        let (sender, events) = mpsc::unbounded_channel();
        let receive = async move |fields: HeaderMap, body: Bytes| {
            assert!(fields.contains_key("webhook-signature"), "{fields:?}");
            sender
                .send(serde_json::from_slice(&body).unwrap())
                .expect("the test listens");
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        // A poll does not wait for a retry in an hour.
        let down = async || (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "3600")]);
        let router = Router::new()
            .route("/hook", post(receive))
            .route("/down", post(down));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { work, url, events }
    }

    fn configure(&self, version: &str, path: &str) {
        let config = json!({
            "store": "store",
            "interval": "1s",
            "catalogs": [{"name": "demo", "source": format!("oci:example:{version}")}],
            "notify": {
                "source": "https://mirror.example/catalogs",
                "webhooks": [{
                    "name": "deploys",
                    "url": format!("{}{path}", self.url),
                    "secretFile": self.work.path("secret"),
                    "catalogs": ["demo"],
                }],
            },
        });
        self.work.write("catalogs.yaml", config.to_string());
    }

    fn poll(&self, version: &str, path: &str) -> Ran {
        self.configure(version, path);
        self.work.run("poll --config catalogs.yaml").exits(0)
    }

    /// Returns the changes of the events that arrived since the last call.
    fn changes(&mut self) -> Vec<Value> {
        let events = std::iter::from_fn(|| self.events.try_recv().ok());
        let change = |event: Value| {
            assert_eq!(event["source"], "https://mirror.example/catalogs");
            let data = &event["data"];
            json!([
                data["previous"]["serial"],
                data["serial"],
                data["packages"]["removed"]
            ])
        };
        events.map(change).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_receives_each_poll_and_rollback_that_publishes() {
    let mut site = Site::start().await;
    site.poll("v1", "/down").complains("deploys");
    assert_eq!(site.changes(), Vec::<Value>::new());
    site.poll("v1", "/hook");
    assert_eq!(site.changes(), [json!([null, 1, []])], "what was missed");
    site.poll("v2", "/hook");
    assert_eq!(site.changes(), [json!([1, 2, ["demo-search"]])]);
    let rollback = "0 rollback --config catalogs.yaml demo";
    site.work.plays(&format!("{rollback} --previous"));
    assert_eq!(site.changes(), [json!([2, 3, ["demo-vault"]])]);
    let current = site.work.json("store/catalogs/demo/current.json");
    let published = current["contentHash"].as_str().unwrap();
    site.work.plays(&format!("{rollback} {published}"));
    site.poll("v2", "/hook");
    assert_eq!(site.changes(), Vec::<Value>::new(), "nothing was published");
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_delivers_events_and_counts_them() {
    let mut site = Site::start().await;
    site.configure("v1", "/hook");
    let server = Server::of(site.work.command("serve --config catalogs.yaml"));
    server.says("delivered an event");
    assert_eq!(site.changes(), [json!([null, 1, []])]);
    let metrics = server.text("/metrics").await;
    let expected =
        r#"catalog_mirror_notifications_total{receiver="deploys",outcome="delivered"} 1"#;
    assert!(metrics.contains(expected), "{metrics}");
    let marks = server.status("/catalogs/demo/notified.json").await;
    assert_eq!(marks, 404, "the list of receivers is private");
}

const BAD: &str = "
catalogs:
- {name: demo, source: 'quay.io/ns/cat:v1'}
notify:
  webhooks:
  - {name: twice, url: 'https://user:hunter2@ci.example/hook', secretFile: FOLDER/secret}
  - {name: twice, url: 'https://ci.example/hook', secretFile: FOLDER/secret}
  - {name: bad-url, url: 'ftp://user:hunter2@ci.example', secretFile: FOLDER/secret}
  - {name: no-variable, url: 'https://ci.example/hook', secretEnv: CATALOG_MIRROR_NO_SUCH_SECRET}
  - {name: malformed, url: 'https://ci.example/hook', secretFile: FOLDER/malformed}
  - {name: unsigned, url: 'https://ci.example/hook'}
  - {name: elsewhere, url: 'https://ci.example/hook', secretFile: FOLDER/secret, catalogs: [other]}
  - {name: typo, ulr: 'https://ci.example/hook', secretFile: FOLDER/secret}
";

#[test]
fn webhook_problems_are_reported_together_without_secrets() {
    let work = Work::new();
    work.write("secret", SECRET);
    work.write("malformed", "whsec_hunter2");
    let root = work.root().display().to_string();
    work.write("catalogs.yaml", BAD.replace("FOLDER", &root));
    work.plays(
        "1 poll --config catalogs.yaml
         ! webhook twice: another webhook has the same name
         ! webhook bad-url: url: write http:// or https:// with a host
         ! CATALOG_MIRROR_NO_SUCH_SECRET
         ! malformed: secret number 1
         ! webhook unsigned: set one of secretFile and secretEnv
         ! webhook elsewhere: the catalog other is not configured
         ! ulr
         - hunter2",
    );
}
