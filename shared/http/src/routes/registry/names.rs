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

    #[test]
    fn unmatched_tells_pushes_repositories_and_other_paths_apart() {
        for path in ["ns/demo/tags/list", "demo/blobs/uploads/", "demo//tags/list"] {
            let error = unmatched(&Method::GET, path);
            assert!(
                matches!(error, ApiError::State(ReaderError::UnknownCatalog(_))),
                "{path}"
            );
            assert!(matches!(unmatched(&Method::POST, path), ApiError::Method), "{path}");
        }
        for path in ["demo", "demo/tags", "_catalog/"] {
            assert!(matches!(unmatched(&Method::GET, path), ApiError::UnknownPath), "{path}");
        }
    }

    #[rstest]
    #[case("sha256:")]
    #[case("sha256:E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855")]
    #[case("sha256:../../../../etc/passwd")]
    #[case("latest")]
    #[case("sha512:ab")]
    fn digest_refuses_other_texts(#[case] text: &str) {
        assert!(matches!(digest(text), Err(ApiError::Digest(_))), "{text}");
    }

    fn cut(query: &str) -> (String, Option<HeaderValue>) {
        let names = ["a", "b", "c", "d"].map(str::to_owned);
        let (page, next) = Page::parse(query).unwrap().cut("/v2/_catalog", names.into_iter());
        (page.concat(), next)
    }

    #[rstest]
    #[case::all("", "abcd", false)]
    #[case::some("n=2", "ab", true)]
    #[case::the_next("n=2&last=b", "cd", false)]
    #[case::behind_what_is_gone("last=bb", "cd", false)]
    #[case::behind_the_end("n=1&last=x", "", false)]
    #[case::exactly_all("n=4", "abcd", false)]
    #[case::none("n=0", "", false)]
    #[case::huge("n=99999999999999999999999999", "abcd", false)]
    #[case::unknown("a=b&n&&last=c", "d", false)]
    fn cut_returns(#[case] query: &str, #[case] page: &str, #[case] more: bool) {
        let (found, next) = cut(query);
        assert_eq!((found.as_str(), next.is_some()), (page, more));
    }

    #[rstest]
    #[case("n=")]
    #[case("n=-1")]
    #[case("n=1e3")]
    #[case("n=%31x")]
    fn parse_refuses_other_numbers(#[case] query: &str) {
        assert!(matches!(Page::parse(query), Err(ApiError::Page(_))));
    }

    #[test]
    fn next_links_to_the_page_after_the_last_result() {
        let (_, link) = cut("n=2");
        assert_eq!(link.unwrap(), "</v2/_catalog?n=2&last=b>; rel=\"next\"");
    }
}
