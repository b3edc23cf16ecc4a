//! Further requests for a target whose answer is known: conditions, HEAD and ranges.

use http::header::{
    ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_NONE_MATCH, IF_RANGE, RANGE,
};
use http::{Method, StatusCode};
use model::Sha256;

use crate::answer::Answer;
use crate::client::{CheckedRequest, Client};
use crate::connection::RequestSpec;
use crate::expectation::VerifiedAnswer;
use crate::violation::{Violation, equal};

impl Client {
    /// Sometimes sends another request for the same target.
    pub(crate) async fn recheck(&mut self, wanted: &CheckedRequest, checked: &VerifiedAnswer) -> Result<(), Violation> {
        match rand::random_range(0..12) {
            0 | 1 => self.conditional(wanted, checked).await,
            2 => self.head(wanted, checked).await,
            3 if checked.answer.field(ACCEPT_RANGES) == "bytes" => self.range(wanted, checked).await,
            4 if checked.answer.field(ACCEPT_RANGES) == "bytes" => self.beyond(wanted, checked).await,
            _ => Ok(()),
        }
    }

    /// Expects 304 without a body, or another state (RFC 9110, section 13.1.2).
    async fn conditional(&mut self, wanted: &CheckedRequest, checked: &VerifiedAnswer) -> Result<(), Violation> {
        let tag = checked.answer.field(ETAG);
        let answer = self.ask(wanted.route, &wanted.ask().with(IF_NONE_MATCH, tag)).await?;
        match answer.status {
            StatusCode::NOT_MODIFIED => {
                equal("the tag of a 304", &answer.field(ETAG), &tag)?;
                self.fine(wanted);
            }
            _ if answer.is_gone() => {}
            _ => {
                let again = self.check(wanted, answer)?;
                differs(again.answer.field(ETAG), tag)?;
            }
        }
        Ok(())
    }

    /// Expects the header fields of GET (RFC 9110, section 9.3.2), unless the state has changed.
    async fn head(&mut self, wanted: &CheckedRequest, checked: &VerifiedAnswer) -> Result<(), Violation> {
        let ask = RequestSpec {
            method: Method::HEAD,
            ..wanted.ask()
        };
        let answer = self.ask(wanted.route, &ask).await?;
        if answer.is_gone() {
            return Ok(());
        }
        answer.must_be(StatusCode::OK)?;
        if answer.tag()? == checked.answer.tag()? {
            for name in [CONTENT_TYPE, CONTENT_ENCODING] {
                let expected = checked.answer.field(name.clone());
                equal("a field of HEAD", &answer.field(name), &expected)?;
            }
            if let (Some(found), Some(expected)) = (answer.length(), checked.answer.length()) {
                equal("the length that HEAD tells", &found, &expected)?;
            }
        }
        self.fine(wanted);
        Ok(())
    }

    /// Expects a part of the same body, or all of another one (RFC 9110, section 13.1.5).
    async fn range(&mut self, wanted: &CheckedRequest, checked: &VerifiedAnswer) -> Result<(), Violation> {
        let body = &checked.answer.body;
        if body.is_empty() {
            return Ok(());
        }
        let first = rand::random_range(0..body.len());
        let last = rand::random_range(first..body.len());
        let Some(answer) = self.part(wanted, checked, &format!("bytes={first}-{last}")).await? else {
            return Ok(());
        };
        answer.must_be(StatusCode::PARTIAL_CONTENT)?;
        let expected = format!("bytes {first}-{last}/{}", body.len());
        equal("the range", &answer.field(CONTENT_RANGE), &expected.as_str())?;
        let (found, expected) = (Sha256::of(&answer.body), Sha256::of(&body[first..=last]));
        equal("the hash of a part", &found, &expected)?;
        self.fine(wanted);
        Ok(())
    }

    /// Expects 416 for a range behind the end (RFC 9110, section 15.5.17).
    async fn beyond(&mut self, wanted: &CheckedRequest, checked: &VerifiedAnswer) -> Result<(), Violation> {
        let length = checked.answer.body.len();
        if let Some(answer) = self.part(wanted, checked, &format!("bytes={length}-")).await? {
            answer.must_be(StatusCode::RANGE_NOT_SATISFIABLE)?;
            let expected = format!("bytes */{length}");
            equal("the range", &answer.field(CONTENT_RANGE), &expected.as_str())?;
            self.fine(wanted);
        }
        Ok(())
    }

    /// Requests a range. Returns `None` if the state has changed.
    async fn part(
        &mut self,
        wanted: &CheckedRequest,
        checked: &VerifiedAnswer,
        range: &str,
    ) -> Result<Option<Answer>, Violation> {
        let tag = checked.answer.field(ETAG);
        let ask = wanted.ask().with(RANGE, range).with(IF_RANGE, tag);
        let answer = self.ask(wanted.route, &ask).await?;
        match answer.status {
            _ if answer.is_gone() => Ok(None),
            StatusCode::OK => {
                let again = self.check(wanted, answer)?;
                differs(again.answer.field(ETAG), tag).map(|()| None)
            }
            _ => Ok(Some(answer)),
        }
    }
}

/// Checks that the entity tag has changed.
fn differs(found: &str, before: &str) -> Result<(), Violation> {
    if found == before {
        return Err(Violation::Differs {
            what: "the status for an unchanged tag",
            found: "200".into(),
            expected: "304, 206 or 416".into(),
        });
    }
    Ok(())
}
