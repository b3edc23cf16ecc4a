//! Builds the responses of the S3 server.

use std::ops::Range;
use std::time::Duration;

use axum::body::Body;
use axum::http::Response;
use axum::http::response::Builder;
use bytes::Bytes;

use super::bucket::{Bucket, Refusal, StoredObject};
use super::faults::{S3Call, S3Fault, S3Request};
use crate::serving::{BEFORE_CUT, cut, finish, status};

pub(super) fn error(code: u16, name: &str) -> Response<Body> {
    let body = format!("<Error><Code>{name}</Code><Message>by the test's server</Message></Error>");
    xml(code, &body)
}

pub(super) fn written(tag: &str) -> Response<Body> {
    finish(status(200).header("etag", tag), Body::empty())
}

pub(super) fn object(
    object: &StoredObject,
    request: &S3Request,
    fault: Option<&S3Fault>,
) -> Result<Response<Body>, Refusal> {
    if request.header("if-none-match") == Some(&object.tag) {
        return Ok(finish(
            status(304).header("etag", &object.tag),
            Body::empty(),
        ));
    }
    let size = object.bytes.len();
    let Ok(range) = requested(request, size) else {
        let response = status(416).header("content-range", format!("bytes */{size}"));
        let body = "<Error><Code>InvalidRange</Code></Error>";
        return Ok(finish(response, body));
    };
    let mut response = status(if range.is_some() { 206 } else { 200 });
    if let Some(range) = &range {
        let range = format!("bytes {}-{}/{size}", range.start, range.end - 1);
        response = response.header("content-range", range);
    } else if let Some(checksum) = &object.checksum {
        response = response.header("x-amz-checksum-sha256", checksum);
    }
    let bytes = object.bytes.slice(range.unwrap_or(0..size));
    let response = described(response, object).header("content-length", bytes.len());
    let body = match request.call {
        S3Call::Head => Body::empty(),
        _ => body(bytes, fault),
    };
    Ok(finish(response, body))
}

fn described(response: Builder, object: &StoredObject) -> Builder {
    let modified = httpdate::fmt_http_date(object.modified);
    let response = response
        .header("etag", &object.tag)
        .header("last-modified", modified);
    let fields = object.headers.iter();
    fields.fold(response, |response, (name, value)| {
        response.header(name, value)
    })
}

/// Returns the requested range, or `None` for the whole object. Fails if the object does not have
/// it. Numbers are signed ones, as in servers.
fn requested(request: &S3Request, size: usize) -> Result<Option<Range<usize>>, ()> {
    let field = request.header("range");
    let Some(range) = field.and_then(|range| range.strip_prefix("bytes=")) else {
        return Ok(None);
    };
    let (first, last) = range.split_once('-').ok_or(())?;
    let start = number(first)?;
    let mut end = size;
    if !last.is_empty() {
        end = end.min(number(last)? + 1);
    }
    if start >= end {
        return Err(());
    }
    Ok(Some(start..end))
}

fn number(text: &str) -> Result<usize, ()> {
    let number: i64 = text.parse().map_err(|_| ())?;
    Ok(number as usize)
}

pub(super) fn list(bucket: &Bucket, request: &S3Request, page: usize) -> Response<Body> {
    let prefix = request.parameter("prefix").unwrap_or_default();
    let after = request.parameter("continuation-token").unwrap_or_default();
    let found = bucket.objects.iter();
    let mut found = found.filter(|(name, _)| name.starts_with(prefix) && name.as_str() > after);
    let listed: Vec<_> = found.by_ref().take(page).collect();
    let last = listed
        .last()
        .map(|(name, _)| name.as_str())
        .unwrap_or_default();
    let more = match found.next() {
        Some(_) => format!(
            "<IsTruncated>true</IsTruncated><NextContinuationToken>{last}</NextContinuationToken>"
        ),
        None => "<IsTruncated>false</IsTruncated>".to_owned(),
    };
    let contents: String = listed
        .into_iter()
        .map(|(name, object)| contents(name, object))
        .collect();
    xml(
        200,
        &format!("<ListBucketResult>{more}{contents}</ListBucketResult>"),
    )
}

fn contents(name: &str, object: &StoredObject) -> String {
    let modified = humantime::format_rfc3339_seconds(object.modified);
    let size = object.bytes.len();
    format!(
        "<Contents><Key>{name}</Key><LastModified>{modified}</LastModified><Size>{size}</Size></Contents>"
    )
}

/// Returns the bytes, or what the fault leaves of them.
fn body(bytes: Bytes, fault: Option<&S3Fault>) -> Body {
    match fault {
        Some(&S3Fault::Cut(at)) => cut(&bytes, at, BEFORE_CUT),
        Some(&S3Fault::Stall(at)) => cut(&bytes, at, Duration::from_secs(3600)),
        Some(S3Fault::Corrupt) => {
            let mut bytes = bytes.to_vec();
            bytes.iter_mut().take(1).for_each(|byte| *byte = !*byte);
            bytes.into()
        }
        _ => Body::from(bytes),
    }
}

fn xml(code: u16, body: &str) -> Response<Body> {
    let body = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>{body}");
    finish(status(code).header("content-type", "application/xml"), body)
}
