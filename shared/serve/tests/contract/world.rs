//! A store, a router over it, and requests to it.

use std::{fmt::Write, io::Read, sync::Arc};

use axum::{Router, body::Body};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use serve::{Metrics, Settings, router};
use store::MemoryStore;
use tower::ServiceExt;

use crate::fixture::{LINES, Publication, Published, publish};

pub(crate) struct World {
    pub(crate) store: MemoryStore,
    pub(crate) router: Router,
    pub(crate) demo: Published,
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// `None` if it was cut off.
    pub(crate) body: Option<Bytes>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Settings::default(), Publication::default(), LINES).await
    }

    pub(crate) async fn with(settings: Settings, publication: Publication<'_>, lines: &str) -> Self {
        let store = MemoryStore::new();
        let demo = publish(&store, publication, lines).await;
        let router = router(Arc::new(store.clone()), settings, Metrics::default());
        Self { store, router, demo }
    }

    pub(crate) async fn ask(&self, method: Method, path: &str, fields: &[(&str, &str)]) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).unwrap();
        let (parts, body) = self.router.clone().oneshot(request).await.unwrap().into_parts();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body: body.collect().await.ok().map(http_body_util::Collected::to_bytes),
        }
    }

    pub(crate) async fn get(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.ask(Method::GET, path, fields).await
    }

    /// Status, headers and the beginning of the body, as they are compared with what is promised.
    pub(crate) async fn show(&self, path: &str, fields: &[(&str, &str)]) -> String {
        self.get(path, fields).await.show()
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.body.as_ref().expect("a complete body")
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    /// The body without its content coding.
    pub(crate) fn decoded(&self) -> Vec<u8> {
        let mut decoded = Vec::new();
        match self.header("content-encoding") {
            "gzip" => flate2::read::GzDecoder::new(self.bytes())
                .read_to_end(&mut decoded)
                .unwrap(),
            "zstd" => zstd::stream::read::Decoder::new(self.bytes())
                .unwrap()
                .read_to_end(&mut decoded)
                .unwrap(),
            "" => self.bytes().read_to_end(&mut decoded).unwrap(),
            other => panic!("{other}"),
        };
        decoded
    }

    pub(crate) fn head(&self) -> String {
        let mut text = format!("{}\n", self.status);
        let mut headers: Vec<(&str, &str)> = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        headers.sort_unstable();
        for (name, value) in headers {
            writeln!(text, "{name}: {value}").unwrap();
        }
        text
    }

    pub(crate) fn show(&self) -> String {
        let mut text = self.head();
        match &self.body {
            None => text.push_str("(cut off)"),
            Some(body) if body.is_empty() => {}
            Some(body) => match std::str::from_utf8(body) {
                Ok(body) => write!(text, "\n{body}").unwrap(),
                Err(_) => write!(text, "\n({} bytes)", body.len()).unwrap(),
            },
        }
        text.trim_end().to_owned()
    }
}
