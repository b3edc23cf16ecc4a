//! The registry API of OLM v0 at the command line: catalogs, access, and errors.

use ::grpc::olm_v0::api::{ApiBundle, ApiPackage, GetBundleRequest};
use testkit::until;
use tonic::{Code, Request, Status, client::Grpc, transport::Endpoint};
use tonic_prost::ProstCodec;

use crate::support::{binary::Server, work::Work};

/// A folder with a store that has the example catalog as `demo` and `demo.v2`.
fn site() -> Work {
    let work = Work::published();
    work.run("poll --store store --catalog demo.v2=oci:example:v2").exits(0);
    work
}

impl Work {
    /// Serves the store, and returns the port of the registry API.
    fn serve_grpc(&self, options: &str) -> (Server, u16) {
        let server = self.serve(&format!("--grpc 127.0.0.1:0 {options}"));
        let port = server.wait_for(|line| {
            let (_, address) = line.split_once("answering the registry API address=127.0.0.1:")?;
            address.trim().parse().ok()
        });
        (server, port)
    }
}

/// Asks for a package as a client of `host`.
async fn package(port: u16, host: &str, name: &str) -> Result<ApiPackage, Status> {
    call(port, host, "/api.Registry/GetPackage", name.to_owned()).await
}

async fn call<Req, Res>(port: u16, host: &str, method: &'static str, request: Req) -> Result<Res, Status>
where
    Req: prost::Message + Default + 'static,
    Res: prost::Message + Default + 'static,
{
    let endpoint = Endpoint::try_from(format!("http://127.0.0.1:{port}")).unwrap();
    let endpoint = endpoint.origin(format!("http://{host}:{port}").parse().unwrap());
    let mut client = Grpc::new(endpoint.connect().await.unwrap());
    client.ready().await.unwrap();
    let path = axum::http::uri::PathAndQuery::from_static(method);
    let answer = client
        .unary(Request::new(request), path, ProstCodec::<Req, Res>::default())
        .await;
    answer.map(tonic::Response::into_inner)
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_answers_for_the_catalog_in_the_host() {
    let work = site();
    let (_server, port) = work.serve_grpc("");
    let first = package(port, "demo.mirror.example", "demo-database").await.unwrap();
    let second = package(port, "demo-v2.mirror.example", "demo-database").await.unwrap();
    assert_ne!(first, second);
    assert_eq!(first.default_channel_name, "stable");
    let unknown = package(port, "other.mirror.example", "demo-database")
        .await
        .unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    assert!(unknown.message().contains("demo, demo.v2"), "{unknown}");
    let absent = package(port, "demo.mirror.example", "absent").await.unwrap_err();
    assert_eq!(
        (absent.code(), absent.message()),
        (Code::Unknown, "package \"absent\" not found")
    );
    let head = &first.channels[0];
    let request = GetBundleRequest {
        pkg_name: "demo-database".to_owned(),
        channel_name: head.name.clone(),
        csv_name: head.csv_name.clone(),
    };
    let bundle: ApiBundle = call(port, "demo.mirror.example", "/api.Registry/GetBundle", request)
        .await
        .unwrap();
    assert!(bundle.csv_json.contains("ClusterServiceVersion"), "{bundle:?}");
    // The next call sees what is published meanwhile.
    work.poll("v2").exits(0);
    assert_eq!(
        package(port, "demo.mirror.example", "demo-database").await.unwrap(),
        second
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_never_answers_for_a_removed_catalog_with_another_one() {
    let work = site();
    let (_server, port) = work.serve_grpc("");
    let host = "demo-v2.mirror.example";
    package(port, host, "demo-database").await.unwrap();
    work.run("rm --store store demo.v2").exits(0);
    let is_refused = async || {
        let status = package(port, host, "demo-database").await.unwrap_err();
        let refused = (status.code(), status.message());
        assert_eq!(refused, (Code::NotFound, "the catalog of this host is not served"));
    };
    // The catalogs are looked for once a second. Then `demo` is the only one.
    let demo_is_alone = async || {
        is_refused().await;
        package(port, "mirror.example", "demo-database").await.is_ok()
    };
    until("demo is the only catalog", demo_is_alone).await;
    is_refused().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_answers_clients_without_a_name_for_the_default_catalog() {
    let work = site();
    let (_server, port) = work.serve_grpc("--grpc-catalog demo");
    assert!(package(port, "127.0.0.1", "demo-database").await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_behind_credentials_answers_for_named_catalogs_only() {
    let work = site();
    work.write("readers", format!("robot:sha256:{}\n", model::Sha256::of(b"token")));
    let serve = "serve --no-poll --store store --grpc 127.0.0.1:0 --listen 127.0.0.1:0 --readers readers";
    let refused = work.run(serve).exits(1);
    refused.complains("grpc: {anonymous: [community]}");
    work.write("grpc.yaml", "grpc: {anonymous: [demo.v2]}");
    let (_server, port) = work.serve_grpc("--readers readers --config grpc.yaml");
    assert!(package(port, "demo-v2.mirror.example", "demo-database").await.is_ok());
    // The only catalog that may be named is that of clients that name none, and not of those that name another one.
    assert!(package(port, "mirror.example", "demo-database").await.is_ok());
    let hidden = package(port, "demo.mirror.example", "demo-database").await.unwrap_err();
    assert_eq!(
        (hidden.code(), hidden.message()),
        (Code::NotFound, "the catalog of this host is not served")
    );
}
