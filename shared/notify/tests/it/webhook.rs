//! Webhooks against a server in the same process.

use std::{
    io::Write,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::IntoResponse,
    routing::post,
};
use catalog_mirror_notify::{Event, Notifier, NotifierSettings, Receiver, SecretLocation, SendError, Webhook};
use model::PublicationId;
use ring::hmac;
use tempfile::NamedTempFile;

use super::world::{name, snapshot};

/// `whsec_` and the base64 of these 24 bytes.
const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";

type Seen = Arc<Mutex<Vec<(HeaderMap, Bytes)>>>;

/// A server that answers every request the same way and notes what it got.
struct Site {
    url: String,
    seen: Seen,
}

impl Site {
    async fn answering(status: u16, fields: &'static [(&'static str, &'static str)]) -> Self {
        let seen = Seen::default();
        let answer = move |State(seen): State<Seen>, headers: HeaderMap, body: Bytes| async move {
            seen.lock().unwrap().push((headers, body));
            let fields = fields
                .iter()
                .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            let fields: HeaderMap = fields.collect();
            (StatusCode::from_u16(status).unwrap(), fields, "an unread body").into_response()
        };
        let router = Router::new().fallback(post(answer)).with_state(seen.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, seen }
    }

    fn webhook(&self) -> (Webhook, NamedTempFile) {
        let file = secret(SECRET);
        let place = SecretLocation::File(file.path().to_owned());
        (Webhook::new("ci", &self.url, place).unwrap(), file)
    }
}

fn secret(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    writeln!(file, "{text}").unwrap();
    file
}

fn event() -> Event {
    let current = testkit::CurrentBuilder::new(&snapshot(&[]))
        .serial(2)
        .source("quay.io/ns/catalog:v4.20", "sha256:00")
        .build();
    let previous = PublicationId {
        serial: 1,
        content_hash: current.content_hash,
    };
    Event::new("/catalogs", &name(), Some(previous), &current, None)
}

async fn answer(status: u16, fields: &'static [(&'static str, &'static str)]) -> Result<(), SendError> {
    let site = Site::answering(status, fields).await;
    let (webhook, _file) = site.webhook();
    let sent = webhook.send(&event()).await;
    assert_eq!(site.seen.lock().unwrap().len(), 1, "one request, whatever the answer");
    sent
}

#[tokio::test]
async fn request_is_signed_and_2xx_acknowledges_it() {
    let site = Site::answering(204, &[]).await;
    let (webhook, _file) = site.webhook();
    webhook.send(&event()).await.unwrap();
    let (headers, body) = site.seen.lock().unwrap().remove(0);
    let field = |name: &str| headers[name].to_str().unwrap().to_owned();
    assert_eq!(field("content-type"), "application/cloudevents+json");
    assert_eq!(field("webhook-id"), event().id);
    assert_eq!(body, event().to_json());
    let content = format!(
        "{}.{}.{}",
        field("webhook-id"),
        field("webhook-timestamp"),
        str::from_utf8(&body).unwrap()
    );
    let key = hmac::Key::new(hmac::HMAC_SHA256, &(0..24).collect::<Vec<u8>>());
    let signature = field("webhook-signature");
    let signature = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, &signature[3..]).unwrap();
    hmac::verify(&key, content.as_bytes(), &signature).unwrap();
}

#[tokio::test]
async fn redirect_is_not_followed() {
    let elsewhere = Site::answering(200, &[]).await;
    let target: &'static str = elsewhere.url.clone().leak();
    let fields: &'static [_] = vec![("location", target)].leak();
    for status in [301, 302, 307, 308] {
        assert!(
            matches!(answer(status, fields).await, Err(SendError::Refused(_))),
            "{status}"
        );
    }
    assert!(elsewhere.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn status_decides_about_retry() {
    for status in [400, 401, 403, 404, 405, 413] {
        assert!(
            matches!(answer(status, &[]).await, Err(SendError::Refused(_))),
            "{status}"
        );
    }
    assert!(matches!(answer(410, &[]).await, Err(SendError::Permanent(_))));
    for status in [408, 425, 429, 500, 502, 503, 504] {
        let sent = answer(status, &[]).await;
        assert!(
            matches!(sent, Err(SendError::Temporary { retry_after: None, .. })),
            "{status}"
        );
    }
    for status in [429, 503] {
        let Err(SendError::Temporary { retry_after, .. }) = answer(status, &[("retry-after", "7")]).await else {
            panic!("{status} is temporary");
        };
        assert_eq!(retry_after, Some(Duration::from_secs(7)));
    }
}

#[tokio::test]
async fn connection_error_is_temporary_and_hides_url() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://user:hunter2@{}/token-abc", listener.local_addr().unwrap());
    drop(listener);
    let file = secret(SECRET);
    let webhook = Webhook::new("ci", &url, SecretLocation::File(file.path().to_owned())).unwrap();
    let error = webhook.send(&event()).await.unwrap_err();
    assert!(matches!(error, SendError::Temporary { .. }));
    let printed = format!("{error:?} {} {webhook:?}", model::text::chain(&error));
    for hidden in ["hunter2", "token-abc", &SECRET[6..]] {
        assert!(!printed.contains(hidden), "{hidden}: {printed}");
    }
}

#[tokio::test]
async fn certificate_of_ca_file_is_trusted() {
    let fault = testkit::CertificateFault::OwnAuthority;
    let server = testkit::Registry::builder().tls_with_fault(fault).start().await;
    let (url, file, ca) = (
        format!("https://{}/", server.host()),
        secret(SECRET),
        secret(server.ca_pem()),
    );
    let webhook = Webhook::new("ci", &url, SecretLocation::File(file.path().to_owned())).unwrap();
    let refused = model::text::chain(&webhook.send(&event()).await.unwrap_err());
    assert!(refused.contains("--ca-file"), "{refused}");
    let webhook = webhook.trusting(&[ca.path().to_owned()]).unwrap();
    let answered = model::text::chain(&webhook.send(&event()).await.unwrap_err());
    assert!(answered.contains("it answered 4"), "{answered}");
}

#[tokio::test(start_paused = true)]
async fn silent_server_ends_attempt() {
    use super::world::{cursors, publish};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let file = secret(SECRET);
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let webhook = Webhook::new("ci", &url, SecretLocation::File(file.path().to_owned())).unwrap();
    let store = storekit::MemoryStore::new();
    let receivers: Vec<Box<dyn Receiver>> = vec![Box::new(webhook)];
    let notifier = Notifier::new(Arc::new(store.clone()), receivers, NotifierSettings::default());
    notifier.after(&publish(&store, &[("a", "1")]).await).await;
    assert_eq!(cursors(&store).await["ci"], None);
}

#[tokio::test]
async fn secrets_are_read_again_for_each_event() {
    let site = Site::answering(200, &[]).await;
    let (webhook, file) = site.webhook();
    webhook.send(&event()).await.unwrap();
    std::fs::write(file.path(), format!("{SECRET}\nwhsec_{}\n", "A".repeat(32))).unwrap();
    webhook.send(&event()).await.unwrap();
    std::fs::write(file.path(), "nonsense").unwrap();
    assert!(matches!(webhook.send(&event()).await, Err(SendError::Refused(_))));
    let seen = site.seen.lock().unwrap();
    let signatures: Vec<_> = seen
        .iter()
        .map(|(headers, _)| headers["webhook-signature"].to_str().unwrap())
        .collect();
    assert_eq!(
        signatures
            .iter()
            .map(|text| text.split(' ').count())
            .collect::<Vec<_>>(),
        [1, 2]
    );
}

#[test]
fn new_webhook_reports_all_problems() {
    let problems = |url| {
        let place = SecretLocation::Variable("NO_SUCH_VARIABLE_IS_SET".to_owned());
        let problems = Webhook::new("ci", url, place).unwrap_err();
        problems.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let unset = "the environment variable NO_SUCH_VARIABLE_IS_SET does not hold a secret";
    for url in ["hooks", "ftp://ci.example/hook", "http://", "mailto:a@b"] {
        assert_eq!(
            problems(url),
            ["url is not an http or https URL with a host", unset],
            "{url}"
        );
    }
    assert_eq!(problems("https://user:hunter2@ci.example/hook"), [unset]);
}

#[test]
fn webhook_limited_to_catalogs_wants_only_them() {
    let file = secret(SECRET);
    let place = || SecretLocation::File(file.path().to_owned());
    let all = Webhook::new("ci", "http://ci.example", place()).unwrap();
    let mut some = Webhook::new("ci", "http://ci.example", place()).unwrap();
    some.catalogs.insert(name());
    let other = "other".parse().unwrap();
    assert!(all.wants(&name()) && all.wants(&other));
    assert!(some.wants(&name()) && !some.wants(&other));
}
