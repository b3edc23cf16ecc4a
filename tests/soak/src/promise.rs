use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use layout::{Sha256, Stored};

use crate::{answer::Answer, wrong::Wrong};

/// What an entity tag says of the bytes that it comes with.
#[derive(Debug, Clone)]
pub(crate) enum Promise {
    /// It is their hash.
    Body,
    /// It is the hash of what they decode to, and names the coding.
    Content,
    /// It is that of a key: a stored object whose size and hash somebody else named.
    Object { tag: String, stored: Option<Stored> },
    /// It names a question to a content and the coding of the answer: that the answer is right is for others to see, that
    /// it is always the same for [`crate::world::World::remember`].
    Question,
    /// There is none: the page of metrics.
    Untagged,
}

/// An answer that keeps its promise.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) answer: Answer,
    /// The body without its coding.
    pub(crate) plain: Bytes,
    /// The hash of that.
    pub(crate) hash: Sha256,
}

impl Promise {
    /// Of a stored object, whose tag is made of the hash in its key and a word.
    pub(crate) fn object(hash: Sha256, word: &str, stored: Option<Stored>) -> Self {
        Self::Object {
            tag: format!("{}{word}", hash.to_base64url()),
            stored,
        }
    }

    pub(crate) fn check(&self, answer: Answer) -> Result<Checked, Wrong> {
        let plain = answer.plain()?;
        let hash = Sha256::of(&plain);
        let expected = match self {
            Self::Body => Some(Sha256::of(&answer.body).to_base64url()),
            Self::Content => Some(format!(
                "{}{}",
                hash.to_base64url(),
                word(answer.field(CONTENT_ENCODING))
            )),
            Self::Object { tag, stored } => {
                stored.map_or(Ok(()), |stored| is_stored(&answer, stored))?;
                Some(tag.clone())
            }
            Self::Question => None,
            Self::Untagged => return Ok(Checked { answer, plain, hash }),
        };
        let found = answer.tag()?;
        match expected {
            Some(expected) if expected != found => Err(Wrong::Hash {
                found: found.to_owned(),
                expected,
            }),
            _ => Ok(Checked { answer, plain, hash }),
        }
    }
}

/// What tells the tags of one content in several codings apart.
fn word(coding: &str) -> String {
    match coding {
        "" => String::new(),
        coding => format!("-{coding}"),
    }
}

fn is_stored(answer: &Answer, stored: Stored) -> Result<(), Wrong> {
    let found = Stored {
        size: answer.body.len() as u64,
        sha256: Sha256::of(&answer.body),
    };
    if found == stored {
        return Ok(());
    }
    Err(Wrong::Hash {
        found: format!("{} of {} bytes", found.sha256, found.size),
        expected: format!("{} of {} bytes", stored.sha256, stored.size),
    })
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, StatusCode, header::ETAG};

    use super::*;

    fn answer(tag: &str, coding: &str, body: &[u8]) -> Answer {
        let mut headers = HeaderMap::new();
        headers.insert(ETAG, format!("\"{tag}\"").parse().unwrap());
        if !coding.is_empty() {
            headers.insert(CONTENT_ENCODING, coding.parse().unwrap());
        }
        Answer {
            status: StatusCode::OK,
            headers,
            body: Bytes::copy_from_slice(body),
        }
    }

    fn word(promise: &Promise, answer: Answer) -> &'static str {
        promise.check(answer).map_or_else(|wrong| wrong.word(), |_| "fine")
    }

    #[test]
    fn a_tag_is_of_the_bytes_that_it_comes_with() {
        let tag = Sha256::of(b"lines").to_base64url();
        let zstd = zstd::bulk::compress(b"lines", 1).unwrap();
        for (promise, tag, coding, body, expected) in [
            (Promise::Body, tag.clone(), "", &b"lines"[..], "fine"),
            (Promise::Body, tag.clone(), "", b"line", "hash"),
            (Promise::Content, tag.clone(), "", b"lines", "fine"),
            (Promise::Content, format!("{tag}-zstd"), "zstd", &zstd, "fine"),
            (Promise::Content, tag.clone(), "zstd", &zstd, "hash"),
            (
                Promise::Content,
                format!("{tag}-zstd"),
                "zstd",
                &zstd[..zstd.len() - 1],
                "coding",
            ),
            (Promise::Content, format!("{tag}-br"), "br", b"lines", "coding"),
        ] {
            assert_eq!(
                word(&promise, answer(&tag, coding, body)),
                expected,
                "{promise:?} {tag} {coding}"
            );
        }
    }

    #[test]
    fn a_stored_object_is_what_its_snapshot_says() {
        let stored = |bytes: &[u8]| Stored {
            size: bytes.len() as u64,
            sha256: Sha256::of(bytes),
        };
        let hash = Sha256::of(b"content");
        let promise = |bytes: &[u8]| Promise::object(hash, "-index", Some(stored(bytes)));
        let tag = format!("{}-index", hash.to_base64url());
        assert_eq!(word(&promise(b"index"), answer(&tag, "", b"index")), "fine");
        assert_eq!(word(&promise(b"other"), answer(&tag, "", b"index")), "hash");
        assert_eq!(word(&promise(b"index"), answer("another", "", b"index")), "hash");
    }

    #[test]
    fn a_weak_tag_is_none() {
        let mut weak = answer("x", "", b"");
        weak.headers.insert(ETAG, "W/\"x\"".parse().unwrap());
        assert_eq!(word(&Promise::Question, weak), "tag");
    }
}
