//! Keys of publications, and rules for the signatures of images.

use std::{fs, path::Path};

use model::ImageReference;
use publish::Catalog;
use serde::Deserialize;
use serde_json::Value;
use source::{Lookaside, LookasideError, Source};
use trust::policy::{KeySources, KeyringReader, Policy};
use trust::{PublicKey, Signer, SigningKey, Trust};

use super::section::Section;
use crate::problems::Problems;

/// First characters of a PEM text in the configuration itself (RFC 7468, section 2). Other texts
/// are paths.
const PEM: &str = "-----BEGIN";

/// Keys for publications: of their signatures, and of those that are trusted.
#[derive(Debug, Clone, Default)]
pub struct ConfigKeys {
    /// Private keys. Each of them signs every publication.
    pub signing: Vec<SigningKey>,
    /// Public keys that are trusted in addition to those of [`Self::signing`].
    pub trusted: Vec<PublicKey>,
}

impl ConfigKeys {
    /// Returns the signer of publications, or `None` without a private key.
    pub fn signer(&self) -> Option<Signer> {
        if self.signing.is_empty() {
            return None;
        }
        Some(Signer::new(self.signing.clone(), self.trusted.clone()))
    }

    /// Returns the keys of which one must have signed a publication, or `None` if signatures are
    /// not checked.
    ///
    /// A mirror that signs trusts its own signatures.
    pub fn trust(&self) -> Option<Trust> {
        if self.trusted.is_empty() {
            return None;
        }
        let mut keys = self.trusted.clone();
        keys.extend(self.signing.iter().map(SigningKey::public));
        Some(Trust::new(keys))
    }
}

/// Value of `signature` that exempts a catalog from the rule for all. `policy.json` has the same
/// word.
const ANYTHING: &str = "insecureAcceptAnything";

/// A rule that is not parsed yet, and the place where it is configured.
#[derive(Debug, Clone)]
pub(crate) struct PlacedRule {
    place: String,
    rule: Value,
}

/// Settings for reading keys.
#[derive(Clone, Copy, Default)]
pub(crate) struct KeyContext {
    /// True if paths are refused, as in a Lambda function.
    pub(crate) no_files: bool,
    /// Parser of OpenPGP keys, if the program has one.
    pub(crate) keyrings: Option<KeyringReader>,
}

/// A rule: either cosign keys or a `policy.json`.
#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a mapping with cosign or policy, or insecureAcceptAnything"
)]
struct SignatureRule {
    cosign: Option<CosignKeys>,
    /// Path of a `policy.json` of containers/image.
    policy: Option<String>,
    /// URL under which simple signatures are stored, if the registry does not have them.
    lookaside: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a mapping with keys")]
struct CosignKeys {
    /// Public keys: paths of PEM files, or PEM texts.
    keys: Vec<String>,
}

impl PlacedRule {
    /// Takes the field `signature` of a section.
    pub(crate) fn read(section: &mut Section) -> Option<Self> {
        let rule = section.value("signature")?;
        let place = section.place_of("signature");
        Some(Self { place, rule })
    }

    /// Sets the policy of every source of a catalog.
    pub(crate) fn apply(&self, catalog: &mut Catalog, keys: KeyContext, problems: &Problems) {
        let name = &catalog.name;
        for pulled in catalog.source.pulled_sources_mut() {
            match keys.policy(&self.rule, &pulled.source) {
                Ok(Some(rule)) => {
                    pulled.policy = Some(rule.policy);
                    pulled.lookaside = rule.lookaside;
                }
                Ok(None) => {}
                Err(problem) => {
                    problems.add(&self.place, format!("for the catalog {name}: {problem}"));
                }
            }
        }
    }
}

struct SourcePolicy {
    policy: Policy,
    /// Place of simple signatures, if the registry does not have them.
    lookaside: Option<Lookaside>,
}

impl KeyContext {
    /// Reads a private key, which is a path: a configuration is no secret.
    pub(crate) fn signing_key(self, text: &str) -> Result<SigningKey, String> {
        if text.starts_with(PEM) {
            let problem = "a private key must not be part of the configuration: name its file";
            return Err(problem.to_owned());
        }
        SigningKey::from_pem(&self.read(text)?).map_err(|error| format!("{text}: {error}"))
    }

    /// Returns the keys of a file or of a PEM text.
    pub(crate) fn public_keys(self, text: &str) -> Result<Vec<PublicKey>, String> {
        if text.starts_with(PEM) {
            return PublicKey::from_pem(text.as_bytes()).map_err(|error| error.to_string());
        }
        PublicKey::from_pem(&self.read(text)?).map_err(|error| format!("{text}: {error}"))
    }

    fn read(self, path: &str) -> Result<Vec<u8>, String> {
        if self.no_files {
            // Without the text, which may be a key.
            let problem = "files are not read here: write public keys as PEM texts, those of images as cosign.keys";
            return Err(problem.to_owned());
        }
        fs::read(path).map_err(|error| format!("{path} cannot be read: {error}"))
    }

    /// Returns the policy of a source, or `None` if it is exempted.
    fn policy(self, rule: &Value, source: &Source) -> Result<Option<SourcePolicy>, String> {
        if rule.as_str() == Some(ANYTHING) {
            return Ok(None);
        }
        let rule = SignatureRule::deserialize(rule).map_err(|error| error.to_string())?;
        // Only registries store signatures. To publish another source silently would defeat the
        // rule.
        let Source::Registry { reference, .. } = source else {
            return Err(format!(
                "the source {source} is not in a registry, so it has no signatures: \
                 write `signature: {ANYTHING}` for this catalog to publish it without"
            ));
        };
        let image = ImageReference::as_written(&reference.whole());
        match (rule.cosign, rule.policy, rule.lookaside) {
            (Some(cosign), None, None) => {
                let mut keys = Vec::new();
                for key in &cosign.keys {
                    keys.extend(self.public_keys(key)?);
                }
                if keys.is_empty() {
                    return Err("cosign.keys is empty".to_owned());
                }
                Ok(Some(SourcePolicy {
                    policy: Policy::cosign(image, keys),
                    lookaside: None,
                }))
            }
            (None, Some(path), lookaside) => {
                let files = KeySources {
                    read: &|path: &Path| fs::read(path),
                    keyrings: self.keyrings,
                };
                let policy = Policy::containers(image, &self.read(&path)?, &files)
                    .map_err(|error| format!("{path}: {}", model::text::chain(&error)))?;
                let lookaside = lookaside
                    .map(|text| text.parse())
                    .transpose()
                    .map_err(|error: LookasideError| error.to_string())?;
                if policy.needs_simple() && lookaside.is_none() {
                    let problem = "the policy requires simple signatures, so lookaside must be set";
                    return Err(problem.to_owned());
                }
                Ok(Some(SourcePolicy { policy, lookaside }))
            }
            _ => Err("set one of cosign and policy; lookaside is only for policy".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::tests::{check_problems, load};
    use crate::ConfigLoader;

    /// The verification of signatures must not end because a variable of a template is empty.
    const WRONG_KEYS: &str = "
trust: {keys: []} => trust
signing: {keys: []} => keys
trust: {} => trust
trust: {keys: ['']} => trust
trust: {keys: [/none]} => trust: /none cannot be read
signing: {keys: [/none]} => signing: /none cannot be read
signing: {keys: ['-----BEGIN']} => signing: a private key must not be part of the configuration: name its file
{signature: {cosign: {keys: []}}, catalogs: [{name: a, source: 'quay.io/a/b:v1'}]} => keys
";

    #[test]
    fn keys_that_are_empty_or_unreadable_are_refused() {
        check_problems(WRONG_KEYS, str::to_owned);
    }

    /// Each with the text after `for the catalog a: `.
    const WRONG_RULES: &str = r#"
'oci:x', signature: {cosign: {keys: [/none]}} => the source oci:x is not in a registry
'a.io/b:c', signature: {} => set one of cosign and policy
'a.io/b:c', signature: acceptAnything => invalid type: string "acceptAnything", expected a mapping with cosign or policy
'a.io/b:c', signature: {cosign: {keys: [/none]}} => /none cannot be read
'a.io/b:c', signature: {cosign: {keys: ["-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----"]}} => this is a private key
'a.io/b:c', signature: {policy: /none} => /none cannot be read
'a.io/b:c', signature: {keys: [x]} => unknown field `keys`
"#;

    #[test]
    fn rule_that_a_catalog_cannot_meet_is_its_problem() {
        let table = WRONG_RULES.replace(" => ", " => signature: for the catalog a: ");
        check_problems(&table, |entry| {
            format!("catalogs: [{{name: a, source: {entry}}}]")
        });
    }

    #[test]
    fn rule_for_all_is_not_that_of_an_exempted_catalog() {
        let text = "
signature: {cosign: {keys: [/none]}}
catalogs: [{name: a, source: 'dir:x'}, {name: b, source: 'dir:y', signature: insecureAcceptAnything}]
";
        let problems = load(text).unwrap_err().to_string();
        let hint = "write `signature: insecureAcceptAnything` for this catalog";
        assert!(
            problems.contains(hint) && problems.contains("for the catalog a: "),
            "{problems}"
        );
        assert!(!problems.contains("for the catalog b: "), "{problems}");
    }

    #[test]
    fn keys_of_files_are_refused_where_only_registries_are_read() {
        for (text, field) in [
            ("trust: {keys: [key.pub]}", "trust"),
            ("signing: {keys: [hunter2]}", "signing"),
            (
                "{signature: {policy: p.json}, catalogs: [{name: a, source: 'quay.io/a/b:v1'}]}",
                "signature",
            ),
        ] {
            let mut loader = ConfigLoader::new(Duration::ZERO);
            loader.registries_only();
            loader.text("CATALOGS", text);
            let problems = loader.finish().unwrap_err().to_string();
            let is_refused = problems.contains(&format!("CATALOGS, {field}: "))
                && problems.contains("files are not read here");
            assert!(is_refused && !problems.contains("hunter2"), "{problems}");
        }
    }
}
