//! What a bucket holds.

use std::collections::BTreeMap;
use std::time::SystemTime;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;

use super::faults::S3Request;
use crate::image::digest;

/// The fields of a put that come back with the object.
const KEPT: [&str; 3] = ["content-type", "content-encoding", "cache-control"];

/// An object in the bucket.
#[derive(Clone, Debug)]
pub struct StoredObject {
    /// Its bytes.
    pub bytes: Bytes,
    /// Its `ETag`, with quotes.
    pub tag: String,
    /// Content type, content coding and cache policy, by their names in lower case.
    pub headers: BTreeMap<String, String>,
    pub(super) crc32: Option<String>,
    pub(super) modified: SystemTime,
}

#[derive(Default)]
pub(super) struct Bucket {
    pub(super) objects: BTreeMap<String, StoredObject>,
    pub(super) uploads: BTreeMap<String, Upload>,
    begun: u64,
}

pub(super) struct Upload {
    name: String,
    headers: BTreeMap<String, String>,
    parts: BTreeMap<u32, Bytes>,
}

/// Status and error code of a request that cannot be done.
pub(super) type Refusal = (u16, &'static str);

impl Bucket {
    /// Whether a write to `name` may happen (Amazon S3 User Guide, "Conditional writes").
    pub(super) fn check(&self, name: &str, request: &S3Request) -> Result<(), Refusal> {
        let found = self.objects.get(name);
        match (request.header("if-none-match"), request.header("if-match"), found) {
            (Some("*"), _, Some(_)) => Err((412, "PreconditionFailed")),
            (Some(other), _, _) if other != "*" => Err((501, "NotImplemented")),
            (_, Some(_), None) => Err((404, "NoSuchKey")),
            (_, Some(tag), Some(found)) if found.tag != tag => Err((412, "PreconditionFailed")),
            _ => Ok(()),
        }
    }

    pub(super) fn put(&mut self, name: &str, request: &S3Request, bytes: Bytes) -> Result<String, Refusal> {
        let crc32 = checked(request, &bytes)?;
        let tag = tag(&bytes);
        let object = StoredObject {
            bytes,
            tag: tag.clone(),
            headers: kept(request),
            crc32,
            modified: SystemTime::now(),
        };
        self.objects.insert(name.to_owned(), object);
        Ok(tag)
    }

    pub(super) fn begin(&mut self, name: &str, request: &S3Request) -> String {
        self.begun += 1;
        let id = format!("upload-{}", self.begun);
        let upload = Upload {
            name: name.to_owned(),
            headers: kept(request),
            parts: BTreeMap::new(),
        };
        self.uploads.insert(id.clone(), upload);
        id
    }

    pub(super) fn part(&mut self, request: &S3Request, bytes: Bytes) -> Result<(String, Option<String>), Refusal> {
        let crc32 = checked(request, &bytes)?;
        let number = request.parameter("partNumber").and_then(|number| number.parse().ok());
        let number = number.ok_or((400, "InvalidArgument"))?;
        let upload = self.uploads.get_mut(request.parameter("uploadId").unwrap_or_default());
        let tag = tag(&bytes);
        upload.ok_or((404, "NoSuchUpload"))?.parts.insert(number, bytes);
        Ok((tag, crc32))
    }

    /// Joins the parts, of which all but the last have to have 5 MiB.
    pub(super) fn complete(&mut self, request: &S3Request) -> Result<String, Refusal> {
        let id = request.parameter("uploadId").unwrap_or_default();
        let upload = self.uploads.get(id).ok_or((404, "NoSuchUpload"))?;
        let sizes: Vec<usize> = upload.parts.values().map(Bytes::len).collect();
        if sizes.iter().rev().skip(1).any(|&size| size < 5 << 20) {
            return Err((400, "EntityTooSmall"));
        }
        let upload = self.uploads.remove(id).expect("it was just there");
        let parts: Vec<&[u8]> = upload.parts.values().map(|part| &part[..]).collect();
        let bytes = Bytes::from(parts.concat());
        let tag = format!("{}-{}\"", tag(&bytes).trim_end_matches('"'), parts.len());
        let object = StoredObject {
            bytes,
            tag: tag.clone(),
            headers: upload.headers,
            crc32: None,
            modified: SystemTime::now(),
        };
        self.objects.insert(upload.name, object);
        Ok(tag)
    }
}

/// The checksum that came with the bytes, if it is theirs.
fn checked(request: &S3Request, bytes: &[u8]) -> Result<Option<String>, Refusal> {
    let ours = STANDARD.encode(crc32fast::hash(bytes).to_be_bytes());
    match request.header("x-amz-checksum-crc32") {
        Some(theirs) if theirs != ours => Err((400, "BadDigest")),
        theirs => Ok(theirs.map(ToOwned::to_owned)),
    }
}

fn kept(request: &S3Request) -> BTreeMap<String, String> {
    let field = |name: &str| Some((name.to_owned(), request.header(name)?.to_owned()));
    KEPT.into_iter().filter_map(field).collect()
}

/// Real ones are an MD5 mostly, but nobody may rely on that.
fn tag(bytes: &[u8]) -> String {
    let hash = digest(bytes);
    format!("\"{}\"", &hash["sha256:".len()..][..32])
}
