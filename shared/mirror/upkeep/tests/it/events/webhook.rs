//! Webhooks against a server in the same process.

use std::fs;
use std::io::Write;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use base64::{Engine, engine::general_purpose::STANDARD};
use model::crypto::hmac;
use model::text::chain;
use tempfile::NamedTempFile;
use tokio::net::TcpListener;
use upkeep::{Event, Receiver, SecretLocation, SendError, Webhook};

use super::world::{name, snapshot};

/// `whsec_` and the base64 of the bytes 0 to 23.
const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";

type Seen = Arc<Mutex<Vec<(HeaderMap, Bytes)>>>;

/// A server that notes its requests and answers each with one status, and with fields that count
/// for some statuses only.
struct Site {
    url: String,
    seen: Seen,
}

impl Site {
    async fn answering(status: u16) -> Self {
        let seen = Seen::default();
        let answer = move |State(seen): State<Seen>, headers: HeaderMap, body: Bytes| async move {
            seen.lock().unwrap().push((headers, body));
            let fields = [("location", "/elsewhere"), ("retry-after", "7")];
            (
                StatusCode::from_u16(status).unwrap(),
                fields,
                "an unread body",
            )
        };
        let router = Router::new()
            .fallback(post(answer))
            .with_state(seen.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, seen }
    }
}

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    writeln!(file, "{text}").unwrap();
    file
}

/// Returns a webhook and the file with its secret.
fn webhook(url: &str) -> (Webhook, NamedTempFile) {
    let file = file(SECRET);
    let place = SecretLocation::File(file.path().to_owned());
    (Webhook::new("ci", url, place).unwrap(), file)
}

fn event() -> Event {
    Event::new(
        "/catalogs",
        &name(),
        None,
        &testkit::current(&snapshot("")),
        None,
    )
}

#[tokio::test]
async fn request_is_signed_and_has_the_event() {
    let site = Site::answering(204).await;
    let (webhook, _file) = webhook(&site.url);
    webhook.send(&event()).await.unwrap();
    let (headers, body) = site.seen.lock().unwrap().remove(0);
    let field = |name: &str| headers[name].to_str().unwrap();
    assert_eq!(field("content-type"), "application/cloudevents+json");
    assert_eq!(field("webhook-id"), event().id);
    assert_eq!(body, event().to_json());
    let signed = format!("{}.{}.", field("webhook-id"), field("webhook-timestamp"));
    let key = hmac::Key::new(hmac::HMAC_SHA256, &(0..24).collect::<Vec<u8>>());
    let signature = STANDARD.decode(&field("webhook-signature")[3..]).unwrap();
    hmac::verify(&key, &[signed.as_bytes(), &body].concat(), &signature).unwrap();
}

#[tokio::test]
async fn status_decides_about_retry_and_is_never_followed() {
    let refused = &[301, 302, 307, 308, 400, 401, 403, 404, 405, 413];
    for (expected, statuses) in [
        ("acknowledged", &[200, 204][..]),
        ("refused", refused),
        ("permanent", &[410]),
        ("temporary after 7s", &[408, 425, 429, 500, 502, 503, 504]),
    ] {
        for &status in statuses {
            let site = Site::answering(status).await;
            let (webhook, _file) = webhook(&site.url);
            let outcome = match webhook.send(&event()).await {
                Ok(()) => "acknowledged".to_owned(),
                Err(SendError::Temporary { retry_after, .. }) => {
                    format!("temporary after {:?}", retry_after.unwrap())
                }
                Err(error) => testkit::variant(&error),
            };
            assert_eq!(outcome, expected, "{status}");
            assert_eq!(
                site.seen.lock().unwrap().len(),
                1,
                "{status} ends the attempt"
            );
        }
    }
}

#[tokio::test]
async fn connection_error_is_temporary_and_hides_url() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!(
        "http://user:hunter2@{}/token-abc",
        listener.local_addr().unwrap()
    );
    drop(listener);
    let (webhook, _file) = webhook(&url);
    let error = webhook.send(&event()).await.unwrap_err();
    assert!(matches!(
        error,
        SendError::Temporary {
            retry_after: None,
            ..
        }
    ));
    let printed = format!("{error:?} {} {webhook:?}", chain(&error));
    for hidden in ["hunter2", "token-abc", &SECRET[6..]] {
        assert!(!printed.contains(hidden), "{hidden}: {printed}");
    }
}

#[tokio::test]
async fn certificate_of_ca_file_is_trusted() {
    let fault = testkit::CertificateFault::OwnAuthority;
    let server = testkit::Registry::builder()
        .tls_with_fault(fault)
        .start()
        .await;
    let (webhook, _file) = webhook(&format!("https://{}/", server.host()));
    let refused = chain(&webhook.send(&event()).await.unwrap_err());
    assert!(refused.contains("--ca-file"), "{refused}");
    let ca = file(server.ca_pem());
    let webhook = webhook.trusting(&[ca.path().to_owned()]).unwrap();
    let answered = chain(&webhook.send(&event()).await.unwrap_err());
    assert!(answered.contains("it answered 4"), "{answered}");
}

#[tokio::test]
async fn secrets_are_read_again_for_each_event() {
    let site = Site::answering(200).await;
    let (webhook, file) = webhook(&site.url);
    webhook.send(&event()).await.unwrap();
    fs::write(file.path(), format!("{SECRET}\n{SECRET}\n")).unwrap();
    webhook.send(&event()).await.unwrap();
    fs::write(file.path(), "nonsense").unwrap();
    assert!(matches!(
        webhook.send(&event()).await,
        Err(SendError::Refused(_))
    ));
    let seen = site.seen.lock().unwrap();
    let signatures = seen
        .iter()
        .map(|(headers, _)| &headers["webhook-signature"]);
    let counts = signatures.map(|signatures| signatures.to_str().unwrap().split(' ').count());
    assert_eq!(counts.collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn new_webhook_reports_all_problems() {
    let unset = "the environment variable NO_SUCH_VARIABLE_IS_SET does not hold a secret";
    let both = &[
        "url: write http:// or https:// with a host, such as https://chat.example/hook",
        unset,
    ][..];
    for (url, expected) in [
        ("hooks", both),
        ("ftp://ci.example/hook", both),
        ("http://", both),
        ("mailto:a@b", both),
        ("https://user:hunter2@ci.example/hook", &[unset]),
    ] {
        let place = SecretLocation::Variable("NO_SUCH_VARIABLE_IS_SET".to_owned());
        let problems = Webhook::new("ci", url, place).unwrap_err();
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(problems, expected, "{url}");
    }
}

#[test]
fn webhook_limited_to_catalogs_wants_only_them() {
    let (mut webhook, _file) = webhook("http://ci.example");
    let other = "other".parse().unwrap();
    assert!(webhook.wants(&name()) && webhook.wants(&other));
    webhook.catalogs.insert(name());
    assert!(webhook.wants(&name()) && !webhook.wants(&other));
}
