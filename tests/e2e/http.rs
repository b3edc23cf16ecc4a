//! The HTTP contract over a real socket: a server that polls, and the demo.

use std::time::Duration;

use testkit::{Kind, until};

use crate::support::{binary::Server, catalogs, http, work::Work};

#[tokio::test(flavor = "multi_thread")]
async fn serve_polls_reports_metrics_and_stops_on_sigterm() {
    let work = Work::new();
    let server = Server::of(work.command("serve --store store --catalog demo=oci:example:v1"));
    server.says("published");
    // The log tells a publication before its poll has ended.
    is_ready(&server).await;
    let metrics = server.text("/metrics").await;
    for line in [
        "catalog_mirror_polls_total{catalog=\"demo\",outcome=\"published\"} 1",
        "catalog_mirror_polls_total{catalog=\"demo\",outcome=\"failed\"} 0",
        "catalog_mirror_last_successful_poll_age_seconds{catalog=\"demo\"}",
        "catalog_mirror_http_requests",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let posted = http::request(reqwest::Method::POST, &server.url("/metrics"), &[]).await;
    assert_eq!(
        (
            posted.status().as_u16(),
            http::field(&posted, "allow").as_str()
        ),
        (405, "GET,HEAD")
    );
    assert_eq!(server.terminate(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_compressed_and_take_no_parameter() {
    let server = Work::published().serve("");
    let url = server.url("/metrics");
    let plain = http::get(&url, &[]).await;
    assert_eq!(http::field(&plain, "vary"), "Accept-Encoding");
    let plain = plain.text().await.unwrap();
    let zipped = http::get(&url, &[("accept-encoding", "gzip")]).await;
    assert_eq!(http::field(&zipped, "content-encoding"), "gzip");
    assert_eq!(http::field(&zipped, "vary"), "Accept-Encoding");
    let zipped = zipped.bytes().await.unwrap();
    assert!(zipped.len() < plain.len() / 2 && zipped.starts_with(&[0x1f, 0x8b]));
    let none = [("accept-encoding", "gzip;q=0, identity;q=0, *;q=0")];
    assert_eq!(http::get(&url, &none).await.status(), 406);
    let refused = http::get(&server.url("/metrics?name=x"), &[]).await;
    assert_eq!(refused.status(), 400);
    assert!(refused.text().await.unwrap().contains("unknown-parameter"));
    let head = http::request(reqwest::Method::HEAD, &url, &[]).await;
    assert_eq!(head.status(), 200);
}

/// Folders of the server tell a stranger nothing about what it serves.
#[tokio::test(flavor = "multi_thread")]
async fn folders_of_the_server_are_named_by_their_last_part() {
    let work = Work::new();
    work.write("private/team/a.json", catalogs::package("etcd", 1).1);
    let folder = work.path("private/team").display().to_string();
    let poll = |name: &str, source: &str| {
        work.run(&format!("poll --store store --catalog {name}={source}"))
    };
    poll("team", &format!("dir:{folder}")).exits(0);
    poll("gone", &format!("dir:{folder}/none"))
        .exits(1)
        .complains(&folder);
    let composition =
        format!("catalogs: [{{name: both, compose: {{inputs: [{{catalog: 'dir:{folder}'}}]}}}}]");
    work.write("both.yaml", composition);
    work.run("poll --store store --config both.yaml").exits(0);
    work.run("sync store copy").exits(0);
    work.run("sync copy again").exits(0);
    for (store, source) in [("store", "dir:team"), ("again", "copy")] {
        let server = Server::of(work.command(&format!("serve --no-poll --store {store}")));
        let mut paths = vec!["/catalogs".to_owned()];
        for name in ["team", "both"] {
            for document in ["current.json", "status.json"] {
                paths.push(format!("/catalogs/{name}/{document}"));
            }
        }
        for path in paths {
            let text = server.text(&path).await;
            let secret = work.root().display().to_string();
            assert!(
                !text.contains(&secret) && !text.contains("private"),
                "{path}: {text}"
            );
        }
        let status = server.json("/catalogs/team/status.json").await;
        assert_eq!(status["source"], source);
    }
    let failed = work.read("store/catalogs/gone/status.json");
    assert!(
        failed.contains("none") && !failed.contains("private"),
        "{failed}"
    );
    // Nothing is published again because of it.
    poll("team", &format!("dir:{folder}"))
        .exits(0)
        .prints("unchanged");
}

/// Waits until the server is ready.
async fn is_ready(server: &Server) {
    until("the first polls end", async || {
        server.status("/readyz").await == 200
    })
    .await;
}

/// A catalog that cannot be polled delays it no longer than its first poll.
#[tokio::test(flavor = "multi_thread")]
async fn serve_is_ready_when_each_catalog_is_published_or_was_polled() {
    let registry = testkit::Registry::start().await;
    registry.push("demo", "latest", &catalogs::image(&catalogs::example("v1")));
    registry.delay(Kind::Blob, Duration::from_secs(3));
    let work = Work::new();
    let server = Server::of(work.command(&format!(
        "serve --store store --catalog demo={} --catalog absent={} --plain-http {}",
        registry.reference("demo", "latest"),
        registry.reference("absent", "latest"),
        registry.host(),
    )));
    let first = (
        server.status("/readyz").await,
        server.status("/healthz").await,
    );
    assert_eq!(first, (503, 200));
    is_ready(&server).await;
    assert_eq!(server.status("/catalogs/demo/content-hash").await, 200);
    assert_eq!(server.status("/catalogs/absent/content-hash").await, 404);
    assert_eq!(server.terminate(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn demo_publishes_serves_and_updates() {
    let server = Server::of(Work::new().command("demo --update-after 3s"));
    let first = server.text("/catalogs/demo/content-hash").await;
    server.says("Ask again");
    assert_ne!(server.text("/catalogs/demo/content-hash").await, first);
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn demo_once_ends_by_itself() {
    Work::new().plays(
        "0 demo --once --update-after 0s --listen 127.0.0.1:0
         > published
         > unchanged
         > curl -s
         > +1 -1 ~1",
    );
}
