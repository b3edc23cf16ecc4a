//! Signatures beside a registry, and those who hand them out badly.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use catalog_mirror_source::{
    Digest, Error, FetchError, FetchSettings, ImageLimits, Logins, Lookaside, Proxy, RedirectRefusal, ServerFault,
    Source, SourceSettings, Sources,
};
use testkit::Registry;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::kit::{plain, settings};

const HEX: &str = "00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff";

/// A file server that answers each path as a test sets it, and records the requests.
struct Beside {
    host: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Beside {
    async fn start(answer: impl Fn(&str) -> String + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let requests = Arc::clone(&seen);
        tokio::spawn(async move {
            loop {
                let (mut connection, _) = listener.accept().await.unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") && connection.read_buf(&mut head).await.is_ok_and(|read| read > 0) {}
                let head = String::from_utf8(head).unwrap();
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                requests.lock().unwrap().push(head);
                let _ = connection.write_all(answer(&path).as_bytes()).await;
            }
        });
        Self { host, seen }
    }

    fn lookaside(&self) -> Lookaside {
        format!("http://{}/sigstore/", self.host).parse().unwrap()
    }
}

fn ok(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn status(status: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

fn to(location: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

/// The number of the signature that a path is for.
fn number(path: &str) -> u64 {
    let folder = format!("/sigstore/ns/cat@sha256={HEX}/signature-");
    path.strip_prefix(&folder)
        .unwrap_or_else(|| panic!("{path}"))
        .parse()
        .unwrap()
}

/// A client with credentials for every server on this machine, and small limits.
fn client(change: impl Fn(&mut SourceSettings)) -> Sources {
    let logins = Logins::default();
    let auth = r#"{"auths": {"127.0.0.1": {"auth": "cm9ib3Q6aHVudGVyMg=="}}}"#;
    logins.set([("the test", auth)]).unwrap();
    let mut settings = SourceSettings {
        auth_files: Vec::new(),
        logins,
        http: FetchSettings {
            plain_http: plain(&["127.0.0.1"]),
            proxy: Proxy::default(),
            ..FetchSettings::default()
        },
        limits: ImageLimits {
            signatures: 3,
            signature_bytes: 10,
            ..ImageLimits::default()
        },
        ..SourceSettings::default()
    };
    change(&mut settings);
    Sources::new(settings).unwrap()
}

async fn look(images: &Sources, lookaside: &Lookaside) -> Result<Vec<String>, Error> {
    let source: Source = "127.0.0.1:1/ns/cat:v1".parse().unwrap();
    let digest: Digest = format!("sha256:{HEX}").parse().unwrap();
    let found = images.simple_signatures(&source, &digest, lookaside).await?;
    Ok(found
        .iter()
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .collect())
}

fn refusal(error: Error) -> Option<RedirectRefusal> {
    match error {
        Error::Server(error) => match error.fault {
            ServerFault::Fetch(FetchError::Redirect { reason, .. }) => Some(reason),
            _ => None,
        },
        _ => None,
    }
}

#[tokio::test]
async fn lookaside_is_read_without_credentials_to_first_missing_file() {
    for count in [0, 1, 3] {
        let server = Beside::start(move |path| match number(path) {
            there if there <= count => ok(&format!("number {there}")),
            _ => status("404 Not Found"),
        })
        .await;
        let found = look(&client(|_| {}), &server.lookaside()).await.unwrap();
        assert_eq!(found.len() as u64, count);
        let seen = server.seen.lock().unwrap();
        assert_eq!(seen.len() as u64, count + 1);
        assert!(
            seen.iter().all(|head| !head.to_lowercase().contains("authorization")),
            "{seen:?}"
        );
    }
}

#[tokio::test]
async fn signatures_at_exact_limits_are_read() {
    let many = Beside::start(|path| match number(path) {
        there if there <= 4 => ok("x"),
        _ => status("404 Not Found"),
    })
    .await;
    let error = look(&client(|_| {}), &many.lookaside()).await.unwrap_err();
    assert!(matches!(error, Error::Limit(limit) if limit.name == "signatures" && limit.limit == 3));
    for (length, passes) in [(10, true), (11, false)] {
        let long = Beside::start(move |path| match number(path) {
            1 => ok(&"x".repeat(length)),
            _ => status("404 Not Found"),
        })
        .await;
        match look(&client(|_| {}), &long.lookaside()).await {
            Ok(_) => assert!(passes),
            Err(Error::Limit(limit)) => assert!(!passes && limit.name == "signatureBytes"),
            Err(other) => panic!("{other}"),
        }
    }
}

#[tokio::test]
async fn lookaside_status_other_than_404_is_an_error() {
    for answer in [
        "401 Unauthorized",
        "403 Forbidden",
        "410 Gone",
        "204 No Content",
        "400 Bad Request",
    ] {
        let server = Beside::start(move |_| status(answer)).await;
        assert!(look(&client(|_| {}), &server.lookaside()).await.is_err(), "{answer}");
    }
    let cut = Beside::start(|_| "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc".to_owned()).await;
    let quick = |settings: &mut SourceSettings| settings.http.retry.attempts = Some(1);
    assert!(look(&client(quick), &cut.lookaside()).await.is_err());
}

#[tokio::test]
async fn lookaside_redirect_to_near_address_is_refused() {
    for (location, why) in [
        ("https://169.254.169.254/latest/meta-data/", RedirectRefusal::LinkLocal),
        ("https://metadata.google.internal/", RedirectRefusal::LinkLocal),
        ("http://example.com/x", RedirectRefusal::PlainHttp),
        ("https://robot:hunter2@example.com/x", RedirectRefusal::Userinfo),
        ("file:///etc/passwd", RedirectRefusal::Scheme),
        ("/again", RedirectRefusal::TooMany),
    ] {
        let server = Beside::start(move |_| to(location)).await;
        let error = look(&client(|_| {}), &server.lookaside()).await.unwrap_err();
        assert_eq!(refusal(error), Some(why), "{location}");
    }
    let beside = Beside::start(|_| ok("x")).await;
    let none = |settings: &mut SourceSettings| settings.http.plain_http = plain(&[]);
    let error = look(&client(none), &beside.lookaside()).await.unwrap_err();
    assert_eq!(refusal(error), Some(RedirectRefusal::PlainHttp));
    assert!(beside.seen.lock().unwrap().is_empty());
}

/// Each of many requests may take its time, but not all of them together.
#[tokio::test]
async fn endless_lookaside_files_end_at_timeout() {
    let slow = Beside::start(|_| {
        std::thread::sleep(Duration::from_millis(60));
        ok("x")
    })
    .await;
    let images = client(|settings| {
        settings.resolve_timeout = Duration::from_millis(200);
        settings.limits.signatures = 1000;
    });
    let error = look(&images, &slow.lookaside()).await.unwrap_err();
    assert!(matches!(error, Error::Timeout(_)), "{error}");
    let registry = Registry::start().await;
    let images = Sources::new(SourceSettings {
        resolve_timeout: Duration::ZERO,
        ..settings(&registry)
    });
    let source: Source = registry.reference("ns/cat", "v1").parse().unwrap();
    let digest: Digest = format!("sha256:{HEX}").parse().unwrap();
    let error = images.unwrap().signatures(&source, &digest).await.unwrap_err();
    assert!(matches!(error, Error::Timeout(_)), "{error}");
}

#[tokio::test]
async fn lookaside_folder_is_read_with_limits() {
    let folder = tempfile::TempDir::new().unwrap();
    let lookaside: Lookaside = format!("file://{}", folder.path().display()).parse().unwrap();
    assert!(look(&client(|_| {}), &lookaside).await.unwrap().is_empty());
    let place = folder.path().join(format!("ns/cat@sha256={HEX}"));
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("signature-1"), "0123456789").unwrap();
    assert_eq!(look(&client(|_| {}), &lookaside).await.unwrap(), ["0123456789"]);
    std::os::unix::fs::symlink("/dev/zero", place.join("signature-2")).unwrap();
    let error = look(&client(|_| {}), &lookaside).await.unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "a device is no signature: {error}");
    std::fs::remove_file(place.join("signature-2")).unwrap();
    std::fs::write(place.join("signature-2"), "0123456789a").unwrap();
    let error = look(&client(|_| {}), &lookaside).await.unwrap_err();
    assert!(matches!(error, Error::Limit(limit) if limit.name == "signatureBytes"));
}
