//! Names of repositories and digests, which have grammars of their own.

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

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("ns/demo/tags/list")]
    #[case("ns%2Fdemo/manifests/latest")]
    #[case("ns/demo/blobs/uploads/1")]
    #[case("a_b/blobs/uploads/")]
    fn unmatched_name_of_another_registry_is_an_unknown_catalog(#[case] path: &str) {
        assert!(
            matches!(unmatched(path), ApiError::State(ReaderError::UnknownCatalog(_))),
            "{path}"
        );
    }

    #[rstest]
    #[case("Demo/tags/list")]
    #[case("/tags/list")]
    #[case("../demo/manifests/latest")]
    #[case("..%2f..%2fetc/manifests/passwd")]
    #[case("demo%00/tags/list")]
    #[case("demo//tags/list")]
    fn unmatched_other_name_is_invalid(#[case] path: &str) {
        assert!(
            matches!(unmatched(path), ApiError::State(ReaderError::CatalogName(_))),
            "{path}"
        );
    }

    #[rstest]
    #[case("demo")]
    #[case("demo/")]
    #[case("demo/tags")]
    #[case("demo/tags/list/")]
    #[case("demo/manifests")]
    #[case("demo/uploads/x")]
    #[case("_catalog/")]
    fn unmatched_other_path_is_unknown(#[case] path: &str) {
        assert!(matches!(unmatched(path), ApiError::UnknownPath), "{path}");
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
}
