//! Errors of unknown paths, digests and pages.

use http::{HeaderValue, Method};
use model::Sha256;
use reader::ReaderError;

use crate::{error::ApiError, rfc9110::decode, router::is_read};

/// Returns the error of a path below `/v2/` without a route. Pushing clients ask for several, and should learn that nothing can be
/// pushed. The name of a repository elsewhere may have slashes; here such a repository is unknown.
pub(crate) fn unmatched(method: &Method, path: &str) -> ApiError {
    if !is_read(method) {
        return ApiError::Method;
    }
    match path.rsplitn(3, '/').nth(2) {
        Some(repository) => ReaderError::UnknownCatalog(decode(repository).into_owned()).into(),
        None => ApiError::UnknownPath,
    }
}

/// Parses a digest (OCI image specification, "Digests"). Other algorithms are unsupported, since nothing here has one, and only
/// lower-case hex is a sha256.
pub(super) fn digest(text: &str) -> Result<Sha256, ApiError> {
    let hash = text.strip_prefix("sha256:").and_then(|hex| hex.parse().ok());
    hash.ok_or_else(|| ApiError::Digest(text.to_owned()))
}

/// A page of a sorted list (OCI distribution specification, "Listing Tags").
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Page {
    /// Maximum number of results; all of them by default.
    n: Option<usize>,
    /// Result after which the page starts; empty for the first page.
    last: String,
}

impl Page {
    /// Reads the query component of a URL. Unknown parameters are ignored, as other registries do.
    pub(super) fn parse(query: &str) -> Result<Self, ApiError> {
        let mut page = Self::default();
        for pair in query.split('&') {
            match pair.split_once('=') {
                Some(("n", n)) => page.n = Some(number(&decode(n))?),
                Some(("last", last)) => page.last = decode(last).into_owned(),
                _ => {}
            }
        }
        Ok(page)
    }

    /// Returns the page of the sorted `names` that are at `path`, and the `Link` field (RFC 8288) to the next page if more follow. An
    /// empty page has none: it would lead to itself.
    pub(super) fn cut(&self, path: &str, names: impl Iterator<Item = String>) -> (Vec<String>, Option<HeaderValue>) {
        let mut rest = names.skip_while(|name| *name <= self.last);
        let page: Vec<String> = rest.by_ref().take(self.n.unwrap_or(usize::MAX)).collect();
        let last = page.last().filter(|_| rest.next().is_some());
        let link = self.n.zip(last).map(|(n, last)| {
            let link = format!("<{path}?n={n}&last={last}>; rel=\"next\"");
            HeaderValue::try_from(link).expect("names and tags are visible ASCII")
        });
        (page, link)
    }
}

/// Parses a number of results. A number above the range of integers means all.
fn number(text: &str) -> Result<usize, ApiError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ApiError::Page(text.to_owned()));
    }
    Ok(text.parse().unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::all("", "abcd", None)]
    #[case::some("n=2", "ab", Some("</v2/_catalog?n=2&last=b>; rel=\"next\""))]
    #[case::the_next("n=2&last=b", "cd", None)]
    #[case::behind_what_is_gone("last=bb", "cd", None)]
    #[case::behind_the_end("n=1&last=x", "", None)]
    #[case::exactly_all("n=4", "abcd", None)]
    #[case::none("n=0", "", None)]
    #[case::huge("n=99999999999999999999999999", "abcd", None)]
    #[case::unknown("a=b&n&&last=c", "d", None)]
    fn cut_returns(#[case] query: &str, #[case] expected: &str, #[case] next: Option<&str>) {
        let names = ["a", "b", "c", "d"].map(str::to_owned);
        let (page, link) = Page::parse(query).unwrap().cut("/v2/_catalog", names.into_iter());
        assert_eq!(
            (page.concat().as_str(), link),
            (expected, next.map(|link| link.parse().unwrap()))
        );
    }
}
