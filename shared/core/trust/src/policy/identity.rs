use model::ImageReference;
use serde::Deserialize;

/// Rule for the name in a signature, given the pulled name (containers-policy.json(5),
/// "signedIdentity").
// Variants without fields have braces, because serde ignores unknown fields of unit variants.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", deny_unknown_fields)]
pub enum IdentityRule {
    /// Requires the pulled repository, and the pulled tag unless the name is pinned to a digest.
    MatchRepoDigestOrExact {},
    /// Requires the pulled name with its tag or digest.
    MatchExact {},
    /// Requires the pulled repository, with any tag or digest.
    MatchRepository {},
    /// Requires this name with its tag or digest.
    #[serde(rename_all = "camelCase")]
    ExactReference {
        /// Image name with a tag or a digest.
        docker_reference: String,
    },
    /// Requires this repository, with any tag or digest.
    #[serde(rename_all = "camelCase")]
    ExactRepository {
        /// Name of the repository, without tag and digest.
        docker_repository: String,
    },
    /// Like `matchRepoDigestOrExact`, after replacing a prefix of the pulled name.
    #[serde(rename_all = "camelCase")]
    RemapIdentity {
        /// Prefix of the pulled name, replaced by `signed_prefix`.
        prefix: String,
        /// Prefix of the signed name, which takes the place of `prefix`.
        signed_prefix: String,
    },
}

/// Rule that containers/image uses if a policy names none.
impl Default for IdentityRule {
    fn default() -> Self {
        Self::MatchRepoDigestOrExact {}
    }
}

impl IdentityRule {
    /// Returns true if a signature for the name `claimed` is valid for `pulled`.
    pub(crate) fn accepts(&self, pulled: &ImageReference, claimed: &str) -> bool {
        let claimed = ImageReference::as_written(claimed);
        match self {
            Self::MatchRepoDigestOrExact {} => repo_digest_or_exact(pulled, &claimed),
            Self::MatchExact {} => exact(pulled, &claimed),
            Self::MatchRepository {} => pulled.name() == claimed.name(),
            Self::ExactReference { docker_reference } => {
                exact(&ImageReference::as_written(docker_reference), &claimed)
            }
            Self::ExactRepository { docker_repository } => {
                ImageReference::as_written(docker_repository).name() == claimed.name()
            }
            Self::RemapIdentity {
                prefix,
                signed_prefix,
            } => repo_digest_or_exact(&remap(pulled, prefix, signed_prefix), &claimed),
        }
    }
}

fn repo_digest_or_exact(pulled: &ImageReference, claimed: &ImageReference) -> bool {
    match pulled.digest {
        Some(_) => pulled.name() == claimed.name(),
        None => exact(pulled, claimed),
    }
}

/// Returns true if both names are equal. A name without tag and digest never is.
fn exact(wanted: &ImageReference, claimed: &ImageReference) -> bool {
    let is_whole = wanted.tag.is_some() || wanted.digest.is_some();
    is_whole && wanted == claimed
}

/// Replaces a prefix of the pulled repository. The prefix must end at a component of the name.
fn remap(pulled: &ImageReference, prefix: &str, signed_prefix: &str) -> ImageReference {
    let name = pulled.name();
    let rest = name.strip_prefix(prefix);
    // At a component: the prefix `host/team` must not fit `host/team-of-others`.
    match rest.filter(|rest| rest.is_empty() || rest.starts_with('/') || prefix.ends_with('/')) {
        Some(rest) => {
            let name = format!("{signed_prefix}{rest}");
            // As it is: a short prefix must not become a name of Docker Hub.
            let (registry, repository) = name.split_once('/').unwrap_or((&name, ""));
            ImageReference {
                registry: registry.to_owned(),
                repository: repository.to_owned(),
                ..pulled.clone()
            }
        }
        None => pulled.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_accepts_the_names_of_the_manual() {
        let tagged = "quay.io/ns/cat:v1";
        let pinned = "quay.io/ns/cat@sha256:00";
        let repository = "quay.io/ns/cat";
        let other = "quay.io/ns/cat:v2";
        let foreign = "quay.io/evil/cat:v1";
        let exact_reference = r#"{"type":"exactReference","dockerReference":"quay.io/ns/cat:v2"}"#;
        let exact_repository = r#"{"type":"exactRepository","dockerRepository":"quay.io/ns/cat"}"#;
        let remap =
            r#"{"type":"remapIdentity","prefix":"mirror.lab/quay","signedPrefix":"quay.io"}"#;
        let digest_or_exact = r#"{"type":"matchRepoDigestOrExact"}"#;
        let exact = r#"{"type":"matchExact"}"#;
        let same_repository = r#"{"type":"matchRepository"}"#;
        let (mirror, beside) = ("mirror.lab/quay/ns/cat:v1", "mirror.lab/quayside/ns/cat:v1");
        let of_repository = [tagged, other, repository, pinned];
        let all = [&of_repository[..], &[foreign, mirror, beside]].concat();
        for (kind, pulled, accepted) in [
            (digest_or_exact, tagged, &[tagged][..]),
            (digest_or_exact, pinned, &of_repository),
            (exact, tagged, &[tagged]),
            (exact, pinned, &[pinned]),
            (same_repository, tagged, &of_repository),
            (exact_reference, mirror, &[other]),
            (exact_repository, mirror, &of_repository),
            (remap, mirror, &[tagged]),
            (remap, tagged, &[tagged]),
            (remap, beside, &[beside]),
        ] {
            let reference = ImageReference::as_written(pulled);
            let rule: IdentityRule = serde_json::from_str(kind).unwrap();
            let found = all
                .iter()
                .filter(|claimed| rule.accepts(&reference, claimed));
            assert_eq!(Vec::from_iter(found.copied()), accepted, "{kind} {pulled}");
        }
    }

    #[test]
    fn unknown_type_or_field_is_refused() {
        for text in [
            "{}",
            r#"{"type":"matchWhatever"}"#,
            r#"{"type":"matchExact","more":1}"#,
            r#"{"type":"exactReference"}"#,
        ] {
            assert!(
                serde_json::from_str::<IdentityRule>(text).is_err(),
                "{text}"
            );
        }
    }
}
