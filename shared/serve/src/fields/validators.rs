use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use etag::EntityTag;
use http::HeaderValue;
use layout::Sha256;

/// A strong entity tag (RFC 9110, section 8.8.3), ready to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Tag(HeaderValue);

impl Tag {
    /// The tag of the representation of a content that `suffix` tells apart from the others. The hash is written in
    /// base64url because hex does not fit what an [`EntityTag`] can hold.
    pub(crate) fn new(content: Sha256, suffix: &str) -> Self {
        let tag = EntityTag::strong(&format!("{}{suffix}", content.to_base64url()));
        Self(
            HeaderValue::from_maybe_shared(Bytes::from(tag.to_string()))
                .expect("base64url and a word are visible ASCII"),
        )
    }

    pub(crate) const fn header(&self) -> &HeaderValue {
        &self.0
    }

    /// The opaque part, between the quotes.
    pub(crate) fn opaque(&self) -> &[u8] {
        let quoted = self.0.as_bytes();
        &quoted[1..quoted.len() - 1]
    }
}

/// A modification date (RFC 9110, section 8.8.2), ready to be sent.
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

    pub(crate) const fn header(&self) -> &HeaderValue {
        &self.header
    }

    pub(crate) const fn seconds(&self) -> u64 {
        self.seconds
    }
}

/// What the conditions of a request are compared with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Validators<'a> {
    pub(crate) tag: &'a Tag,
    pub(crate) modified: Option<&'a Modified>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_tag_fits() {
        let tag = Tag::new(Sha256::of(b""), "-snapshot");
        assert_eq!(tag.header(), "\"47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU-snapshot\"");
        assert_eq!(tag.opaque().len(), 52);
    }

    /// Mirrors of a mirror ask by it.
    #[test]
    fn the_tag_of_a_document_is_the_one_that_the_layout_promises() {
        let hash = Sha256::of(b"{}");
        assert_eq!(Tag::new(hash, "").header(), hash.to_entity_tag().as_str());
    }

    #[test]
    fn dates_have_whole_seconds() {
        let modified = Modified::new(UNIX_EPOCH + Duration::from_millis(1500));
        assert_eq!(modified.header(), "Thu, 01 Jan 1970 00:00:01 GMT");
    }
}
