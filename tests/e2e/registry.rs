//! A mirror that polls another mirror by the registry protocol.

use model::Sha256;
use serde_json::Value;

use crate::support::work::Work;

#[tokio::test(flavor = "multi_thread")]
async fn poll_of_mirror_gives_equal_content_and_image() {
    let work = Work::published();
    let server = work.serve("");
    let host = server.url.trim_start_matches("http://");
    let poll = |reference: &str| {
        work.run(&format!(
            "poll --plain-http {host} --store second --catalog copy={host}/{reference}"
        ))
    };
    // Returns the hash of the content and the digest of the image.
    let state = |store: &str| {
        let listed = work.run(&format!("ls --json --store {store}")).exits(0).json();
        [&listed[0]["current"]["contentHash"], &listed[0]["image"]].map(Value::clone)
    };
    let first = state("store");
    let index = server.body("/v2/demo/manifests/latest").await;
    assert_eq!(first[1], format!("sha256:{}", Sha256::of(&index)));
    for _ in 0..2 {
        poll("demo:latest").exits(0);
        assert_eq!(state("second"), first);
    }
    work.poll("v2").exits(0);
    poll("demo:latest").exits(0);
    assert_eq!(state("second"), state("store"));
    poll(&format!("demo@{}", first[1].as_str().unwrap())).exits(0);
    assert_eq!(state("second"), first);
    work.run("verify --store second").exits(0);
    let refused = poll("other:latest").exits(1);
    refused.complains("repository other");
    refused.complains("no tag latest");
}
