//! Names of repositories and digests, which have grammars of their own.

use http::HeaderValue;
use model::{CatalogName, Sha256};
use reader::ReaderError;

use crate::{error::ApiError, rfc9110::decode};

/// Maximum length of a repository's name: with a host before it, most implementations take no more.
const REPOSITORY_NAME_MAX: usize = 255;

/// Returns the error of a path below `/v2/` without a route. The name of a repository elsewhere may have slashes, so such
/// paths are recognised by their ends.
pub(crate) fn unmatched(path: &str) -> ApiError {
    let mut parts = path.rsplitn(3, '/');
    let (Some(last), Some(kind), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return ApiError::UnknownPath;
    };
    let repository = match (kind, last) {
        ("tags", "list") | ("manifests" | "blobs" | "referrers", _) => rest,
        ("uploads", _) => match rest.strip_suffix("/blobs") {
            Some(repository) => repository,
            None => return ApiError::UnknownPath,
        },
        _ => return ApiError::UnknownPath,
    };
    check_repository(&decode(repository))
        .err()
        .unwrap_or(ApiError::UnknownPath)
}

/// Fails for all names but those of catalogs. A name that another registry could have is unknown here; others are invalid.
pub(super) fn check_repository(name: &str) -> Result<(), ApiError> {
    match name.parse::<CatalogName>() {
        Ok(_) => Ok(()),
        Err(_) if is_repository(name) => Err(ReaderError::UnknownCatalog(name.to_owned()).into()),
        Err(error) => Err(ReaderError::CatalogName(error).into()),
    }
}

/// True for names that fit the grammar of the specification ("Pulling manifests"). Repeated separators pass too.
fn is_repository(name: &str) -> bool {
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_component = |part: &str| {
        let bytes = part.as_bytes();
        bytes.iter().all(|byte| alphanumeric(byte) || b"._-".contains(byte))
            && bytes.first().is_some_and(alphanumeric)
            && bytes.last().is_some_and(alphanumeric)
    };
    name.len() <= REPOSITORY_NAME_MAX && name.split('/').all(is_component)
}

/// Parses a digest (OCI image specification, "Digests"). Returns `None` for a well-formed digest of another algorithm:
/// nothing here has one.
pub(super) fn digest(text: &str) -> Result<Option<Sha256>, ApiError> {
    let malformed = || ApiError::Digest(text.to_owned());
    let (algorithm, encoded) = text.split_once(':').ok_or_else(malformed)?;
    // Only lower-case hex: the specification allows no other form of a sha256.
    if algorithm == "sha256" {
        return encoded.parse().map(Some).map_err(|_| malformed());
    }
    let separated = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"=_-".contains(&byte);
    let well_formed =
        algorithm.split(['+', '.', '_', '-']).all(separated) && !encoded.is_empty() && encoded.bytes().all(known);
    if well_formed { Ok(None) } else { Err(malformed()) }
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

    /// Returns the page of the sorted `names`, and true if more follow.
    pub(super) fn cut(&self, names: impl Iterator<Item = String>) -> (Vec<String>, bool) {
        let mut rest = names.skip_while(|name| *name <= self.last);
        let page = rest.by_ref().take(self.n.unwrap_or(usize::MAX)).collect();
        (page, self.n.is_some() && rest.next().is_some())
    }

    /// Returns the `Link` field (RFC 8288) to the page after `last`. An empty page has none: it would lead to itself.
    pub(super) fn next(&self, path: &str, last: Option<&String>) -> Option<HeaderValue> {
        let (n, last) = (self.n?, last?);
        let link = format!("<{path}?n={n}&last={last}>; rel=\"next\"");
        Some(HeaderValue::try_from(link).expect("names and tags are visible ASCII"))
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
    fn unmatched_tells_unknown_from_invalid_names() {
        for path in [
            "ns/demo/tags/list",
            "ns%2Fdemo/manifests/latest",
            "ns/demo/blobs/uploads/1",
            "a_b/blobs/uploads/",
        ] {
            let error = unmatched(path);
            assert!(
                matches!(error, ApiError::State(ReaderError::UnknownCatalog(_))),
                "{path}"
            );
        }
        for path in [
            "Demo/tags/list",
            "/tags/list",
            "../demo/manifests/latest",
            "..%2f..%2fetc/manifests/passwd",
            "demo%00/tags/list",
            "demo//tags/list",
        ] {
            let error = unmatched(path);
            assert!(matches!(error, ApiError::State(ReaderError::CatalogName(_))), "{path}");
        }
        for path in [
            "demo",
            "demo/",
            "demo/tags",
            "demo/tags/list/",
            "demo/manifests",
            "demo/uploads/x",
            "_catalog/",
        ] {
            assert!(matches!(unmatched(path), ApiError::UnknownPath), "{path}");
        }
    }

    #[rstest]
    #[case("sha256:")]
    #[case("sha256:E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855")]
    #[case("sha256:../../../../etc/passwd")]
    #[case("latest")]
    #[case("SHA512:ab")]
    #[case("a++b:c")]
    #[case(":c")]
    fn digest_refuses_other_texts(#[case] text: &str) {
        assert!(matches!(digest(text), Err(ApiError::Digest(_))), "{text}");
    }

    proptest::proptest! {
        #[test]
        fn unmatched_never_panics(path in "\\PC{0,20}/(blobs|manifests|tags|referrers|uploads)/\\PC{0,20}") {
            let _ = unmatched(&path);
        }
    }

    fn cut(query: &str) -> (String, bool) {
        let names = ["a", "b", "c", "d"].map(str::to_owned);
        let (page, more) = Page::parse(query).unwrap().cut(names.into_iter());
        (page.concat(), more)
    }

    #[rstest]
    #[case::all("", "abcd", false)]
    #[case::some("n=2", "ab", true)]
    #[case::the_next("n=2&last=b", "cd", false)]
    #[case::behind_what_is_gone("last=bb", "cd", false)]
    #[case::behind_the_end("n=1&last=x", "", false)]
    #[case::exactly_all("n=4", "abcd", false)]
    #[case::none("n=0", "", true)]
    #[case::huge("n=99999999999999999999999999", "abcd", false)]
    #[case::unknown("a=b&n&&last=c", "d", false)]
    fn cut_returns(#[case] query: &str, #[case] page: &str, #[case] more: bool) {
        assert_eq!(cut(query), (page.to_owned(), more));
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
        let page = Page::parse("n=2").unwrap();
        let link = page.next("/v2/_catalog", Some(&"b".to_owned())).unwrap();
        assert_eq!(link, "</v2/_catalog?n=2&last=b>; rel=\"next\"");
        assert_eq!(page.next("/v2/_catalog", None), None);
    }
}
