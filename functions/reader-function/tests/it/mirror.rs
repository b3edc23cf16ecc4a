//! A published catalog, with requests to it through the function and directly.

use std::{collections::BTreeMap, convert::Infallible, path::Path, sync::Arc};

use api::{HttpMetrics, HttpSettings};
use axum::body::Body;
use base64::{Engine, engine::general_purpose::STANDARD};
use lambda_http::http::{Method, Request};
use lambda_http::tower::ServiceExt;
use lambda_http::{Context, LambdaEvent, Service};
use publish::{Catalog, Mirror, MirrorSettings, PollMetrics, PollOptions};
use reader::{PublishedCatalogs, ReaderSettings};
use serde_json::{Value, json};
use source::{Source, Sources};
use store::Store;
use storekit::MemoryStore;

/// Status, fields and body of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u64,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// A store with one catalog, `demo`, made from a folder of FBC.
pub(crate) async fn mirror(folder: &Path) -> MemoryStore {
    let store = MemoryStore::new();
    publish(Arc::new(store.clone()), folder).await;
    store
}

pub(crate) async fn publish(store: Arc<dyn Store>, folder: &Path) {
    let images = Sources::new(source::SourceSettings::default()).unwrap();
    let settings = MirrorSettings {
        identity: true,
        ..MirrorSettings::default()
    };
    let mirror = Mirror::new(images, store, settings, PollMetrics::default());
    let catalog = Catalog::new("demo".parse().unwrap(), Source::Dir(folder.to_owned()));
    let report = mirror.poll(&catalog, PollOptions::default()).await;
    assert_eq!(
        report.outcome,
        model::Outcome::Published,
        "{:?}",
        report.error_text()
    );
}

/// The example catalog that all tests share.
pub(crate) fn example() -> &'static Path {
    Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/catalogs/v1"
    ))
}

/// Reads an event from the folder `tests/events`.
pub(crate) fn recorded(name: &str) -> Value {
    let path = format!("{}/tests/events/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The event that a function URL makes of a request.
pub(crate) fn event(method: &Method, uri: &str, fields: &[(&str, &str)]) -> Value {
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let mut event = recorded("url-all");
    event["rawPath"] = json!(path);
    event["rawQueryString"] = json!(query);
    event["requestContext"]["http"]["method"] = json!(method.as_str());
    event["requestContext"]["http"]["path"] = json!(path);
    for (name, value) in fields {
        event["headers"][*name] = json!(value);
    }
    event
}

/// Returns the catalogs of a store as the function reads them, in its memory.
fn catalogs(store: &MemoryStore) -> PublishedCatalogs {
    let settings = ReaderSettings {
        cache_bytes: 16 << 20,
        offload: api::offload,
        ..ReaderSettings::default()
    };
    PublishedCatalogs::new(Arc::new(store.clone()), settings)
}

/// Returns the answer of the function to an event, as it is sent to the service.
pub(crate) async fn payload(store: &MemoryStore, settings: HttpSettings, event: &Value) -> Vec<u8> {
    let mut function = reader_function::function(catalogs(store), settings);
    let event = LambdaEvent::new(
        serde_json::from_value(event.clone()).unwrap(),
        Context::default(),
    );
    let answer: Result<_, Infallible> = function.ready().await.unwrap().call(event).await;
    serde_json::to_vec(&answer.unwrap()).unwrap()
}

pub(crate) async fn through(store: &MemoryStore, event: &Value) -> Answer {
    Answer::read(&payload(store, HttpSettings::default(), event).await)
}

/// Returns the answer of the local server's router.
pub(crate) async fn direct(
    store: &MemoryStore,
    method: &Method,
    uri: &str,
    fields: &[(&str, &str)],
) -> Answer {
    let router = api::router(
        catalogs(store),
        HttpSettings::default(),
        HttpMetrics::default(),
    );
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let answer = testkit::Answer::to(request.body(Body::empty()).unwrap(), &router).await;
    let headers = answer.headers.iter();
    Answer {
        status: answer.status.as_u16().into(),
        headers: headers
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect(),
        body: answer.bytes().into(),
    }
}

impl Answer {
    /// Reads an answer as the service does (AWS Lambda Developer Guide, "Invoking Lambda function
    /// URLs", response payload format).
    pub(crate) fn read(payload: &[u8]) -> Self {
        let answer: Value = serde_json::from_slice(payload).unwrap();
        let headers = answer["headers"].as_object().unwrap().iter();
        let body = answer["body"].as_str().unwrap_or_default();
        Self {
            status: answer["statusCode"].as_u64().unwrap(),
            headers: headers
                .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
                .collect(),
            body: match answer["isBase64Encoded"].as_bool().unwrap() {
                true => STANDARD.decode(body).unwrap(),
                false => body.as_bytes().to_vec(),
            },
        }
    }
}
