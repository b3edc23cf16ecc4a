//! Answers, whose bodies can be read only at the minimum throughput or faster.

use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use flate2::bufread::MultiGzDecoder;
use reqwest::header::{CONTENT_ENCODING, CONTENT_RANGE, ETAG, HeaderMap, HeaderValue, IF_RANGE};
use reqwest::{Response, StatusCode, Url};

use crate::error::{FailedFetch, FetchError, Peer};
use crate::network::AddressScope;
use crate::redact::SentSecrets;
use crate::request::RequestSpec;
use crate::retry::{RequestError, Retries};
use crate::settings::MinThroughput;
use crate::traffic::TrafficCounter;

/// Start of every body that is compressed with gzip (RFC 1952, section 2.3.1).
const GZIP: &[u8] = &[0x1f, 0x8b];

/// Bytes of progress that earn a fresh set of retries. Less would let a slow server keep a request
/// alive for ever.
const PROGRESS_BYTES: u64 = 1 << 20;

/// The answer to a request, with its body still to be read.
#[derive(Debug)]
pub struct FetchResponse {
    pub(crate) response: Response,
    /// True if the answer comes from the first server and not from one that it redirected to.
    pub is_home: bool,
    /// Address scope of the server that answered.
    pub sender: AddressScope,
    pub(crate) guard: ThroughputGuard,
    pub(crate) traffic: Arc<TrafficCounter>,
    /// Server that answered, for errors.
    pub peer: Peer,
    /// Content coding of the body, cleaned for logs.
    pub(crate) coding: Option<String>,
}

/// A body that is continued where the connection broke.
///
/// ```text
/// response --chunk()--> bytes ... connection breaks
///     |                              |
///     |                   request_rest(): Range: bytes=POSITION-, If-Range: "strong tag"
///     |                              |
///     +------- continue_with(206: the rest | 200: the whole body again, its start is skipped)
/// ```
pub struct ResumableBody {
    response: FetchResponse,
    strong_tag: Option<HeaderValue>,
    position: u64,
    /// Position at which the last fresh set of retries was earned.
    earned_at: u64,
    /// Bytes of the present answer that an earlier answer has already brought.
    skip: u64,
    /// Attempts of the present set that are left.
    pub retries: Retries,
}

/// Enforces the minimum speed of one body. Counts only the time spent waiting for the server, not
/// the time that the consumer takes.
#[derive(Debug)]
pub(crate) struct ThroughputGuard {
    minimum: MinThroughput,
    waited: Duration,
    bytes: u64,
}

impl FetchResponse {
    /// Returns the HTTP status of the answer.
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// Returns the headers of the answer.
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// Returns the URL that answered, after all redirects.
    pub fn url(&self) -> &Url {
        self.response.url()
    }

    /// Returns the declared length of the body, in bytes. `None` also for a body with a content
    /// coding.
    pub fn content_length(&self) -> Option<u64> {
        if self.coding.is_some() {
            return None;
        }
        self.response.content_length()
    }

    /// Leaves a body of exactly this many bytes as it is. Some storage labels compressed files with
    /// a content coding.
    #[must_use]
    pub fn expecting(mut self, bytes: u64) -> Self {
        if self.response.content_length() == Some(bytes) {
            self.coding = None;
        }
        self
    }

    /// Leaves a body with one of these content codings as it is.
    #[must_use]
    pub fn keeping(mut self, codings: &[&str]) -> Self {
        self.coding
            .take_if(|coding| codings.contains(&coding.as_str()));
        self
    }

    /// Returns the next bytes of the body, or `None` at its end.
    ///
    /// # Errors
    /// A broken connection, the read timeout, a body below the minimum throughput or with a content
    /// coding.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, FailedFetch> {
        if let Some(coding) = self.coding.clone() {
            return Err(FetchError::Coding(coding).at(self.peer.clone()));
        }
        let started = Instant::now();
        let received = self.traffic.wait(self.response.chunk()).await;
        let chunk = received
            .and_then(|received| received.map_err(FetchError::from_transport))
            .map_err(|error| error.at(self.peer.clone()))?;
        if let Some(bytes) = &chunk {
            let count = bytes.len() as u64;
            self.traffic.counted.lock().bytes += count;
            self.guard
                .record(started.elapsed(), count)
                .map_err(|error| error.at(self.peer.clone()))?;
        }
        Ok(chunk)
    }

    /// Reads the whole body into memory and decodes gzip. Some proxies compress documents though
    /// nothing asks for it.
    ///
    /// # Errors
    /// [`FetchError::TooLarge`] for a body of more than `limit` bytes, and all errors of
    /// [`Self::chunk`].
    pub async fn bytes(mut self, limit: u64) -> Result<Bytes, FailedFetch> {
        let gzip = self
            .coding
            .take_if(|coding| matches!(&**coding, "gzip" | "x-gzip"));
        let mut body = BytesMut::new();
        while let Some(chunk) = self.chunk().await? {
            // Counted as it comes: a declared length may be missing or wrong.
            if (body.len() + chunk.len()) as u64 > limit {
                return Err(FetchError::TooLarge { limit }.at(self.peer));
            }
            body.extend_from_slice(&chunk);
        }
        match gzip {
            Some(coding) if body.starts_with(GZIP) => {
                gunzip(&body, coding, limit).map_err(|error| error.at(self.peer))
            }
            _ => Ok(body.freeze()),
        }
    }

    /// Turns the answer into a body that can be continued. `retries` is its first set.
    pub fn into_resumable(self, retries: Retries) -> ResumableBody {
        ResumableBody {
            strong_tag: strong_tag(self.headers()),
            response: self,
            position: 0,
            earned_at: 0,
            skip: 0,
            retries,
        }
    }
}

impl ResumableBody {
    /// Returns the next new bytes, never an empty chunk, or `None` at the end.
    ///
    /// # Errors
    /// All errors of [`FetchResponse::chunk`]. After one of them [`Self::pause`], then send
    /// [`Self::request_rest`] and [`Self::continue_with`] its answer.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, FailedFetch> {
        while let Some(mut chunk) = self.response.chunk().await? {
            let skip = usize::try_from(self.skip).unwrap_or(usize::MAX);
            let skipped = skip.min(chunk.len());
            self.skip -= skipped as u64;
            let fresh = chunk.split_off(skipped);
            if !fresh.is_empty() {
                self.position += fresh.len() as u64;
                return Ok(Some(fresh));
            }
        }
        Ok(None)
    }

    /// Returns the number of bytes returned so far.
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// Waits before the next attempt. A MiB of progress earns a fresh set of retries: a body of
    /// gigabytes may break more often than a small one.
    ///
    /// # Errors
    /// The error of the last attempt if there is no next one.
    pub async fn pause<E: RequestError>(&mut self, error: E) -> Result<(), E> {
        if self.position >= self.earned_at + PROGRESS_BYTES {
            self.earned_at = self.position;
            self.retries.renew();
        }
        self.retries.pause(error).await
    }

    /// Adds the headers that ask for the rest of the body to `request`.
    #[must_use]
    pub fn request_rest(&self, request: RequestSpec) -> RequestSpec {
        let mut request = request.from_position(self.position);
        if let Some(tag) = &self.strong_tag
            && self.position > 0
        {
            request.headers.insert(IF_RANGE, tag.clone());
        }
        request
    }

    /// Continues with the answer to the request for the rest.
    ///
    /// # Errors
    /// [`FetchError::Range`] for a partial answer that starts elsewhere.
    pub fn continue_with(&mut self, response: FetchResponse) -> Result<(), FailedFetch> {
        if response.status() == StatusCode::PARTIAL_CONTENT {
            let field = response.headers().get(CONTENT_RANGE);
            let range = field.and_then(|value| value.to_str().ok());
            let start = format!("bytes {}-", self.position);
            if range.is_none_or(|range| !range.starts_with(&start)) {
                return Err(FetchError::Range.at(response.peer));
            }
            self.skip = 0;
        } else {
            // A whole answer begins with the bytes that are known already.
            self.skip = self.position;
        }
        self.response = response;
        Ok(())
    }
}

impl ThroughputGuard {
    pub(crate) const fn new(minimum: MinThroughput) -> Self {
        Self {
            minimum,
            waited: Duration::ZERO,
            bytes: 0,
        }
    }

    /// Records a chunk. A single wait has its own limit, the read timeout.
    pub(crate) fn record(&mut self, waited: Duration, bytes: u64) -> Result<(), FetchError> {
        self.waited += waited;
        self.bytes += bytes;
        if self.waited < self.minimum.period {
            return Ok(());
        }
        if self.bytes < self.minimum.bytes {
            return Err(FetchError::TooSlow {
                bytes: self.bytes,
                waited: self.waited,
            });
        }
        self.waited = Duration::ZERO;
        self.bytes = 0;
        Ok(())
    }
}

/// Returns the name of the content coding of an answer (RFC 9110, section 8.4), cleaned for logs.
pub(crate) fn content_coding(headers: &HeaderMap) -> Option<String> {
    let mut codings = Vec::new();
    for field in headers.get_all(CONTENT_ENCODING) {
        let coding = String::from_utf8_lossy(field.as_bytes());
        // Storage that keeps the header of an upload in chunks sends it with the plain object.
        if !matches!(coding.trim(), "" | "identity" | "aws-chunked") {
            codings.push(coding);
        }
    }
    if codings.is_empty() {
        return None;
    }
    let name = codings.join(", ").trim().to_ascii_lowercase();
    Some(SentSecrets::default().show(&name))
}

fn gunzip(body: &[u8], coding: String, limit: u64) -> Result<Bytes, FetchError> {
    let mut plain = Vec::new();
    let read = MultiGzDecoder::new(body)
        .take(limit.saturating_add(1))
        .read_to_end(&mut plain);
    match read {
        Ok(count) if count as u64 > limit => Err(FetchError::TooLarge { limit }),
        Ok(_) => Ok(plain.into()),
        Err(_) => Err(FetchError::Coding(coding)),
    }
}

/// Returns the entity tag if it is strong. A weak tag does not promise equal bytes, and `If-Range`
/// must not carry one (RFC 9110, section 13.1.5).
fn strong_tag(headers: &HeaderMap) -> Option<HeaderValue> {
    let tag = headers.get(ETAG)?;
    if !tag.as_bytes().starts_with(b"\"") {
        return None;
    }
    Some(tag.clone())
}

#[cfg(test)]
mod tests {
    use testkit::gzip;

    use super::*;

    #[test]
    fn guard_accepts_exact_minimum_and_refuses_one_byte_less() {
        let minimum = MinThroughput {
            bytes: 100,
            period: Duration::from_secs(10),
        };
        let second = Duration::from_secs(1);
        let mut guard = ThroughputGuard::new(minimum);
        // Three periods and the start of a fourth.
        for _ in 0..39 {
            guard.record(second, 10).unwrap();
        }
        let refused = guard.record(second, 9);
        assert!(matches!(
            refused,
            Err(FetchError::TooSlow { bytes: 99, .. })
        ));
    }

    #[test]
    fn document_is_decoded_up_to_its_limit() {
        let packed = [gzip(&[0; 60]), gzip(&[0; 40])].concat();
        let decode = |body: &[u8], limit| gunzip(body, "gzip".to_owned(), limit);
        assert_eq!(decode(&packed, 100).unwrap(), [0; 100][..]);
        assert!(matches!(
            decode(&packed, 99),
            Err(FetchError::TooLarge { limit: 99 })
        ));
        let error = decode(&packed[..packed.len() - 1], 100).unwrap_err();
        assert!(error.to_string().contains("content coding gzip"), "{error}");
        assert!(!error.is_transient());
    }

    #[test]
    fn content_coding_is_named_unless_it_changes_nothing() {
        for (field, name) in [
            ("identity", None),
            ("aws-chunked", None),
            ("X-GZIP", Some("x-gzip")),
            ("gzip, br", Some("gzip, br")),
        ] {
            let headers = HeaderMap::from_iter([(CONTENT_ENCODING, field.parse().unwrap())]);
            assert_eq!(content_coding(&headers).as_deref(), name);
        }
    }
}
