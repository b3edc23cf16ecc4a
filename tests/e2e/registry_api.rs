//! The registry API of OLM v0 at the command line: catalogs, access, and errors.

use ::grpc::olm_v0::api::ApiPackage;
use axum::http::uri::PathAndQuery;
use testkit::until;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Response, Status};
use tonic_prost::ProstCodec;

use crate::support::{binary::Server, work::Work};

/// A folder with a store that has the example catalog as `demo` and `demo.v2`.
fn site() -> Work {
    let work = Work::published();
    work.run("poll --store store --catalog demo.v2=oci:example:v2")
        .exits(0);
    work
}

/// Serves the store, and returns the port of the registry API.
pub(crate) fn serve_grpc(work: &Work, options: &str) -> (Server, u16) {
    let server = work.serve(&format!("--grpc 127.0.0.1:0 {options}"));
    let port = server.wait_for(|line| {
        let (_, address) = line.split_once("answering the registry API address=127.0.0.1:")?;
        address.trim().parse().ok()
    });
    (server, port)
}

/// Connects as a client of `host`.
async fn connect(port: u16, host: &str) -> Grpc<Channel> {
    let endpoint = Endpoint::try_from(format!("http://127.0.0.1:{port}")).unwrap();
    let endpoint = endpoint.origin(format!("http://{host}:{port}").parse().unwrap());
    Grpc::new(endpoint.connect().await.unwrap())
}

/// Asks for a package of the example as a client of `host`.
pub(crate) async fn package(port: u16, host: &str) -> Result<ApiPackage, Status> {
    ask(&mut connect(port, host).await).await
}

/// Asks for a package of the example over a connection.
async fn ask(client: &mut Grpc<Channel>) -> Result<ApiPackage, Status> {
    client.ready().await.unwrap();
    let path = PathAndQuery::from_static("/api.Registry/GetPackage");
    let codec = ProstCodec::<String, ApiPackage>::default();
    let answer = client.unary(Request::new("demo-database".to_owned()), path, codec);
    answer.await.map(Response::into_inner)
}

/// Asserts that no catalog answers a client of `host`.
async fn is_refused(port: u16, host: &str) {
    let status = package(port, host).await.unwrap_err();
    let refused = (status.code(), status.message());
    assert_eq!(
        refused,
        (Code::NotFound, "the catalog of this host is not served")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_answers_for_the_catalog_in_the_host_or_the_default_one() {
    let work = site();
    let (_server, port) = serve_grpc(&work, "--grpc-catalog demo");
    let first = package(port, "127.0.0.1").await.unwrap();
    let second = package(port, "demo-v2.mirror.example").await.unwrap();
    assert_ne!(first, second);
    // The next call sees what is published meanwhile.
    work.poll("v2").exits(0);
    assert_eq!(package(port, "demo.mirror.example").await.unwrap(), second);
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_never_answers_for_a_removed_catalog_with_another_one() {
    let work = site();
    let (_server, port) = serve_grpc(&work, "");
    let host = "demo-v2.mirror.example";
    package(port, host).await.unwrap();
    work.run("rm --store store demo.v2").exits(0);
    // The catalogs are looked for once a second. Then `demo` is the only one.
    let demo_is_alone = async || {
        is_refused(port, host).await;
        package(port, "mirror.example").await.is_ok()
    };
    until("demo is the only catalog", demo_is_alone).await;
    is_refused(port, host).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_ends_the_connection_of_a_waiting_client_when_its_catalog_changes() {
    let work = site();
    let (server, port) = serve_grpc(&work, "");
    let mut waiting = connect(port, "demo.mirror.example").await;
    let mut other = connect(port, "demo-v2.mirror.example").await;
    let before = ask(&mut waiting).await.unwrap();
    let second = ask(&mut other).await.unwrap();
    // Another process publishes, and neither client asks again.
    work.poll("v2").exits(0);
    until("the connection ends", async || {
        let ended = "catalog_mirror_grpc_connections_closed_total{reason=\"outdated\"} 1";
        server.text("/metrics").await.contains(ended)
    })
    .await;
    until("one connection stays", async || {
        let open = "catalog_mirror_grpc_connections 1\n";
        server.text("/metrics").await.contains(open)
    })
    .await;
    assert_ne!(before, second);
    assert_eq!(ask(&mut waiting).await.unwrap(), second);
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_behind_credentials_answers_for_named_catalogs_only() {
    let work = site();
    work.write(
        "readers",
        format!("robot:sha256:{}\n", model::Sha256::of(b"token")),
    );
    work.plays(
        "1 serve --no-poll --store store --grpc 127.0.0.1:0 --listen 127.0.0.1:0 --readers readers
         ! grpc: {anonymous: [community]}",
    );
    work.write("grpc.yaml", "grpc: {anonymous: [demo.v2]}");
    let (_server, port) = serve_grpc(&work, "--readers readers --config grpc.yaml");
    // The only catalog that may be named is that of clients that name none, and not of those that
    // name another one.
    for host in ["demo-v2.mirror.example", "mirror.example"] {
        assert!(package(port, host).await.is_ok(), "{host}");
    }
    is_refused(port, "demo.mirror.example").await;
}
