use std::io::{self, Read};

use bytes::Bytes;
use flate2::read::GzDecoder;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, ETAG};
use http::response::Parts;
use http::{HeaderMap, HeaderName, Method, StatusCode};

use crate::{connection::RequestSpec, violation::Violation};

/// Complete answer with the announced length.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// Checks the announced length of the body (RFC 9110, section 8.6). HEAD and 304 announce a
    /// length but have no body.
    pub(crate) fn new(ask: &RequestSpec, head: Parts, body: Bytes) -> Result<Self, Violation> {
        let answer = Self {
            status: head.status,
            headers: head.headers,
            body,
        };
        let bodiless = ask.method == Method::HEAD || answer.status == StatusCode::NOT_MODIFIED;
        let expected = if bodiless { Some(0) } else { answer.length() };
        match expected {
            Some(said) if said != answer.body.len() as u64 => Err(Violation::Length {
                said,
                found: answer.body.len() as u64,
            }),
            _ => Ok(answer),
        }
    }

    /// Returns the value of a header field; empty without it.
    pub(crate) fn field(&self, name: HeaderName) -> &str {
        let value = self.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default()
    }

    pub(crate) fn length(&self) -> Option<u64> {
        self.field(CONTENT_LENGTH).parse().ok()
    }

    /// Returns the opaque part of the entity tag, which must be a strong one (RFC 9110, section
    /// 8.8.3).
    pub(crate) fn tag(&self) -> Result<&str, Violation> {
        let field = self.field(ETAG);
        let opaque = field
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'));
        opaque.ok_or_else(|| Violation::Tag(field.to_owned()))
    }

    /// Returns true for 404, and for 410, which stands for a state that the pointer no longer
    /// remembers.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.status, StatusCode::NOT_FOUND | StatusCode::GONE)
    }

    pub(crate) fn must_be(&self, expected: StatusCode) -> Result<(), Violation> {
        let found = self.status;
        match found == expected {
            true => Ok(()),
            false => Err(Violation::Status { found, expected }),
        }
    }

    /// Returns the body without its content coding.
    pub(crate) fn plain(&self) -> Result<Bytes, Violation> {
        decoded(&self.body, self.field(CONTENT_ENCODING)).map_err(Violation::Coding)
    }
}

/// Decodes a content coding (RFC 9110, section 8.4.1).
pub(crate) fn decoded(body: &Bytes, coding: &str) -> io::Result<Bytes> {
    match coding {
        "" => Ok(body.clone()),
        "zstd" => zstd::stream::decode_all(body.as_ref()).map(Bytes::from),
        "gzip" => {
            let mut plain = Vec::new();
            // Only the first member is read: some clients stop there, so it must hold all of the
            // content.
            GzDecoder::new(body.as_ref()).read_to_end(&mut plain)?;
            Ok(plain.into())
        }
        other => Err(io::Error::other(format!("{other} was not asked for"))),
    }
}
