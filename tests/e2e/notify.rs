//! Webhooks, sent by the binary.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{
    binary::{Ran, Server, run},
    catalogs, http,
    receiver::{Receiver, SECRET},
};

/// A folder with a configuration, a secret and a store, and a receiver of events.
struct Site {
    folder: TempDir,
    receiver: Receiver,
}

impl Site {
    async fn start() -> Self {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("secret"), SECRET).unwrap();
        Self {
            folder,
            receiver: Receiver::start().await,
        }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn configure(&self, version: &str) -> PathBuf {
        let file = self.folder.path().join("catalogs.yaml");
        let config = json!({
            "store": self.path("store"),
            "interval": "1s",
            "catalogs": [{
                "name": "demo",
                "source": format!("oci:{}:{version}", catalogs::example_layout().display()),
            }],
            "notify": {
                "source": "https://mirror.example/catalogs",
                "webhooks": [{
                    "name": "deploys",
                    "url": self.receiver.url,
                    "secretFile": self.path("secret"),
                    "catalogs": ["demo"],
                }],
            },
        });
        fs::write(&file, config.to_string()).unwrap();
        file
    }

    fn poll(&self, version: &str) -> Ran {
        let file = self.configure(version);
        tokio::task::block_in_place(|| run(["poll", "--config", &file.display().to_string()]))
    }

    fn rollback(&self, to: &str) -> Ran {
        let file = self.path("catalogs.yaml");
        tokio::task::block_in_place(|| run(["rollback", "--config", &file, "demo", to]))
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
async fn rollback_with_receiver_down_succeeds_and_next_poll_delivers() {
    let mut site = Site::start().await;
    site.poll("v1").exits(0);
    site.poll("v2").exits(0);
    site.receiver.take();
    site.receiver.break_down(true);
    let done = site.rollback("--previous").exits(0);
    assert!(done.stderr.contains("deploys"), "{done:#?}");
    site.receiver.break_down(false);
    site.poll("v2").exits(0);
    let serials: Vec<_> = site
        .receiver
        .take()
        .iter()
        .map(|event| event["data"]["serial"].clone())
        .collect();
    assert_eq!(serials, [3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn poll_with_receiver_down_succeeds_and_delivers_later() {
    let mut site = Site::start().await;
    site.receiver.break_down(true);
    let published = site.poll("v1").exits(0);
    assert!(published.stderr.contains("deploys"), "{published:#?}");
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
    let file = site.configure("v1").display().to_string();
    let server = Server::start(["serve", "--config", &file]);
    assert_eq!(site.receiver.next().await["data"]["serial"], 1);
    server.wait_for(|line| line.contains("delivered an event").then_some(()));
    let metrics = http::text(&format!("{}/metrics", server.url)).await;
    let expected = r#"catalog_mirror_notifications_total{receiver="deploys",outcome="delivered"} 1"#;
    assert!(metrics.contains(expected), "{metrics}");
    let marks = format!("{}/catalogs/demo/notified.json", server.url);
    assert_eq!(
        http::get(&marks, &[]).await.status(),
        404,
        "the list of receivers is private"
    );
    tokio::task::block_in_place(|| assert_eq!(server.terminate(), Some(0)));
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
    let folder = TempDir::new().unwrap();
    let path = folder.path().display().to_string();
    fs::write(folder.path().join("secret"), SECRET).unwrap();
    fs::write(folder.path().join("malformed"), "whsec_hunter2").unwrap();
    let file = folder.path().join("catalogs.yaml");
    fs::write(&file, BAD.replace("FOLDER", &path)).unwrap();
    let failed = run(["poll", "--config", &file.display().to_string()]).exits(1);
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
        assert!(failed.stderr.contains(part), "{part}: {}", failed.stderr);
    }
    assert!(!failed.stderr.contains("hunter2"), "{}", failed.stderr);
}
