//! Webhooks, sent by the binary.

use serde_json::{Value, json};

use crate::support::{
    binary::{Ran, Server},
    receiver::{Receiver, SECRET},
    work::Work,
};

/// A folder with a configuration, a secret and a store, and a receiver of events.
struct Site {
    work: Work,
    receiver: Receiver,
}

impl Site {
    async fn start() -> Self {
        let work = Work::new();
        work.write("secret", SECRET);
        Self {
            work,
            receiver: Receiver::start().await,
        }
    }

    fn configure(&self, version: &str) {
        let config = json!({
            "store": "store",
            "interval": "1s",
            "catalogs": [{"name": "demo", "source": format!("oci:example:{version}")}],
            "notify": {
                "source": "https://mirror.example/catalogs",
                "webhooks": [{
                    "name": "deploys",
                    "url": self.receiver.url,
                    "secretFile": self.work.path("secret"),
                    "catalogs": ["demo"],
                }],
            },
        });
        self.work.write("catalogs.yaml", config.to_string());
    }

    fn poll(&self, version: &str) -> Ran {
        self.configure(version);
        self.work.run("poll --config catalogs.yaml")
    }

    fn rollback(&self, to: &str) -> Ran {
        self.work.run(&format!("rollback --config catalogs.yaml demo {to}"))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_receives_each_change_once_and_signed() {
    let mut site = Site::start().await;
    site.poll("v1").exits(0);
    let first = site.receiver.take();
    assert_eq!(first.len(), 1, "{first:?}");
    assert_eq!(first[0]["source"], "https://mirror.example/catalogs");
    assert_eq!(first[0]["data"]["previous"], Value::Null);
    assert_eq!(first[0]["data"]["packages"]["added"].as_array().unwrap().len(), 4);

    site.poll("v1").exits(0);
    assert_eq!(site.receiver.take(), Vec::<Value>::new());

    site.poll("v2").exits(0);
    let second = site.receiver.take();
    assert_eq!(second.len(), 1, "{second:?}");
    let data = &second[0]["data"];
    assert_eq!(data["previous"]["contentHash"], first[0]["data"]["contentHash"]);
    assert_eq!((&data["previous"]["serial"], &data["serial"]), (&json!(1), &json!(2)));
    assert_eq!(data["packages"]["removed"], json!(["demo-search"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_receives_rollback_once() {
    let mut site = Site::start().await;
    site.poll("v1").exits(0);
    site.poll("v2").exits(0);
    let events = site.receiver.take();
    let [first, second] = &events[..] else {
        panic!("each publication sends one event");
    };
    site.rollback("--previous").exits(0);
    let events = site.receiver.take();
    assert_eq!(events.len(), 1, "{events:?}");
    let data = &events[0]["data"];
    assert_eq!(data["serial"], 3);
    assert_eq!(data["contentHash"], first["data"]["contentHash"]);
    assert_eq!(data["previous"]["contentHash"], second["data"]["contentHash"]);
    assert_eq!(data["packages"]["added"], json!(["demo-search"]));

    site.poll("v2").exits(0);
    let hash = first["data"]["contentHash"].as_str().unwrap();
    site.rollback(hash).exits(0);
    assert_eq!(site.receiver.take(), Vec::<Value>::new(), "nothing was published");
}

#[tokio::test(flavor = "multi_thread")]
async fn poll_with_receiver_down_succeeds_and_delivers_later() {
    let mut site = Site::start().await;
    site.receiver.break_down(true);
    let published = site.poll("v1").exits(0);
    published.complains("deploys");
    site.poll("v2").exits(0);
    site.poll("v2").exits(0);
    assert_eq!(site.receiver.take(), Vec::<Value>::new());

    site.receiver.break_down(false);
    site.poll("v2").exits(0);
    let events = site.receiver.take();
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0]["data"]["serial"], 2);
    assert_eq!(events[0]["data"]["previous"], Value::Null);
    site.poll("v2").exits(0);
    assert_eq!(site.receiver.take(), Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_delivers_events_and_counts_them() {
    let mut site = Site::start().await;
    site.configure("v1");
    let server = Server::of(site.work.command("serve --config catalogs.yaml"));
    assert_eq!(site.receiver.next().await["data"]["serial"], 1);
    server.says("delivered an event");
    let metrics = server.text("/metrics").await;
    let expected = r#"catalog_mirror_notifications_total{receiver="deploys",outcome="delivered"} 1"#;
    assert!(metrics.contains(expected), "{metrics}");
    let marks = server.status("/catalogs/demo/notified.json").await;
    assert_eq!(marks, 404, "the list of receivers is private");
    assert_eq!(server.terminate(), Some(0));
}

const BAD: &str = "
catalogs:
- {name: demo, source: 'quay.io/ns/cat:v1'}
notify:
  webhooks:
  - {name: twice, url: 'https://user:hunter2@ci.example/hook', secretFile: FOLDER/secret}
  - {name: twice, url: 'https://ci.example/hook', secretFile: FOLDER/secret}
  - {name: bad-url, url: 'ftp://user:hunter2@ci.example', secretFile: FOLDER/secret}
  - {name: no-file, url: 'https://ci.example/hook', secretFile: FOLDER/missing}
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
    work.write(
        "catalogs.yaml",
        BAD.replace("FOLDER", &work.root().display().to_string()),
    );
    let failed = work.run("poll --config catalogs.yaml").exits(1);
    for part in [
        "webhook twice: another webhook has the same name",
        "webhook bad-url: url is not",
        "missing",
        "CATALOG_MIRROR_NO_SUCH_SECRET",
        "malformed: secret number 1",
        "webhook unsigned: set one of secretFile and secretEnv",
        "webhook elsewhere: the catalog other is not configured",
        "ulr",
    ] {
        failed.complains(part);
    }
    assert!(!failed.stderr.contains("hunter2"), "{}", failed.stderr);
}
