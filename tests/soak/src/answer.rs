use std::io::{self, Read};

use bytes::Bytes;
use flate2::read::GzDecoder;
use http::{
    HeaderMap, HeaderName, Method, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_LENGTH, ETAG},
    response::Parts,
};

use crate::{client::Ask, wrong::Wrong};

/// A complete answer whose length is the one that was announced.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// Checks the length of what came (RFC 9110, section 8.6): for HEAD and 304 it is said of what did not come.
    pub(crate) fn new(ask: &Ask, head: Parts, body: Bytes) -> Result<Self, Wrong> {
        let answer = Self {
            status: head.status,
            headers: head.headers,
            body,
        };
        let bodiless = ask.method == Method::HEAD || answer.status == StatusCode::NOT_MODIFIED;
        let expected = if bodiless { Some(0) } else { answer.length() };
        match expected {
            Some(said) if said != answer.body.len() as u64 => Err(Wrong::Length {
                said,
                found: answer.body.len() as u64,
            }),
            _ => Ok(answer),
        }
    }

    /// The value of a field; empty without it.
    pub(crate) fn field(&self, name: HeaderName) -> &str {
        let value = self.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default()
    }

    pub(crate) fn length(&self) -> Option<u64> {
        self.field(CONTENT_LENGTH).parse().ok()
    }

    /// The opaque part of the entity tag, which has to be a strong one (RFC 9110, section 8.8.3).
    pub(crate) fn tag(&self) -> Result<&str, Wrong> {
        let field = self.field(ETAG);
        let opaque = field.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        opaque.ok_or_else(|| Wrong::Tag(field.to_owned()))
    }

    pub(crate) fn must_be(&self, expected: StatusCode) -> Result<(), Wrong> {
        let found = self.status;
        match found == expected {
            true => Ok(()),
            false => Err(Wrong::Status { found, expected }),
        }
    }

    /// The body without its content coding.
    pub(crate) fn plain(&self) -> Result<Bytes, Wrong> {
        decoded(&self.body, self.field(CONTENT_ENCODING)).map_err(Wrong::Coding)
    }
}

/// Undoes a content coding (RFC 9110, section 8.4.1).
pub(crate) fn decoded(body: &Bytes, coding: &str) -> io::Result<Bytes> {
    match coding {
        "" => Ok(body.clone()),
        "zstd" => zstd::stream::decode_all(body.as_ref()).map(Bytes::from),
        "gzip" => {
            let mut plain = Vec::new();
            // Only the first member: clients that stop there have to see everything.
            GzDecoder::new(body.as_ref()).read_to_end(&mut plain)?;
            Ok(plain.into())
        }
        other => Err(io::Error::other(format!("{other} was not asked for"))),
    }
}
