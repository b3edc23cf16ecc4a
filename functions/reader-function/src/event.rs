//! Answers an event: the request that the client made.

use std::{convert::Infallible, fmt::Write, time::Instant};

use api::HttpMetrics;
use axum::{Router, body::Body};
use lambda_http::http::header::HOST;
use lambda_http::http::{self, Uri};
use lambda_http::request::LambdaRequest;
use lambda_http::tower::ServiceExt;
use lambda_http::{Adapter, LambdaEvent, Request, RequestExt, Service, service_fn};
use reader::PublishedCatalogs;
use serde::Serialize;

use crate::answer::FunctionAnswer;

/// Returns the function, which turns an event into an answer. Each of them is one JSON document.
pub fn function(
    catalogs: PublishedCatalogs,
    settings: api::HttpSettings,
) -> impl Service<LambdaEvent<LambdaRequest>, Response = impl Serialize, Error = Infallible, Future: Send>
{
    // A function has no /metrics: each instance would count for itself. CloudWatch counts instead.
    let router = api::router(catalogs, settings, HttpMetrics::default());
    let handler = service_fn(move |request: Request| handle(router.clone(), request));
    Adapter::from(handler).map_request(|mut event: LambdaEvent<LambdaRequest>| {
        tidy(&mut event.payload);
        event
    })
}

async fn handle(router: Router, request: Request) -> Result<FunctionAnswer, Infallible> {
    let started = Instant::now();
    // As the client wrote it. The library resolves `..`, which the local server does not.
    let mut written = request.raw_http_path().to_owned();
    if let Some(query) = request.uri().query() {
        written.push('?');
        written.push_str(query);
    }
    let uri: Uri = written.parse().unwrap_or_else(|_| request.uri().clone());
    // The router reads no content.
    let (mut parts, _) = request.into_parts();
    parts.uri = uri.clone();
    let method = parts.method.clone();
    let response = router
        .oneshot(http::Request::from_parts(parts, Body::empty()))
        .await?;
    let answer = FunctionAnswer::collect(response).await;
    // The id of the request is a field of the span around this line, as of every line that is
    // logged meanwhile.
    tracing::info!(
        method = method.as_str(),
        path = uri.path(),
        query = uri.query().unwrap_or_default(),
        status = answer.0.status().as_u16(),
        bytes = answer.0.body().len(),
        duration_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
        "answered request"
    );
    Ok(answer)
}

/// Prepares an event for being read as a request. One path reaches a function in three ways: a
/// function URL passes it on as the client wrote it, an HTTP API decodes it, and an HTTP API with a
/// named stage adds the stage in front (API Gateway Developer Guide, "Create AWS Lambda proxy
/// integrations for HTTP APIs").
fn tidy(event: &mut LambdaRequest) {
    let LambdaRequest::ApiGatewayV2(event) = event else {
        return;
    };
    let path = event.raw_path.take().unwrap_or_default();
    let stage = event.request_context.stage.take();
    event.raw_path = Some(escape(without_stage(&path, stage.as_deref()), b""));
    if let Some(query) = &mut event.raw_query_string {
        *query = escape(query, b"?");
    }
    // No route needs them, and the URL that the library builds from them may be invalid.
    event.headers.remove(HOST);
    event.request_context.domain_name = None;
}

fn without_stage<'a>(path: &'a str, stage: Option<&str>) -> &'a str {
    let Some(stage) = stage else {
        return path;
    };
    if stage == "$default" {
        return path;
    }
    let rest = path
        .strip_prefix('/')
        .and_then(|path| path.strip_prefix(stage));
    match rest {
        Some(rest) if rest.starts_with('/') => rest,
        _ => path,
    }
}

/// Percent-encodes all characters that a path may not contain (RFC 3986, section 3.3), except those
/// in `also`. A percent sign stays: an encoded path cannot be distinguished from a decoded one with
/// a percent sign, and no name in a catalog has one.
fn escape(text: &str, also: &[u8]) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric()
            || b"-._~!$&'()*+,;=:@/%".contains(&byte)
            || also.contains(&byte)
        {
            escaped.push(char::from(byte));
        } else {
            write!(escaped, "%{byte:02X}").expect("a string takes all that fits in memory");
        }
    }
    escaped
}
