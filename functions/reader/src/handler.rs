use std::{convert::Infallible, time::Instant};

use axum::{Router, body::Body};
use http_api::HttpMetrics;
use lambda_http::{
    Adapter, LambdaEvent, Request, Service, http,
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
    let (mut parts, _) = request.into_parts();
    parts.uri = uri.clone();
    let method = parts.method.clone();
    let response = router.oneshot(http::Request::from_parts(parts, Body::empty())).await?;
    let answer = FunctionAnswer::collect(response).await;
    // The id of the request is a field of the span around this line, as of every line that is logged meanwhile.
    tracing::info!(
        method = method.as_str(),
        path = uri.path(),
        query = uri.query().unwrap_or_default(),
        status = answer.status().as_u16(),
        bytes = answer.size(),
        duration_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
        "answered request"
    );
    Ok(answer)
}
