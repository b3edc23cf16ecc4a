use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use etag::EntityTag;
use http::HeaderValue;
use model::{Encoding, Sha256};

/// A strong entity tag (RFC 9110, section 8.8.3), ready to be sent. It names bytes: an object has one tag under all its
/// URLs, and no two codings of one content share a tag.
#[derive(Debug, Clone)]
pub(crate) struct Tag(HeaderValue);

impl Tag {
    /// Returns the tag of bytes with this hash.
    pub(crate) fn of_stored(sha256: Sha256) -> Self {
        Self::with_suffix(sha256, "")
    }

    /// Returns the tag of a content that is encoded on the fly. Identity leaves the bytes of the content.
    pub(crate) fn of_made(content: Sha256, encoding: Encoding) -> Self {
        Self::with_suffix(content, encoding.tag_suffix())
    }

    /// Returns the tag of a document that is made from a content, distinguished by `suffix`. The hash is written in base64url
    /// because hex is longer than an [`EntityTag`] can hold.
    pub(crate) fn with_suffix(content: Sha256, suffix: &str) -> Self {
        let tag = EntityTag::strong(&format!("{}{suffix}", content.to_base64url()));
        let header = HeaderValue::from_maybe_shared(Bytes::from(tag.to_string()));
        Self(header.expect("base64url and a word are visible ASCII"))
    }

    pub(crate) const fn header(&self) -> &HeaderValue {
        &self.0
    }
}

/// Date of a publication as a modification date (RFC 9110, section 8.8.2), ready to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Modified {
    seconds: u64,
    header: HeaderValue,
}

impl Modified {
    pub(crate) fn new(time: SystemTime) -> Self {
        let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds));
        let header = HeaderValue::from_str(&date).expect("an HTTP date is visible ASCII");
        Self { seconds, header }
    }

    /// Returns the field value. A publisher's clock may be ahead of this one; a date in the future is replaced by the
    /// present (RFC 9110, section 8.8.2.1).
    pub(crate) fn header(&self, now: SystemTime) -> HeaderValue {
        match now.duration_since(UNIX_EPOCH) {
            Ok(now) if now.as_secs() < self.seconds => Self::new(UNIX_EPOCH + now).header,
            _ => self.header.clone(),
        }
    }

    /// Returns the publication's own seconds since 1970. They are compared unclamped: a client that was sent an earlier date
    /// gets the content again, which is the safe side.
    pub(crate) const fn seconds(&self) -> u64 {
        self.seconds
    }
}
