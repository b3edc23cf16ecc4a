use std::{fmt::Write, io::Read};

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt, Collected};
use tower::ServiceExt;

/// Complete response of a router, for tests without a network.
#[derive(Debug)]
pub struct Answer {
    /// Status code of the response.
    pub status: StatusCode,
    /// Header fields of the response.
    pub headers: HeaderMap,
    /// Body; `None` if it was cut off.
    pub body: Option<Bytes>,
}

impl Answer {
    /// Sends a request to the router and reads the response to its end.
    pub async fn to(request: Request<Body>, router: &Router) -> Self {
        let answered = router.clone().oneshot(request).await;
        let (parts, body) = answered.unwrap_or_else(|never| match never {}).into_parts();
        Self {
            status: parts.status,
            headers: parts.headers,
            body: body.collect().await.ok().map(Collected::to_bytes),
        }
    }

    /// Returns a header field, or an empty text.
    pub fn header(&self, name: &str) -> &str {
        match self.headers.get(name) {
            Some(value) => value.to_str().expect("what we send is text"),
            None => "",
        }
    }

    /// Returns the body.
    ///
    /// # Panics
    /// If the body was cut off.
    pub fn bytes(&self) -> &[u8] {
        self.body.as_ref().expect("a complete body")
    }

    /// Returns the body as text, with U+FFFD for invalid UTF-8.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    /// Returns the body without its content coding.
    pub fn decoded(&self) -> Vec<u8> {
        let mut decoded = Vec::new();
        let read = match self.header("content-encoding") {
            "gzip" => flate2::read::GzDecoder::new(self.bytes()).read_to_end(&mut decoded),
            "zstd" => zstd::Decoder::new(self.bytes())
                .and_then(|mut decoder| decoder.read_to_end(&mut decoded)),
            "" => self.bytes().read_to_end(&mut decoded),
            other => panic!("the test did not ask for {other}"),
        };
        read.expect("a whole body");
        decoded
    }

    /// Returns the status and the sorted header fields, one a line.
    pub fn head(&self) -> String {
        let mut text = format!("{}\n", self.status);
        let mut fields = Vec::new();
        for (name, value) in &self.headers {
            let value = value.to_str().expect("what we send is text");
            fields.push((name.as_str(), value));
        }
        fields.sort_unstable();
        for (name, value) in fields {
            writeln!(text, "{name}: {value}").expect("a String takes any text");
        }
        text
    }

    /// Returns the status, the header fields and the body as text, for comparisons.
    pub fn show(&self) -> String {
        let mut text = self.head();
        match &self.body {
            None => text.push_str("(cut off)"),
            Some(body) if body.is_empty() => {}
            Some(body) => match std::str::from_utf8(body) {
                Ok(body) => text += &format!("\n{body}"),
                Err(_) => text += &format!("\n({} bytes)", body.len()),
            },
        }
        text.trim_end().to_owned()
    }
}
