//! Rings at the command line, and every way in which clients read them.

use serde_json::Value;
use testkit::until;

use crate::registry_api::{package, serve_grpc};
use crate::support::binary::Server;
use crate::support::catalogs;
use crate::support::work::Work;

/// A folder of FBC as `dev`, with a ring of each kind.
const RINGS: &str = "
catalogs:
- {name: dev, source: 'dir:configs', hold: off}
- {name: test, ring: {of: dev, after: 1s}}
- {name: prod, ring: {of: dev, after: 300d, now: [demo-cache]}}
- {name: hand, ring: {of: dev, manual: true}}
";

const POLL: &str = "poll --config rings.yaml --store store --json";

/// Returns a folder in which the first version of the example was polled, and the rings too.
fn site() -> Work {
    let work = Work::new();
    work.write("rings.yaml", RINGS);
    work.write_all("configs", &catalogs::example("v1"));
    work.run(POLL).exits(0);
    work
}

fn content(work: &Work, catalog: &str) -> Value {
    work.json(&format!("store/catalogs/{catalog}/current.json"))["contentHash"].clone()
}

fn ring(work: &Work, catalog: &str) -> Value {
    work.json(&format!("store/catalogs/{catalog}/current.json"))["source"]["ring"].clone()
}

/// Polls the ring of one second until it has the content of the source.
async fn follow(work: &Work) {
    until("the ring follows", async || {
        work.run(&format!("{POLL} test")).exits(0);
        let is_served = ring(work, "test").get("isPlaceholder").is_none();
        is_served && content(work, "test") == content(work, "dev")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rings_are_served_copied_and_compared_as_all_catalogs() {
    let work = site();
    let server = work.serve("");
    for name in ["test", "prod", "hand"] {
        let all = format!("/catalogs/{name}/api/v1/all");
        assert_eq!(server.status(&all).await, 404, "{name}");
    }
    work.plays(
        "0 history prod --store store
         > waits until
         0 history hand --store store
         > waits for promote
         1 promote dev --config rings.yaml --store store
         ! dev is no ring
         1 promote hand ffffffffffff --config rings.yaml --store store
         ! cannot promote: no stored state of dev has a content hash that begins with",
    );
    follow(&work).await;
    let first = content(&work, "dev");
    for name in ["prod", "hand"] {
        let promote = format!("promote {name} --config rings.yaml --store store --json");
        let reports = work.run(&promote).exits(0).json();
        assert_eq!(reports[0]["outcome"], "published");
        assert_eq!(reports[0]["objectsPublished"], 0);
        assert_eq!(content(&work, name), first);
    }
    let image = work.json("store/catalogs/dev/current.json")["image"].clone();
    work.write_all("configs", &catalogs::example("v2"));
    let reports = work.run(POLL).exits(0).json();
    let of = |name: &str| {
        let mut reports = reports.as_array().unwrap().iter();
        reports.find(|report| report["catalog"] == name).unwrap()
    };
    assert_eq!(of("hand")["outcome"], "sourceDigestUpdated");
    follow(&work).await;
    let second = content(&work, "dev");
    assert_ne!(second, first);
    assert_eq!(content(&work, "hand"), first);
    work.plays(
        "0 history hand --store store
         > waits for promote
         10 diff hand dev --store store
         > demo-
         0 diff test dev --store store
         0 ls --store store
         > ring:dev+300d+now:demo-cache
         > hand: follows dev, at its state of
         > ; 1 state waits for promote
         0 verify --store store",
    );

    for (name, expected) in [("test", &second), ("hand", &first)] {
        let served = server.text(&format!("/catalogs/{name}/content-hash")).await;
        assert_eq!(served.trim(), expected.as_str().unwrap());
    }
    // As an image, `hand` is what `dev` was.
    let manifest = server.get("/v2/hand/manifests/latest").await;
    let digest = manifest.headers()["docker-content-digest"]
        .to_str()
        .unwrap();
    let key = image["key"].as_str().unwrap();
    assert!(
        key.ends_with(digest.trim_start_matches("sha256:")),
        "{key} {digest}"
    );

    let (_grpc, port) = serve_grpc(&work, "");
    let [test, hand, dev] = ["test", "hand", "dev"].map(|name| format!("{name}.mirror.example"));
    let newest = package(port, &dev).await.unwrap();
    assert_eq!(package(port, &test).await.unwrap(), newest);
    assert_ne!(package(port, &hand).await.unwrap(), newest);

    work.run("export --store store --static tree").exits(0);
    let written = work.read("tree/catalogs/hand/content-hash");
    assert_eq!(written.trim(), first.as_str().unwrap());
    work.run("sync store copy").exits(0);
    for name in ["test", "prod", "hand"] {
        let path = format!("catalogs/{name}/current.json");
        assert_eq!(
            work.read(&format!("copy/{path}")),
            work.read(&format!("store/{path}"))
        );
    }
    work.run("verify --store copy").exits(0);

    // An ImageSetConfiguration takes its packages from a ring.
    let host = server.url.trim_start_matches("http://");
    let set = format!(
        "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\n\
         mirror: {{operators: [{{catalog: '{host}/hand:latest', full: true}}]}}\n"
    );
    work.write("imageset.yaml", set);
    let composed = work.run(&format!("compose imageset.yaml --plain-http {host}"));
    let own = work.run(&format!("render {host}/hand:latest --plain-http {host}"));
    assert_eq!(composed.exits(0).stdout, own.exits(0).stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_moves_a_ring_when_its_next_state_is_old_enough() {
    let work = Work::new();
    // Nothing but its state brings a poll of the ring.
    let config = "interval: 24h
catalogs:
- {name: dev, source: 'dir:configs'}
- {name: prod, ring: {of: dev, after: 3s}}
";
    work.write("rings.yaml", config);
    work.write_all("configs", &catalogs::example("v1"));
    let server = Server::of(work.command("serve --config rings.yaml --store store"));
    let all = "/catalogs/prod/api/v1/all";
    until("the ring is polled", async || {
        work.exists("store/catalogs/prod/status.json")
    })
    .await;
    let status = work.json("store/catalogs/prod/status.json");
    assert!(status["nextAt"].is_string(), "{status}");
    assert_eq!(server.status(all).await, 404);
    until("the ring is served", async || {
        server.status(all).await == 200
    })
    .await;
    let metrics = server.text("/metrics").await;
    for line in [
        "ring_waiting_states{catalog=\"prod\"} 0",
        "ring_state_timestamp_seconds{catalog=\"prod\"} ",
    ] {
        assert!(metrics.contains(line), "{line}");
    }
}
