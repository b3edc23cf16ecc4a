//! Access to the server: TLS, authentication, and a read-only store.

use std::{path::Path, process::Command};

use base64::{Engine, engine::general_purpose::STANDARD};
use model::Sha256;
use reqwest::{Certificate, Client, StatusCode, Version};
use serde_json::Value;
use testkit::until;
use tokio::net::TcpStream;

use crate::support::{binary::Ran, http, work::Work};

impl Work {
    /// Writes a new certificate for 127.0.0.1 and its key, and returns a client that trusts only
    /// that. It opens a connection for each request, so that each request makes a handshake.
    fn certify(&self) -> Client {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        self.write("tls.crt", made.cert.pem());
        self.write("tls.key", made.signing_key.serialize_pem());
        let root = Certificate::from_der(made.cert.der()).unwrap();
        http::client().tls_certs_only([root]).build().unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn server_certificate_changed_is_used_without_restart() {
    let work = Work::published();
    let first = work.certify();
    let server = work.serve("--tls-cert tls.crt --tls-key tls.key");
    let url = server.url.replacen("http:", "https:", 1) + "/catalogs";
    let answers = async |client: &Client| client.get(&url).send().await.is_ok();

    // Connections that never begin their handshake must not block the handshakes of others.
    let address = &server.url["http://".len()..];
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    let answer = first.get(&url).send().await.unwrap();
    assert_eq!(
        (answer.status(), answer.version()),
        (StatusCode::OK, Version::HTTP_2)
    );

    // The old pair stays in use.
    work.write("tls.crt", "nonsense");
    server.says("cannot be used");
    let metrics = first
        .get(url.replace("/catalogs", "/metrics"))
        .send()
        .await
        .unwrap();
    let metrics = metrics.text().await.unwrap();
    assert!(
        metrics.contains("file_broken{file=\"certificate\"} 1"),
        "{metrics}"
    );

    let second = work.certify();
    until("the new certificate is used", async || {
        answers(&second).await
    })
    .await;
    assert!(!answers(&first).await);
    drop(silent);
}

fn basic(login: &str) -> String {
    format!("Basic {}", STANDARD.encode(login))
}

/// One reader with a token. Unit tests check passwords, and scripts/checks/server.sh checks one
/// that `htpasswd` made.
fn robot() -> String {
    format!("# who may read\nrobot:sha256:{}\n", Sha256::of(b"token"))
}

#[tokio::test(flavor = "multi_thread")]
async fn server_with_readers_refuses_requests_without_credentials() {
    let work = Work::published();
    work.write("readers", robot());
    work.write(
        "cors.yaml",
        "server: {readers: readers, cors: [\"https://docs.lab\"]}",
    );
    let server = work.serve("--config cors.yaml");
    let ask = async |path: &str, login: &str| {
        let fields = [("authorization", login)];
        http::get(
            &server.url(path),
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
        "/v2/demo/manifests/latest",
        "/metrics",
    ] {
        for login in ["", "Bearer wrong", &basic("robot:wrong")] {
            let refused = ask(path, login).await;
            assert_eq!(refused.status(), 401, "{path} {login}");
            assert!(http::field(&refused, "www-authenticate").starts_with("Basic realm="));
            assert_eq!(http::field(&refused, "cache-control"), "no-store");
        }
        for login in ["Bearer token", &basic("robot:token")] {
            let answer = ask(path, login).await;
            assert_eq!(answer.status(), 200, "{path} {login}");
            let policies = format!("{:?}", answer.headers().get("cache-control"));
            assert!(!policies.contains("public"), "{path}: {policies}");
        }
    }
    // A browser asks before a script's GET with a login.
    let (url, docs) = (server.url("/catalogs"), ("origin", "https://docs.lab"));
    let preflight = http::request(reqwest::Method::OPTIONS, &url, &[docs]).await;
    assert_eq!(preflight.status(), 204);
    assert_eq!(
        http::field(&preflight, "access-control-allow-origin"),
        docs.1
    );
    let read = http::get(&url, &[docs, ("authorization", "Bearer token")]).await;
    assert_eq!(http::field(&read, "access-control-allow-origin"), docs.1);

    let registry = ask("/v2/", "").await;
    assert!(registry.text().await.unwrap().contains("UNAUTHORIZED"));
    let problem = ask("/catalogs", "").await;
    assert_eq!(
        http::field(&problem, "content-type"),
        "application/problem+json"
    );

    // A 304 must be as private as the answer that it confirms.
    let tag = http::field(
        &ask("/catalogs/demo/all.json", "Bearer token").await,
        "etag",
    );
    let url = server.url("/catalogs/demo/all.json");
    let same = http::get(
        &url,
        &[("authorization", "Bearer token"), ("if-none-match", &tag)],
    )
    .await;
    assert_eq!(same.status(), 304);
    assert!(http::field(&same, "cache-control").starts_with("private"));
}

#[tokio::test(flavor = "multi_thread")]
async fn sync_from_protected_mirror_needs_credentials() {
    let work = Work::published();
    work.write("readers", robot());
    work.write("fields", "Authorization: Bearer token\n");
    let server = work.serve("--readers readers");
    let as_user = |login: &str| {
        server
            .url
            .replacen("http://", &format!("http://{login}@"), 1)
    };
    let sync = |from: &str, options: &str| work.run(&format!("sync {from} {options}"));
    sync(&server.url, "refused")
        .exits(1)
        .complains("credentials");
    let copied = sync(&as_user("robot:token"), "one -vv").exits(0);
    assert!(!format!("{copied:?}").contains("robot:token"), "{copied:?}");
    sync(&server.url, "two --header-file fields").exits(0);
    let refused = sync(&as_user("robot:secret"), "refused -vv").exits(1);
    assert!(!format!("{refused:?}").contains("secret"), "{refused:?}");
}

/// A person who forgets the `s` of `https` gets an answer that says so.
#[tokio::test(flavor = "multi_thread")]
async fn request_without_tls_is_answered_with_400() {
    let work = Work::published();
    work.certify();
    let server = work.serve("--tls-cert tls.crt --tls-key tls.key");
    let answer = http::get(&server.url("/catalogs"), &[]).await;
    assert_eq!(answer.status(), 400);
    let text = answer.text().await.unwrap();
    assert!(text.contains("https://"), "{text}");
    // Much of a request is left unread, and its sender still gets the answer.
    let long = "x".repeat(20_000);
    let url = server.url(&format!("/{long}"));
    assert_eq!(http::get(&url, &[]).await.status(), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_logs_each_request_and_each_refused_login() {
    let work = Work::published();
    work.write("readers", robot());
    let server = work.serve("--readers readers --access-log");
    let line = |path: &str| -> Value {
        let line = server.wait_for(|line| {
            (line.starts_with('{') && line.contains(path)).then(|| line.to_owned())
        });
        serde_json::from_str(&line).unwrap()
    };
    let fields = [("authorization", "Bearer token")];
    let body = http::get(&server.url("/catalogs/demo/all.json"), &fields).await;
    let size = body.bytes().await.unwrap().len();
    let logged = line("/catalogs/demo/all.json");
    assert_eq!(logged["user"], "robot");
    assert_eq!(logged["method"], "GET");
    assert_eq!(logged["status"], 200);
    assert_eq!(logged["bytes"], size);
    assert!(
        logged["peer"].as_str().unwrap().starts_with("127.0.0.1:"),
        "{logged}"
    );
    assert!(logged["durationMs"].as_f64().unwrap() >= 0.0, "{logged}");
    assert!(
        logged["time"].as_str().unwrap().starts_with("20"),
        "{logged}"
    );

    http::get(&server.url("/catalogs?limit=1"), &[]).await;
    let logged = line("/catalogs?limit=1");
    assert_eq!(
        (&logged["status"], &logged["user"]),
        (&Value::from(401), &Value::Null)
    );

    let login = basic("robot:wrong");
    http::get(&server.url("/metrics"), &[("authorization", &login)]).await;
    let warning = server.says("refused a login");
    assert!(
        warning.contains("WARN") && warning.contains("127.0.0.1:"),
        "{warning}"
    );
    assert!(
        warning.contains("robot") && !warning.contains("wrong"),
        "{warning}"
    );
    assert_eq!(line("/metrics")["status"], 401);
}

/// Returns all files and folders with their modification times.
fn listing(folder: &Path) -> String {
    let line = "%p %T@\n";
    Ran::of(Command::new("find").arg(folder).args(["-printf", line]))
        .exits(0)
        .stdout
}

/// Changes the permissions of a folder and of all in it.
fn change_mode(folder: &Path, mode: &str) {
    let changed = Command::new("chmod")
        .args(["-R", mode])
        .arg(folder)
        .status();
    assert!(changed.unwrap().success());
}

/// Compares modification times, because root may write into a read-only folder.
#[tokio::test(flavor = "multi_thread")]
async fn serve_on_read_only_store_writes_nothing() {
    let work = Work::published();
    let store = work.path("store");
    change_mode(&store, "a-w");
    let before = listing(work.root());
    let server = work.serve("");
    for path in [
        "/readyz",
        "/catalogs",
        "/catalogs/demo/packages/demo-queue",
        "/v2/demo/tags/list",
    ] {
        assert_eq!(server.status(path).await, 200, "{path}");
    }
    assert_eq!(server.terminate(), Some(0));
    assert_eq!(listing(work.root()), before);
    change_mode(&store, "u+w");
}
