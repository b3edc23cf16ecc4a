//! A mirror that polls another mirror by the registry protocol.

use model::Sha256;
use serde_json::Value;

use crate::support::{
    binary::{Ran, Server},
    work::Work,
};

/// A server over a store with the example, and a second store beside it.
struct First {
    server: Server,
    work: Work,
}

impl First {
    fn start() -> Self {
        let work = Work::published();
        let server = work.serve("");
        Self { server, work }
    }

    /// Polls the server into the second store.
    fn is_polled(&self, reference: &str) -> Ran {
        let host = self.server.url.trim_start_matches("http://");
        let line = format!("poll --plain-http {host} --store second --catalog copy={host}/{reference}");
        self.work.run(&line)
    }

    fn content_hash(&self) -> Value {
        self.work.json("store/catalogs/demo/current.json")["contentHash"].clone()
    }

    fn copied_hash(&self) -> Value {
        self.work.json("second/catalogs/copy/current.json")["contentHash"].clone()
    }

    /// Returns the digest of the image that `ls` prints.
    fn image(&self, store: &str) -> String {
        let listed = self.work.run(&format!("ls --json --store {store}")).exits(0).json();
        listed[0]["image"].as_str().unwrap().to_owned()
    }
}

#[test]
fn poll_of_mirror_gives_equal_content_and_image() {
    let first = First::start();
    first.is_polled("demo:latest").exits(0);
    assert_eq!(first.copied_hash(), first.content_hash());
    assert_eq!(first.image("second"), first.image("store"));
    first.is_polled("demo:latest").exits(0);
    first.work.poll("v2").exits(0);
    first.is_polled("demo:latest").exits(0);
    assert_eq!(first.copied_hash(), first.content_hash());
    first.work.run("verify --store second").exits(0);
}

#[test]
fn poll_of_mirror_by_digest_gives_earlier_content() {
    let first = First::start();
    let (content, digest) = (first.content_hash(), first.image("store"));
    first.work.poll("v2").exits(0);
    first.is_polled(&format!("demo@{digest}")).exits(0);
    assert_eq!(first.copied_hash(), content);
}

#[tokio::test(flavor = "multi_thread")]
async fn ls_prints_digest_of_served_image_index() {
    let first = First::start();
    let index = first.server.body("/v2/demo/manifests/latest").await;
    assert_eq!(first.image("store"), format!("sha256:{}", Sha256::of(&index)));
}

#[test]
fn poll_of_mirror_for_unknown_reference_fails() {
    let first = First::start();
    for reference in ["other:latest", "demo:v1"] {
        let refused = first.is_polled(reference).exits(1);
        let (repository, tag) = reference.split_once(':').unwrap();
        refused.complains(&format!("repository {repository}"));
        refused.complains(&format!("no tag {tag}"));
    }
}
