//! The objects of a bucket.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use model::Sha256;

use super::faults::S3Request;

/// Header fields of a put that are returned with the object.
const KEPT: [&str; 3] = ["content-type", "content-encoding", "cache-control"];

/// Object of a bucket with its metadata.
#[derive(Clone, Debug)]
pub struct StoredObject {
    /// Stored bytes of the object.
    pub bytes: Bytes,
    /// Value of `ETag`, with its quotes.
    pub tag: String,
    /// Content type, content coding and cache policy, by lower-case field names.
    pub headers: BTreeMap<String, String>,
    /// Value of `x-amz-checksum-sha256` of the put.
    pub(super) checksum: Option<String>,
    pub(super) modified: SystemTime,
}

#[derive(Default)]
pub(super) struct Bucket {
    pub(super) objects: BTreeMap<String, StoredObject>,
    /// Time of the last write of each object that was within the limit.
    written: BTreeMap<String, Instant>,
}

/// Status and error code of a refused request.
pub(super) type Refusal = (u16, &'static str);

impl Bucket {
    /// Checks the conditions of a write (Amazon S3 User Guide, "Conditional writes").
    pub(super) fn check(&self, name: &str, request: &S3Request) -> Result<(), Refusal> {
        let found = self.objects.get(name);
        match (
            request.header("if-none-match"),
            request.header("if-match"),
            found,
        ) {
            (Some("*"), _, Some(_)) => Err((412, "PreconditionFailed")),
            (Some(other), _, _) if other != "*" => Err((501, "NotImplemented")),
            (_, Some(_), None) => Err((404, "NoSuchKey")),
            (_, Some(tag), Some(found)) if found.tag != tag => Err((412, "PreconditionFailed")),
            _ => Ok(()),
        }
    }

    /// Checks a write as [R2 documents it](https://developers.cloudflare.com/r2/api/error-codes/).
    pub(super) fn check_as_r2(
        &mut self,
        name: &str,
        request: &S3Request,
        limit: Duration,
    ) -> Result<(), Refusal> {
        if request.header("content-length").is_none() {
            return Err((411, "MissingContentLength"));
        }
        if self
            .written
            .get(name)
            .is_some_and(|last| last.elapsed() < limit)
        {
            return Err((429, "TooManyRequests"));
        }
        self.written.insert(name.to_owned(), Instant::now());
        match self.check(name, request) {
            Err((404, _)) => Err((412, "PreconditionFailed")),
            checked => checked,
        }
    }

    pub(super) fn put(
        &mut self,
        name: &str,
        request: &S3Request,
        bytes: Bytes,
    ) -> Result<String, Refusal> {
        let checksum = checked(request, &bytes)?;
        let tag = tag(&bytes);
        let object = StoredObject {
            bytes,
            tag: tag.clone(),
            headers: kept(request),
            checksum,
            modified: SystemTime::now(),
        };
        self.objects.insert(name.to_owned(), object);
        Ok(tag)
    }
}

/// Compares the bytes with the signed hash of the payload and with the checksum, and returns the
/// latter if the request has one. A body in the encoding `aws-chunked` is refused, as some servers
/// do.
fn checked(request: &S3Request, bytes: &[u8]) -> Result<Option<String>, Refusal> {
    let ours = Sha256::of(bytes);
    match request.header("x-amz-content-sha256") {
        Some(theirs) if theirs.starts_with("STREAMING-") => return Err((501, "NotImplemented")),
        Some(theirs) if theirs != "UNSIGNED-PAYLOAD" && theirs != ours.to_string() => {
            return Err((400, "XAmzContentSHA256Mismatch"));
        }
        _ => {}
    }
    match request.header("x-amz-checksum-sha256") {
        Some(theirs) if theirs != STANDARD.encode(ours.as_bytes()) => Err((400, "BadDigest")),
        theirs => Ok(theirs.map(ToOwned::to_owned)),
    }
}

fn kept(request: &S3Request) -> BTreeMap<String, String> {
    let mut kept = BTreeMap::new();
    for name in KEPT {
        if let Some(value) = request.header(name) {
            kept.insert(name.to_owned(), value.to_owned());
        }
    }
    kept
}

/// Returns an entity tag. On Amazon S3 it is mostly an MD5, but clients must not rely on that.
fn tag(bytes: &[u8]) -> String {
    format!("\"{:.32}\"", Sha256::of(bytes))
}
