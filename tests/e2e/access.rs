//! Access to the server: TLS, authentication, and a read-only store.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use model::Sha256;
use reqwest::{Client, StatusCode, Version};
use rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::CertificateDer};
use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::support::{
    binary::{Server, run},
    catalogs, http,
};

const PATIENCE: Duration = Duration::from_secs(30);
/// Beginning of a line for `alice` as `htpasswd -nbB -C 4` writes it.
const ALICE: &str = "alice:$2y$04$";

struct Site {
    folder: TempDir,
}

impl Site {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let site = Self { folder };
        let source = format!("demo=oci:{}:v1", catalogs::example_layout().display());
        run(["poll", "--store", &site.path("store"), "--catalog", &source]).exits(0);
        site
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    fn serve(&self, options: &[&str]) -> Server {
        let arguments = ["serve", "--no-poll", "--store", &self.path("store")];
        Server::start(arguments.iter().chain(options))
    }

    /// Writes a new certificate for 127.0.0.1 and its key, and returns a client that trusts only that.
    fn certify(&self) -> Client {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        self.write("tls.crt", made.cert.pem());
        self.write("tls.key", made.signing_key.serialize_pem());
        client(made.cert.der())
    }
}

fn client(root: &CertificateDer<'static>) -> Client {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).unwrap();
    let mut tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    // One connection for each request, so that each request makes a handshake.
    let client = Client::builder().tls_backend_preconfigured(tls).no_proxy();
    client.pool_max_idle_per_host(0).build().unwrap()
}

/// Waits until a condition holds; `what` names it in the failure.
async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds().await {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn server_certificate_changed_is_used_without_restart() {
    let site = tokio::task::block_in_place(Site::new);
    let first = site.certify();
    let files = [site.path("tls.crt"), site.path("tls.key")];
    let server = tokio::task::block_in_place(|| site.serve(&["--tls-cert", &files[0], "--tls-key", &files[1]]));
    let url = server.url.replacen("http:", "https:", 1) + "/catalogs";
    let answers = async |client: &Client| client.get(&url).send().await.is_ok();

    // Connections that never begin their handshake must not block the handshakes of others.
    let address = &server.url["http://".len()..];
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    let answer = first.get(&url).send().await.unwrap();
    assert_eq!((answer.status(), answer.version()), (StatusCode::OK, Version::HTTP_2));

    // A certificate without its key, or a file that is not one: the old pair stays in use.
    let key = fs::read(&files[1]).unwrap();
    let second = site.certify();
    site.write("tls.key", &key);
    server.wait_for(|line| (line.contains("certificate") && line.contains("cannot be used")).then_some(()));
    assert!(answers(&first).await && !answers(&second).await);
    site.write("tls.crt", "nonsense");
    server.wait_for(|line| (line.contains("certificate") && line.contains("cannot be used")).then_some(()));
    let metrics = first
        .get(url.replace("/catalogs", "/metrics"))
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert!(metrics.contains("file_broken{file=\"certificate\"} 1"), "{metrics}");

    let third = site.certify();
    until("the new certificate is used", async || answers(&third).await).await;
    assert!(!answers(&first).await);
    drop(silent);
}

#[test]
fn serve_with_unusable_file_fails_before_port_is_open() {
    let site = Site::new();
    site.certify();
    site.write("plain", "alice:password\n");
    site.write("empty", "");
    let serve = |options: &[&str]| {
        let arguments = [
            "serve",
            "--no-poll",
            "--listen",
            "127.0.0.1:0",
            "--store",
            &site.path("store"),
        ];
        run(arguments.iter().chain(options)).exits(1).stderr
    };
    let (certificate, key) = (site.path("tls.crt"), site.path("tls.key"));
    let said = serve(&["--tls-cert", &certificate]);
    assert!(said.contains("tlsKey is missing"), "{said}");
    let said = serve(&["--tls-cert", &key, "--tls-key", &key]);
    assert!(said.contains("certificate"), "{said}");
    let said = serve(&["--readers", &site.path("plain")]);
    assert!(said.contains("line 1") && !said.contains("password"), "{said}");
    let said = serve(&["--readers", &site.path("empty")]);
    assert!(said.contains("names no users"), "{said}");
    let said = serve(&["--readers", &site.path("missing")]);
    assert!(said.contains("missing"), "{said}");
}

fn basic(login: &str) -> String {
    format!("Basic {}", STANDARD.encode(login))
}

/// One reader with a token. Unit tests check passwords, and scripts/checks/server.sh checks one that `htpasswd` made.
fn robot() -> String {
    format!("# who may read\nrobot:sha256:{}\n", Sha256::of(b"token"))
}

#[tokio::test(flavor = "multi_thread")]
async fn server_with_readers_refuses_requests_without_credentials() {
    let site = tokio::task::block_in_place(Site::new);
    site.write("readers", robot());
    let server = tokio::task::block_in_place(|| site.serve(&["--readers", &site.path("readers")]));
    let ask = async |path: &str, login: &str| {
        let fields = [("authorization", login)];
        http::get(
            &format!("{}{path}", server.url),
            if login.is_empty() { &[] } else { &fields },
        )
        .await
    };
    for path in ["/healthz", "/readyz"] {
        assert_eq!(ask(path, "").await.status(), 200, "{path}");
    }
    for path in [
        "/catalogs",
        "/catalogs/demo/all.json",
        "/v2/",
        "/v2/demo/manifests/latest",
        "/metrics",
        "/openapi.json",
    ] {
        for login in [
            "",
            "Bearer wrong",
            &basic("robot:wrong"),
            &basic("other:token"),
            "Digest a=b",
        ] {
            let refused = ask(path, login).await;
            assert_eq!(refused.status(), 401, "{path} {login}");
            assert!(http::field(&refused, "www-authenticate").starts_with("Basic realm="));
            assert_eq!(http::field(&refused, "cache-control"), "no-store");
        }
        for login in ["Bearer token", &basic("robot:token")] {
            let answer = ask(path, login).await;
            assert_eq!(answer.status(), 200, "{path} {login}");
            let policy = answer
                .headers()
                .get("cache-control")
                .map(|value| value.to_str().unwrap().to_owned());
            assert!(!policy.unwrap_or_default().contains("public"), "{path}");
        }
    }
    let registry = ask("/v2/", "").await;
    assert_eq!(registry.headers().get_all("www-authenticate").iter().count(), 1);
    assert!(registry.text().await.unwrap().contains("UNAUTHORIZED"));
    let problem = ask("/catalogs", "").await;
    assert_eq!(http::field(&problem, "content-type"), "application/problem+json");

    // A 304 must be as private as the answer that it confirms.
    let tag = http::field(&ask("/catalogs/demo/all.json", "Bearer token").await, "etag");
    let url = format!("{}/catalogs/demo/all.json", server.url);
    let same = http::get(&url, &[("authorization", "Bearer token"), ("if-none-match", &tag)]).await;
    assert_eq!(same.status(), 304);
    assert!(http::field(&same, "cache-control").starts_with("private"));
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_file_changed_is_used_without_restart() {
    let site = tokio::task::block_in_place(Site::new);
    site.write("readers", robot());
    let server = tokio::task::block_in_place(|| site.serve(&["--readers", &site.path("readers")]));
    let url = format!("{}/catalogs", server.url);
    let status = async |token: &str| {
        http::get(&url, &[("authorization", &format!("Bearer {token}"))])
            .await
            .status()
    };
    assert_eq!(status("token").await, 200);

    site.write("readers", format!("{ALICE}nonsense\n"));
    let line = server.wait_for(|line| line.contains("cannot be used").then(|| line.to_owned()));
    assert!(
        line.contains("line 1") && !line.contains("alice") && !line.contains("nonsense"),
        "{line}"
    );
    assert_eq!(status("token").await, 200);

    site.write("readers", format!("robot:sha256:{}\n", Sha256::of(b"other")));
    until("the new list is used", async || status("other").await == 200).await;
    assert_eq!(status("token").await, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn sync_from_protected_mirror_needs_credentials() {
    let site = tokio::task::block_in_place(Site::new);
    site.write("readers", robot());
    site.write("fields", "Authorization: Bearer token\n");
    let server = tokio::task::block_in_place(|| site.serve(&["--readers", &site.path("readers")]));
    let with_login = server.url.replacen("http://", "http://robot:token@", 1);
    let fields = site.path("fields");
    tokio::task::block_in_place(|| {
        let refused = run(["sync", &server.url, &site.path("refused")]).exits(1);
        assert!(refused.stderr.contains("credentials"), "{refused:?}");
        let copied = run(["sync", "-vv", &with_login, &site.path("one")]).exits(0);
        assert!(!format!("{copied:?}").contains("robot:token"), "{copied:?}");
        run(["sync", &server.url, &site.path("two"), "--header-file", &fields]).exits(0);
        let wrong = server.url.replacen("http://", "http://robot:secret@", 1);
        let refused = run(["sync", "-vv", &wrong, &site.path("refused")]).exits(1);
        assert!(!format!("{refused:?}").contains("secret"), "{refused:?}");
    });
}

/// Returns all files and folders with their modification times.
fn listing(folder: &Path) -> Vec<(PathBuf, std::time::SystemTime)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(listing(&path));
        }
        found.push((path.clone(), fs::metadata(&path).unwrap().modified().unwrap()));
    }
    found.sort();
    found
}

fn read_only(folder: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    for (path, _) in listing(folder) {
        if path.is_dir() {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
}

/// Compares modification times, because root may write into a read-only folder.
#[tokio::test(flavor = "multi_thread")]
async fn serve_on_read_only_store_writes_nothing() {
    let site = tokio::task::block_in_place(Site::new);
    let store = site.folder.path().join("store");
    read_only(&store, 0o555);
    let before = listing(site.folder.path());
    let server = tokio::task::block_in_place(|| site.serve(&[]));
    for path in [
        "/readyz",
        "/catalogs",
        "/catalogs/demo/all.json",
        "/catalogs/demo/packages/demo-queue",
        "/v2/demo/tags/list",
        "/metrics",
    ] {
        assert_eq!(
            http::get(&format!("{}{path}", server.url), &[]).await.status(),
            200,
            "{path}"
        );
    }
    assert_eq!(tokio::task::block_in_place(|| server.terminate()), Some(0));
    assert_eq!(listing(site.folder.path()), before);
    read_only(&store, 0o755);
}
