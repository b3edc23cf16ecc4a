//! Further requests for a target whose answer is known: conditions, HEAD and ranges.

use http::header::{
    ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_NONE_MATCH, IF_RANGE,
    RANGE,
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
    pub(crate) async fn recheck(
        &mut self,
        wanted: &CheckedRequest,
        checked: &VerifiedAnswer,
    ) -> Result<(), Violation> {
        match rand::random_range(0..12) {
            0 | 1 => self.conditional(wanted, checked).await,
            2 => self.head(wanted, checked).await,
            3 | 4 if checked.answer.field(ACCEPT_RANGES) == "bytes" => {
                self.range(wanted, checked).await
            }
            _ => Ok(()),
        }
    }

    /// Expects 304 without a body, or another state (RFC 9110, section 13.1.2).
    async fn conditional(
        &mut self,
        wanted: &CheckedRequest,
        checked: &VerifiedAnswer,
    ) -> Result<(), Violation> {
        let tag = checked.answer.field(ETAG);
        let answer = self
            .ask(wanted.route, &wanted.ask().with(IF_NONE_MATCH, tag))
            .await?;
        match answer.status {
            StatusCode::NOT_MODIFIED => {
                equal("the tag of a 304", &answer.field(ETAG), &tag)?;
                self.fine(wanted);
            }
            _ if answer.is_gone() => {}
            _ => self.has_changed(wanted, answer, tag)?,
        }
        Ok(())
    }

    /// Expects the header fields of GET (RFC 9110, section 9.3.2), unless the state has changed.
    async fn head(
        &mut self,
        wanted: &CheckedRequest,
        checked: &VerifiedAnswer,
    ) -> Result<(), Violation> {
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
    async fn range(
        &mut self,
        wanted: &CheckedRequest,
        checked: &VerifiedAnswer,
    ) -> Result<(), Violation> {
        let body = &checked.answer.body;
        if body.is_empty() {
            return Ok(());
        }
        let first = rand::random_range(0..body.len());
        let last = rand::random_range(first..body.len());
        let tag = checked.answer.field(ETAG);
        let ask = wanted.ask().with(RANGE, &format!("bytes={first}-{last}"));
        let answer = self.ask(wanted.route, &ask.with(IF_RANGE, tag)).await?;
        match answer.status {
            _ if answer.is_gone() => return Ok(()),
            StatusCode::OK => return self.has_changed(wanted, answer, tag),
            _ => answer.must_be(StatusCode::PARTIAL_CONTENT)?,
        }
        let expected = format!("bytes {first}-{last}/{}", body.len());
        equal(
            "the range",
            &answer.field(CONTENT_RANGE),
            &expected.as_str(),
        )?;
        let (found, expected) = (Sha256::of(&answer.body), Sha256::of(&body[first..=last]));
        equal("the hash of a part", &found, &expected)?;
        self.fine(wanted);
        Ok(())
    }

    /// Checks an answer with 200, which must be of another state: for that of `tag` the status is
    /// 304 or 206.
    fn has_changed(
        &self,
        wanted: &CheckedRequest,
        answer: Answer,
        tag: &str,
    ) -> Result<(), Violation> {
        let again = self.check(wanted, answer)?;
        let is_same = again.answer.field(ETAG) == tag;
        equal(
            "that the status is 200 for an unchanged tag",
            &is_same,
            &false,
        )
    }
}
