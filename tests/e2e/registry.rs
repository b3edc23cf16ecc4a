//! A mirror that polls another mirror by the registry protocol.

use model::{Current, Sha256};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{
    binary::{Ran, Server, run},
    catalogs, http,
};

/// A server over a store with the example.
struct First {
    server: Server,
    store: TempDir,
}

impl First {
    fn start() -> Self {
        let store = TempDir::new().unwrap();
        let server = Server::start(["serve", "--no-poll", "--store", &path(&store)]);
        let first = Self { server, store };
        first.poll("v1");
        first
    }

    fn poll(&self, version: &str) {
        let source = format!("demo=oci:{}:{version}", catalogs::example_layout().display());
        run(["poll", "--store", &path(&self.store), "--catalog", &source]).exits(0);
    }

    fn host(&self) -> &str {
        self.server.url.trim_start_matches("http://")
    }

    /// Polls this mirror into another store.
    fn is_polled(&self, store: &TempDir, reference: &str) -> Ran {
        let source = format!("copy={}/{reference}", self.host());
        let store = path(store);
        run([
            "poll",
            "--plain-http",
            self.host(),
            "--store",
            &store,
            "--catalog",
            &source,
        ])
    }
}

fn path(store: &TempDir) -> String {
    store.path().display().to_string()
}

fn content_hash(store: &TempDir, name: &str) -> Sha256 {
    let current = store.path().join(format!("catalogs/{name}/current.json"));
    let current: Current = serde_json::from_slice(&std::fs::read(current).unwrap()).unwrap();
    current.content_hash
}

/// Returns the digest of the image that `ls` prints.
fn image(store: &TempDir) -> String {
    let listed = run(["ls", "--json", "--store", &path(store)]).exits(0);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    listed[0]["image"].as_str().unwrap().to_owned()
}

#[test]
fn poll_of_mirror_gives_equal_content_and_image() {
    let first = First::start();
    let second = TempDir::new().unwrap();
    first.is_polled(&second, "demo:latest").exits(0);
    assert_eq!(content_hash(&second, "copy"), content_hash(&first.store, "demo"));
    assert_eq!(image(&second), image(&first.store));
    first.is_polled(&second, "demo:latest").exits(0);
    first.poll("v2");
    first.is_polled(&second, "demo:latest").exits(0);
    assert_eq!(content_hash(&second, "copy"), content_hash(&first.store, "demo"));
    run(["verify", "--store", &path(&second)]).exits(0);
}

#[test]
fn poll_of_mirror_by_digest_gives_earlier_content() {
    let first = First::start();
    let (content, digest) = (content_hash(&first.store, "demo"), image(&first.store));
    first.poll("v2");
    let second = TempDir::new().unwrap();
    first.is_polled(&second, &format!("demo@{digest}")).exits(0);
    assert_eq!(content_hash(&second, "copy"), content);
}

#[tokio::test(flavor = "multi_thread")]
async fn ls_prints_digest_of_served_image_index() {
    let first = tokio::task::block_in_place(First::start);
    let index = http::body(&format!("{}/v2/demo/manifests/latest", first.server.url)).await;
    let digest = tokio::task::block_in_place(|| image(&first.store));
    assert_eq!(digest, format!("sha256:{}", Sha256::of(&index)));
}

#[test]
fn poll_of_mirror_for_unknown_reference_fails() {
    let first = First::start();
    let second = TempDir::new().unwrap();
    for reference in ["other:latest", "demo:v1"] {
        let refused = first.is_polled(&second, reference).exits(1);
        let (repository, tag) = reference.split_once(':').unwrap();
        for part in [format!("repository {repository}"), format!("no tag {tag}")] {
            assert!(refused.stderr.contains(&part), "{}", refused.stderr);
        }
    }
}
