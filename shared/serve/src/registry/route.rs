use std::borrow::Cow;

use layout::{CatalogName, Sha256};

use super::Refusal;
use crate::{error::Error, fields::decode};

/// The longest name of a repository: with a host before it, most implementations take no more.
const NAME_MAX: usize = 255;

/// What a path below `/v2/` asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target<'a> {
    /// Whether this is a registry.
    Base,
    Repositories,
    Tags(Cow<'a, str>),
    /// By tag or digest.
    Manifest(Cow<'a, str>, Cow<'a, str>),
    /// By digest, if it is of the kind that there is.
    Blob(Cow<'a, str>, Option<Sha256>),
    Referrers(Cow<'a, str>),
    /// Where others begin or continue an upload.
    Upload(Cow<'a, str>),
}

impl<'a> Target<'a> {
    /// Reads what follows `/v2/`. The name of a repository may have slashes, so paths are told by their ends.
    pub(crate) fn parse(path: &'a str) -> Result<Self, Error> {
        match path {
            "" => return Ok(Self::Base),
            "_catalog" => return Ok(Self::Repositories),
            _ => {}
        }
        let mut parts = path.rsplitn(3, '/');
        let (Some(last), Some(kind), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(Error::UnknownPath);
        };
        match (kind, last) {
            ("tags", "list") => Ok(Self::Tags(name(rest)?)),
            ("manifests", reference) => Ok(Self::Manifest(name(rest)?, decode(reference))),
            ("blobs", "uploads") => Ok(Self::Upload(name(rest)?)),
            ("blobs", text) => Ok(Self::Blob(name(rest)?, digest(&decode(text))?)),
            ("referrers", text) => {
                let name = name(rest)?;
                digest(&decode(text))?;
                Ok(Self::Referrers(name))
            }
            ("uploads", _) => match rest.strip_suffix("/blobs") {
                Some(repository) => Ok(Self::Upload(name(repository)?)),
                None => Err(Error::UnknownPath),
            },
            _ => Err(Error::UnknownPath),
        }
    }
}

/// A name that another registry could have is unknown here; anything else is no name.
fn name(text: &str) -> Result<Cow<'_, str>, Error> {
    let name = decode(text);
    match name.parse::<CatalogName>() {
        Ok(_) => Ok(name),
        Err(_) if is_repository(&name) => Err(Error::UnknownCatalog(name.into_owned())),
        Err(error) => Err(Error::CatalogName(error)),
    }
}

/// The grammar of the specification ("Pulling manifests"), but for the rule that separators stand alone.
fn is_repository(name: &str) -> bool {
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_component = |part: &str| {
        let bytes = part.as_bytes();
        bytes.iter().all(|byte| alphanumeric(byte) || b"._-".contains(byte))
            && bytes.first().is_some_and(alphanumeric)
            && bytes.last().is_some_and(alphanumeric)
    };
    name.len() <= NAME_MAX && name.split('/').all(is_component)
}

/// A digest (OCI image specification, "Digests"); none if it is well formed but of an algorithm that nothing has here.
pub(super) fn digest(text: &str) -> Result<Option<Sha256>, Refusal> {
    let malformed = || Refusal::Digest(text.to_owned());
    let (algorithm, encoded) = text.split_once(':').ok_or_else(malformed)?;
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

    const HASH: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn every_path_of_the_specification_has_its_target() {
        let c = || Cow::Borrowed("v4.20");
        let digest = format!("sha256:{HASH}");
        for (path, target) in [
            ("", Target::Base),
            ("_catalog", Target::Repositories),
            ("v4.20/tags/list", Target::Tags(c())),
            ("v4%2e20/manifests/latest", Target::Manifest(c(), "latest".into())),
            (
                &format!("v4.20/manifests/{digest}"),
                Target::Manifest(c(), digest.as_str().into()),
            ),
            (
                &format!("v4.20/blobs/sha256%3A{HASH}"),
                Target::Blob(c(), HASH.parse().ok()),
            ),
            ("v4.20/blobs/sha512:ab", Target::Blob(c(), None)),
            (&format!("v4.20/referrers/{digest}"), Target::Referrers(c())),
            ("v4.20/blobs/uploads/", Target::Upload(c())),
            ("v4.20/blobs/uploads", Target::Upload(c())),
            ("v4.20/blobs/uploads/1-2", Target::Upload(c())),
            ("blobs/manifests/tags", Target::Manifest("blobs".into(), "tags".into())),
        ] {
            assert_eq!(Target::parse(path).unwrap(), target, "{path}");
        }
    }

    #[rstest]
    #[case("ns/demo/tags/list")]
    #[case("ns%2Fdemo/manifests/latest")]
    #[case("a_b/blobs/uploads/")]
    fn other_registries_could_have_it(#[case] path: &str) {
        assert!(matches!(Target::parse(path), Err(Error::UnknownCatalog(_))), "{path}");
    }

    #[rstest]
    #[case("Demo/tags/list")]
    #[case("/tags/list")]
    #[case("../demo/manifests/latest")]
    #[case("..%2f..%2fetc/manifests/passwd")]
    #[case("demo%00/tags/list")]
    #[case("demo//tags/list")]
    fn no_name_at_all(#[case] path: &str) {
        assert!(matches!(Target::parse(path), Err(Error::CatalogName(_))), "{path}");
    }

    #[rstest]
    #[case("demo")]
    #[case("demo/")]
    #[case("demo/tags")]
    #[case("demo/tags/list/")]
    #[case("demo/manifests")]
    #[case("demo/uploads/x")]
    #[case("_catalog/")]
    fn nothing_is_there(#[case] path: &str) {
        assert!(matches!(Target::parse(path), Err(Error::UnknownPath)), "{path}");
    }

    #[rstest]
    #[case("sha256:")]
    #[case("sha256:E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855")]
    #[case("sha256:../../../../etc/passwd")]
    #[case("latest")]
    #[case("SHA512:ab")]
    #[case("a++b:c")]
    #[case(":c")]
    fn no_digest(#[case] text: &str) {
        assert!(matches!(digest(text), Err(Refusal::Digest(_))), "{text}");
    }

    proptest::proptest! {
        #[test]
        fn never_panics(path in "\\PC{0,20}/(blobs|manifests|tags|referrers|uploads)/\\PC{0,20}") {
            let _ = Target::parse(&path);
        }
    }
}
