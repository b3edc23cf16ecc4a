use serde::Deserialize;

use crate::ImageName;

/// What the name in a signature has to be, given the name that is pulled (containers-policy.json(5), "signedIdentity"). Variants without fields have braces, as
/// unknown fields are passed over without.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", deny_unknown_fields)]
pub enum Identity {
    /// The same repository for a name with a digest, else the same repository and tag.
    MatchRepoDigestOrExact {},
    /// The same name, tag or digest included.
    MatchExact {},
    /// The same repository.
    MatchRepository {},
    /// This name.
    #[serde(rename_all = "camelCase")]
    ExactReference {
        /// With a tag or a digest.
        docker_reference: String,
    },
    /// Any image of this repository.
    #[serde(rename_all = "camelCase")]
    ExactRepository {
        /// Without tag and digest.
        docker_repository: String,
    },
    /// As `matchRepoDigestOrExact`, with another beginning of the name.
    #[serde(rename_all = "camelCase")]
    RemapIdentity {
        /// How the name that is pulled begins.
        prefix: String,
        /// How the signed name begins instead.
        signed_prefix: String,
    },
}

/// What counts where a policy does not say.
impl Default for Identity {
    fn default() -> Self {
        Self::MatchRepoDigestOrExact {}
    }
}

impl Identity {
    /// Whether a signature for `claimed` is one for `pulled`.
    pub(crate) fn fits(&self, pulled: &ImageName, claimed: &str) -> bool {
        let claimed = ImageName::parse(claimed);
        match self {
            Self::MatchRepoDigestOrExact {} => repo_digest_or_exact(pulled, &claimed),
            Self::MatchExact {} => exact(pulled, &claimed),
            Self::MatchRepository {} => pulled.repository == claimed.repository,
            Self::ExactReference { docker_reference } => exact(&ImageName::parse(docker_reference), &claimed),
            Self::ExactRepository { docker_repository } => {
                ImageName::parse(docker_repository).repository == claimed.repository
            }
            Self::RemapIdentity { prefix, signed_prefix } => {
                repo_digest_or_exact(&remap(pulled, prefix, signed_prefix), &claimed)
            }
        }
    }
}

fn repo_digest_or_exact(pulled: &ImageName, claimed: &ImageName) -> bool {
    match pulled.digest {
        Some(_) => pulled.repository == claimed.repository,
        None => exact(pulled, claimed),
    }
}

/// A name without tag and digest is never exact.
fn exact(wanted: &ImageName, claimed: &ImageName) -> bool {
    let is_whole = wanted.tag.is_some() || wanted.digest.is_some();
    is_whole && wanted == claimed
}

/// A prefix ends where a part of the name ends, or it is not one.
fn remap(pulled: &ImageName, prefix: &str, signed_prefix: &str) -> ImageName {
    let rest = pulled.repository.strip_prefix(prefix);
    match rest.filter(|rest| rest.is_empty() || rest.starts_with('/') || prefix.ends_with('/')) {
        Some(rest) => ImageName {
            repository: format!("{signed_prefix}{rest}"),
            ..pulled.clone()
        },
        None => pulled.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(text: &str) -> Identity {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn each_type_fits_what_the_manual_says() {
        let tagged = "quay.io/ns/cat:v1";
        let pinned = "quay.io/ns/cat@sha256:00";
        let repository = "quay.io/ns/cat";
        let other = "quay.io/ns/cat:v2";
        let foreign = "quay.io/evil/cat:v1";
        let exact_reference = r#"{"type":"exactReference","dockerReference":"quay.io/ns/cat:v2"}"#;
        let exact_repository = r#"{"type":"exactRepository","dockerRepository":"quay.io/ns/cat"}"#;
        let remap = r#"{"type":"remapIdentity","prefix":"mirror.lab/quay","signedPrefix":"quay.io"}"#;
        for (kind, pulled, fitting, unfitting) in [
            (
                r#"{"type":"matchRepoDigestOrExact"}"#,
                tagged,
                &[tagged][..],
                &[other, repository, pinned, foreign][..],
            ),
            (
                r#"{"type":"matchRepoDigestOrExact"}"#,
                pinned,
                &[tagged, other, repository, pinned],
                &[foreign],
            ),
            (
                r#"{"type":"matchExact"}"#,
                tagged,
                &[tagged],
                &[other, repository, foreign],
            ),
            (r#"{"type":"matchExact"}"#, pinned, &[pinned], &[tagged, repository]),
            (
                r#"{"type":"matchRepository"}"#,
                tagged,
                &[tagged, other, repository, pinned],
                &[foreign],
            ),
            (
                exact_reference,
                "mirror.lab/x:v9",
                &[other],
                &[tagged, repository, foreign],
            ),
            (
                exact_repository,
                "mirror.lab/x:v9",
                &[tagged, other, repository],
                &[foreign],
            ),
            (remap, "mirror.lab/quay/ns/cat:v1", &[tagged], &[other, foreign]),
            (remap, tagged, &[tagged], &["mirror.lab/quay/ns/cat:v1"]),
            (
                remap,
                "mirror.lab/quayside/ns/cat:v1",
                &["mirror.lab/quayside/ns/cat:v1"],
                &[tagged],
            ),
        ] {
            let pulled = ImageName::parse(pulled);
            for claimed in fitting {
                assert!(identity(kind).fits(&pulled, claimed), "{kind} {pulled} {claimed}");
            }
            for claimed in unfitting {
                assert!(!identity(kind).fits(&pulled, claimed), "{kind} {pulled} {claimed}");
            }
        }
    }

    #[test]
    fn an_unknown_type_or_field_is_an_error() {
        for text in [
            "{}",
            r#"{"type":"matchWhatever"}"#,
            r#"{"type":"matchExact","more":1}"#,
            r#"{"type":"exactReference"}"#,
        ] {
            assert!(serde_json::from_str::<Identity>(text).is_err(), "{text}");
        }
    }
}
