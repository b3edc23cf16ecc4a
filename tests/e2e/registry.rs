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

#[tokio::test(flavor = "multi_thread")]
async fn poll_of_mirror_gives_equal_content_and_image() {
    let first = First::start();
    let (content, digest) = (first.content_hash(), first.image("store"));
    let index = first.server.body("/v2/demo/manifests/latest").await;
    assert_eq!(digest, format!("sha256:{}", Sha256::of(&index)));
    for _ in 0..2 {
        first.is_polled("demo:latest").exits(0);
        assert_eq!(
            (first.copied_hash(), first.image("second")),
            (content.clone(), digest.clone())
        );
    }
    first.work.poll("v2").exits(0);
    first.is_polled("demo:latest").exits(0);
    assert_eq!(first.copied_hash(), first.content_hash());
    first.is_polled(&format!("demo@{digest}")).exits(0);
    assert_eq!(first.copied_hash(), content);
    first.work.run("verify --store second").exits(0);
    let refused = first.is_polled("other:latest").exits(1);
    refused.complains("repository other");
    refused.complains("no tag latest");
    first.is_polled("demo:v1").exits(1).complains("no tag v1");
}
