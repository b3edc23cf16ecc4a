use std::{convert::Infallible, sync::Arc, time::Instant};

use axum::{Router, body::Body};
use lambda_http::{
    Adapter, LambdaEvent, Request, Service,
    http::{self, request::Parts},
    request::LambdaRequest,
    service_fn,
    tower::{ServiceBuilder, ServiceExt},
};
use serde::Serialize;
use serve::Metrics;
use store::Store;

use crate::{answer::Answer, event};

/// The function: from an event to an answer, each of them one JSON document.
pub fn function(
    store: Arc<dyn Store>,
    settings: serve::Settings,
) -> impl Service<LambdaEvent<LambdaRequest>, Response = impl Serialize, Error = Infallible, Future: Send> {
    // Nobody can ask a function for its metrics.
    let router = serve::router(store, settings, Metrics::default());
    let handler = service_fn(move |request: Request| handle(router.clone(), request));
    ServiceBuilder::new()
        .map_request(|mut event: LambdaEvent<LambdaRequest>| {
            event::tidy(&mut event.payload);
            event
        })
        .service(Adapter::from(handler))
}

async fn handle(router: Router, request: Request) -> Result<Answer, Infallible> {
    let started = Instant::now();
    let uri = event::uri(&request);
    // The body is dropped: nothing here takes one.
    let (parts, _) = request.into_parts();
    let asked = Asked::new(&parts, &uri);
    let mut request = http::Request::new(Body::empty());
    *request.method_mut() = parts.method;
    *request.uri_mut() = uri;
    *request.headers_mut() = parts.headers;
    let response = router.oneshot(request).await?;
    let answer = Answer::collect(response).await;
    asked.log(&answer, started);
    Ok(answer)
}

/// What the log line of a request says of it.
struct Asked {
    method: http::Method,
    path: String,
    query: String,
}

impl Asked {
    fn new(parts: &Parts, uri: &http::Uri) -> Self {
        Self {
            method: parts.method.clone(),
            path: uri.path().to_owned(),
            query: uri.query().unwrap_or_default().to_owned(),
        }
    }

    /// The request's id is a field of the span around it, as in every line that is logged meanwhile.
    fn log(&self, answer: &Answer, started: Instant) {
        tracing::info!(
            method = self.method.as_str(),
            path = self.path,
            query = self.query,
            status = answer.status().as_u16(),
            bytes = answer.size(),
            duration_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
            "answered"
        );
    }
}
