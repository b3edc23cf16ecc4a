use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use model::{ObjectDigest, Sha256};

use crate::{answer::Answer, violation::Violation};

/// Expected meaning of the entity tag of an answer.
#[derive(Debug, Clone)]
pub(crate) enum Expectation {
    /// The tag is the hash of the body.
    Body,
    /// The tag is the hash of the body, or, if the body is made on the fly, that of the decoded
    /// body with the coding.
    Content,
    /// The tag and the key of a stored object: the hash of its bytes, which another document names
    /// with its size.
    Object(ObjectDigest),
    /// The tag identifies a query, a content and a coding. The caller checks the answer;
    /// [`crate::history::History::remember`] checks that a tag always stands for the same bytes.
    Question,
    /// There is no tag, as on the page of metrics.
    Untagged,
}

/// Answer that meets its expectation.
#[derive(Debug)]
pub(crate) struct VerifiedAnswer {
    pub(crate) answer: Answer,
    /// Body without its content coding.
    pub(crate) plain: Bytes,
    /// Hash of the decoded body.
    pub(crate) hash: Sha256,
}

impl Expectation {
    pub(crate) fn check(&self, answer: Answer) -> Result<VerifiedAnswer, Violation> {
        let plain = answer.plain()?;
        let hash = Sha256::of(&plain);
        let body = ObjectDigest::of(&answer.body);
        let of_body = body.sha256.to_base64url();
        match self {
            Self::Untagged => {}
            Self::Question => drop(answer.tag()?),
            Self::Object(named) if body != *named => {
                let text =
                    |digest: &ObjectDigest| format!("{} of {} bytes", digest.sha256, digest.size);
                let (found, expected) = (text(&body), text(named));
                return Err(Violation::Hash { found, expected });
            }
            Self::Body | Self::Object(_) => has_tag(&answer, &[of_body])?,
            Self::Content => {
                let coding = answer.field(CONTENT_ENCODING);
                let suffix = if coding.is_empty() { "" } else { "-" };
                let made = format!("{}{suffix}{coding}", hash.to_base64url());
                has_tag(&answer, &[of_body, made])?;
            }
        }
        Ok(VerifiedAnswer {
            answer,
            plain,
            hash,
        })
    }
}

/// Checks that the entity tag is one of these.
fn has_tag(answer: &Answer, accepted: &[String]) -> Result<(), Violation> {
    let (found, expected) = (answer.tag()?.to_owned(), accepted.join(" or "));
    match accepted.contains(&found) {
        true => Ok(()),
        false => Err(Violation::Hash { found, expected }),
    }
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

    #[test]
    fn check_compares_the_tag_with_the_body_or_the_name() {
        let tag = &Sha256::of(b"lines").to_base64url();
        let zstd = &zstd::bulk::compress(b"lines", 1).unwrap()[..];
        let (coded, of_zstd) = (&format!("{tag}-zstd"), &Sha256::of(zstd).to_base64url());
        let (cut, stored) = (
            &zstd[..zstd.len() - 1],
            Expectation::Object(ObjectDigest::of(b"lines")),
        );
        for (expectation, tag, coding, body, expected) in [
            (&Expectation::Body, tag, "", &b"lines"[..], "fine"),
            (&Expectation::Body, tag, "", b"line", "hash"),
            (&Expectation::Content, tag, "", b"lines", "fine"),
            (&Expectation::Content, coded, "zstd", zstd, "fine"),
            (&Expectation::Content, tag, "zstd", zstd, "hash"),
            (&Expectation::Content, of_zstd, "zstd", zstd, "fine"),
            (&Expectation::Content, coded, "zstd", cut, "coding"),
            (
                &Expectation::Content,
                &format!("{tag}-br"),
                "br",
                b"lines",
                "coding",
            ),
            (&stored, tag, "", b"lines", "fine"),
            (&stored, tag, "", b"other", "hash"),
            (&stored, &"another".to_owned(), "", b"lines", "hash"),
        ] {
            let checked = expectation.check(answer(tag, coding, body));
            let label = checked.map_or_else(|violation| violation.label(), |_| "fine");
            assert_eq!(label, expected, "{expectation:?} {tag} {coding}");
        }
    }

    #[test]
    fn check_refuses_a_weak_tag() {
        let mut weak = answer("x", "", b"");
        weak.headers.insert(ETAG, "W/\"x\"".parse().unwrap());
        assert_eq!(
            Expectation::Question.check(weak).unwrap_err().label(),
            "tag"
        );
    }
}
