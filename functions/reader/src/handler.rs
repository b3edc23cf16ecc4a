use std::{convert::Infallible, time::Instant};

use axum::{Router, body::Body};
use http_api::HttpMetrics;
use lambda_http::{
    Adapter, LambdaEvent, Request, Service,
    http::{self, request::Parts},
    request::LambdaRequest,
    service_fn,
    tower::{ServiceBuilder, ServiceExt},
};
use reader::PublishedCatalogs;
use serde::Serialize;

use crate::{answer::FunctionAnswer, event};

/// Returns the function, which turns an event into an answer. Each of them is one JSON document.
pub fn function(
    catalogs: PublishedCatalogs,
    settings: http_api::HttpSettings,
) -> impl Service<LambdaEvent<LambdaRequest>, Response = impl Serialize, Error = Infallible, Future: Send> {
    // A function has no /metrics: each instance would count for itself. CloudWatch counts instead.
    let router = http_api::router(catalogs, settings, HttpMetrics::default());
    let handler = service_fn(move |request: Request| handle(router.clone(), request));
    ServiceBuilder::new()
        .map_request(|mut event: LambdaEvent<LambdaRequest>| {
            event::tidy(&mut event.payload);
            event
        })
        .service(Adapter::from(handler))
}

async fn handle(router: Router, request: Request) -> Result<FunctionAnswer, Infallible> {
    let started = Instant::now();
    let uri = event::uri(&request);
    // The router reads no content.
    let (parts, _) = request.into_parts();
    let logged = LoggedRequest::new(&parts, &uri);
    let mut request = http::Request::new(Body::empty());
    *request.method_mut() = parts.method;
    *request.uri_mut() = uri;
    *request.headers_mut() = parts.headers;
    let response = router.oneshot(request).await?;
    let answer = FunctionAnswer::collect(response).await;
    logged.log(&answer, started);
    Ok(answer)
}

/// Fields of the log line of a request.
struct LoggedRequest {
    method: http::Method,
    path: String,
    query: String,
}

impl LoggedRequest {
    fn new(parts: &Parts, uri: &http::Uri) -> Self {
        Self {
            method: parts.method.clone(),
            path: uri.path().to_owned(),
            query: uri.query().unwrap_or_default().to_owned(),
        }
    }

    /// Logs the request. Its id is a field of the span around it, as of every line that is logged meanwhile.
    fn log(&self, answer: &FunctionAnswer, started: Instant) {
        tracing::info!(
            method = self.method.as_str(),
            path = self.path,
            query = self.query,
            status = answer.status().as_u16(),
            bytes = answer.size(),
            duration_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
            "answered request"
        );
    }
}
