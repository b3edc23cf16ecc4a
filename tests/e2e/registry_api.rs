//! The registry API of OLM v0 at the command line: catalogs, access, and errors.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use ::grpc::olm_v0::api::{ApiBundle, ApiPackage, GetBundleRequest, GetPackageRequest};
use tempfile::TempDir;
use tonic::{Code, Request, Status, client::Grpc, transport::Endpoint};
use tonic_prost::ProstCodec;

use crate::support::{
    binary::{Server, run},
    catalogs, http,
};

/// A folder with a store that has the example catalog as `demo` and `demo.v2`.
struct Site(TempDir);

impl Site {
    fn new() -> Self {
        let site = Self(TempDir::new().unwrap());
        let layout = catalogs::example_layout();
        site.poll("demo", &format!("oci:{}:v1", layout.display()));
        site.poll("demo.v2", &format!("oci:{}:v2", layout.display()));
        site
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn poll(&self, name: &str, source: &str) {
        let catalog = format!("{name}={source}");
        run(["poll", "--store", &self.path("store"), "--catalog", &catalog]).exits(0);
    }

    /// Serves the store, and returns the port of the registry API.
    fn serve(&self, options: &[&str]) -> (Server, u16) {
        let arguments = [
            "serve",
            "--no-poll",
            "--store",
            &self.path("store"),
            "--grpc",
            "127.0.0.1:0",
        ];
        let server = Server::start(arguments.iter().chain(options));
        let port = server.wait_for(|line| {
            let (_, address) = line.split_once("answering the registry API address=127.0.0.1:")?;
            address.trim().parse().ok()
        });
        (server, port)
    }
}

/// Asks for a package as a client of `host`.
async fn package(port: u16, host: &str, name: &str) -> Result<ApiPackage, Status> {
    let request = GetPackageRequest { name: name.to_owned() };
    call(port, host, "/api.Registry/GetPackage", request).await
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
    let site = Site::new();
    let (_server, port) = site.serve(&[]);
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
    site.poll("demo", &format!("oci:{}:v2", catalogs::example_layout().display()));
    assert_eq!(
        package(port, "demo.mirror.example", "demo-database").await.unwrap(),
        second
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_never_answers_for_a_removed_catalog_with_another_one() {
    let site = Site::new();
    let (_server, port) = site.serve(&[]);
    let host = "demo-v2.mirror.example";
    package(port, host, "demo-database").await.unwrap();
    run(["rm", "--store", &site.path("store"), "demo.v2"]).exits(0);
    let deadline = Instant::now() + Duration::from_secs(20);
    // The catalogs are looked for once a second. Then `demo` is the only one.
    loop {
        let status = package(port, host, "demo-database").await.unwrap_err();
        assert_eq!(
            (status.code(), status.message()),
            (Code::NotFound, "the catalog of this host is not served")
        );
        if package(port, "mirror.example", "demo-database").await.is_ok() {
            break;
        }
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let status = package(port, host, "demo-database").await.unwrap_err();
    assert_eq!(status.message(), "the catalog of this host is not served");
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_answers_clients_without_a_name_for_the_default_catalog() {
    let site = Site::new();
    let (_server, port) = site.serve(&["--grpc-catalog", "demo"]);
    assert!(package(port, "127.0.0.1", "demo-database").await.is_ok());
}

fn write_catalog(folder: &Path, bundle: &str) {
    let text = format!(
        "schema: olm.package\nname: p\ndefaultChannel: c\n---\nschema: olm.channel\npackage: p\nname: c\nentries: [{{name: a}}]\n---\n{bundle}"
    );
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("catalog.yaml"), text).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_refuses_a_catalog_that_opm_would_refuse() {
    let site = Site::new();
    write_catalog(
        &site.0.path().join("bad"),
        "schema: olm.bundle\npackage: p\nname: a\nimage: x.example/y:v1\n",
    );
    site.poll("bad", &format!("dir:{}", site.path("bad")));
    let config = format!(
        "catalogs: [{{name: unchecked, source: 'dir:{}', validate: off}}]",
        site.path("bad")
    );
    fs::write(site.path("off.yaml"), config).unwrap();
    run([
        "poll",
        "--store",
        &site.path("store"),
        "--config",
        &site.path("off.yaml"),
    ])
    .exits(0);
    let (server, port) = site.serve(&[]);
    for catalog in ["bad", "unchecked"] {
        let refused = package(port, &format!("{catalog}.mirror.example"), "p")
            .await
            .unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition, "{catalog}: {refused}");
        assert!(refused.message().contains("package p"), "{catalog}: {refused}");
    }
    // Over HTTP it stays served, and the other catalogs answer.
    let url = format!("{}/catalogs/bad/content-hash", server.url);
    assert!(http::get(&url, &[]).await.status().is_success());
    assert!(package(port, "demo.mirror.example", "demo-database").await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_behind_credentials_answers_for_named_catalogs_only() {
    let site = Site::new();
    fs::write(
        site.path("readers"),
        format!("robot:sha256:{}\n", model::Sha256::of(b"token")),
    )
    .unwrap();
    let readers = site.path("readers");
    let refused = run([
        "serve",
        "--no-poll",
        "--store",
        &site.path("store"),
        "--grpc",
        "127.0.0.1:0",
        "--listen",
        "127.0.0.1:0",
        "--readers",
        &readers,
    ])
    .exits(1);
    assert!(
        refused.stderr.contains("grpc: {anonymous: [community]}"),
        "{}",
        refused.stderr
    );
    fs::write(site.path("grpc.yaml"), "grpc: {anonymous: [demo.v2]}").unwrap();
    let (_server, port) = site.serve(&["--readers", &readers, "--config", &site.path("grpc.yaml")]);
    assert!(package(port, "demo-v2.mirror.example", "demo-database").await.is_ok());
    // The only catalog that may be named is that of clients that name none, and not of those that name another one.
    assert!(package(port, "mirror.example", "demo-database").await.is_ok());
    let hidden = package(port, "demo.mirror.example", "demo-database").await.unwrap_err();
    assert_eq!(
        (hidden.code(), hidden.message()),
        (Code::NotFound, "the catalog of this host is not served")
    );
}

#[test]
fn serve_with_tls_for_grpc_needs_a_certificate() {
    let site = Site::new();
    fs::write(site.path("grpc.yaml"), "grpc: {tls: true}").unwrap();
    let arguments = [
        "serve",
        "--no-poll",
        "--store",
        &site.path("store"),
        "--grpc",
        "127.0.0.1:0",
    ];
    let failed = run(arguments
        .iter()
        .chain(&["--listen", "127.0.0.1:0", "--config", &site.path("grpc.yaml")]))
    .exits(1);
    assert!(failed.stderr.contains("server.tlsCert"), "{}", failed.stderr);
}
