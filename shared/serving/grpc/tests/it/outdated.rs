//! Connections whose calls were answered from content that is outdated.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use server::ServerLimits;
use testkit::until;
use tokio::time::sleep;
use tonic::Code;

use crate::client::Client;
use crate::fixture::{MemoryCatalogs, TestServer, package, shards, valid};
use crate::streams::{METAS, long_package};

const LIST_BUNDLES: &str = "/api.Registry/ListBundles";
const LIST_PACKAGES: &str = "/api.Registry/ListPackages";

/// A catalog's server, and a client that has asked it once.
struct Asked {
    catalogs: MemoryCatalogs,
    server: TestServer,
    client: Client,
    connections: Arc<AtomicUsize>,
}

impl Asked {
    /// Serves the catalogs `a` with these lines and `b`. Connections end within 200 ms.
    async fn start(lines: &str) -> Self {
        let limits = ServerLimits {
            leave: Duration::from_millis(200),
            // Connections are looked at each 10 ms.
            first_request: Duration::from_millis(40),
            ..ServerLimits::grpc()
        };
        let catalogs = MemoryCatalogs::of(&["b"]).await.with("a", lines).await;
        let server = TestServer::start(&catalogs, None, limits).await;
        let (client, connections) = Client::again(server.port, "a.lab");
        client.call(LIST_PACKAGES, b"").await.unwrap();
        Self {
            catalogs,
            server,
            client,
            connections,
        }
    }

    /// Publishes other lines of a catalog, and lets another client ask for it.
    async fn publish(&self, name: &str, lines: &str) -> Code {
        self.catalogs.clone().with(name, lines).await;
        self.ask(name).await
    }

    /// Lets another client ask for a catalog.
    async fn ask(&self, name: &str) -> Code {
        let host = format!("{name}.lab");
        let other = Client::connect(self.server.port, &host).await;
        other.code(LIST_PACKAGES, b"").await
    }

    /// Returns the number of connections that the client had, after more than the time in which
    /// the first one ends if it ends at all.
    async fn connections(&self) -> usize {
        for _ in 0..20 {
            self.client.code(LIST_PACKAGES, b"").await;
            sleep(Duration::from_millis(50)).await;
        }
        self.connections.load(Ordering::Relaxed)
    }
}

#[tokio::test]
async fn connection_ends_after_a_publication_and_its_stream_goes_on() {
    let asked = Asked::start(&long_package()).await;
    let mut stream = asked.client.start(LIST_BUNDLES, b"").await.unwrap();
    stream.message().await.unwrap().unwrap();
    assert_eq!(asked.publish("a", &package("new")).await, Code::Ok);
    assert_eq!(asked.connections().await, 2, "the first one takes no calls");
    let bundles = asked.client.call(LIST_BUNDLES, b"").await.unwrap();
    assert_eq!(bundles.len(), 1, "the state after the publication");
    let mut taken = 1;
    while stream.message().await.unwrap().is_some() {
        taken += 1;
    }
    assert_eq!(taken, METAS, "the state before the publication");
    assert_eq!(asked.connections().await, 2, "the second one stays");
    let found = asked.server.metrics();
    let ended = r#"connections_closed_total{reason="outdated"} 1"#;
    assert!(found.contains(ended), "{found}");
}

#[tokio::test]
async fn connection_stays_after_a_publication_of_the_same_content_or_of_another_catalog() {
    let asked = Asked::start(&package("a")).await;
    // Its Snapshot is another one.
    let republished = valid().identity();
    let catalogs = asked.catalogs.clone();
    catalogs
        .publish("a", package("a").as_bytes(), republished)
        .await;
    assert_eq!(asked.ask("a").await, Code::Ok);
    assert_eq!(asked.publish("b", &package("new")).await, Code::Ok);
    assert_eq!(asked.connections().await, 1);
}

#[tokio::test]
async fn connection_ends_once_its_catalog_can_be_served_again() {
    let asked = Asked::start(&package("a")).await;
    let broken = "{\"schema\":\"olm.channel\",\"name\":\"c\"}\n";
    assert_eq!(shards(broken.as_bytes()).len(), 1);
    let refused = Code::FailedPrecondition;
    assert_eq!(asked.publish("a", broken).await, refused);
    assert_eq!(asked.client.code(LIST_PACKAGES, b"").await, refused);
    assert_eq!(
        asked.connections().await,
        1,
        "there is nothing to come back for"
    );
    assert_eq!(asked.publish("a", &package("new")).await, Code::Ok);
    assert_eq!(asked.connections().await, 2);
}

#[tokio::test]
async fn idle_connection_ends_without_a_call_of_anyone() {
    let asked = Asked::start(&package("a")).await;
    let is_open = |count| {
        let open = format!("\nconnections {count}\n");
        move |metrics: String| metrics.contains(&open)
    };
    assert!(is_open(1)(asked.server.metrics()));
    let began = Instant::now();
    asked.catalogs.clone().with("a", package("new")).await;
    until("the connection ends", async || {
        is_open(0)(asked.server.metrics())
    })
    .await;
    let seconds = began.elapsed().as_secs();
    assert!(seconds < 10, "{seconds} s");
    asked.client.call(LIST_PACKAGES, b"").await.unwrap();
    assert_eq!(asked.connections.load(Ordering::Relaxed), 2);
}
