use std::{fs, path::Path};

use model::CatalogName;
use publish::Catalog;
use serde::Deserialize;
use serde_json::Value;
use source::{Lookaside, LookasideError, Source};
use trust::policy::{ImageName, KeySources, OpenPgpBackend, Policy};

use super::{ConfigProblems, keys};

/// Value of `signature` that exempts a catalog from the rule for all. `policy.json` has the same word.
const ANYTHING: &str = "insecureAcceptAnything";

/// Rules for the signatures of images: one for all catalogs and those of single catalogs.
#[derive(Debug, Default)]
pub(crate) struct SignatureRules {
    default: Option<PlacedRule>,
    own: Vec<(CatalogName, PlacedRule)>,
}

/// A rule that is not parsed yet, and the place where it is configured.
#[derive(Debug)]
struct PlacedRule {
    place: String,
    rule: Value,
}

/// Settings for reading the keys of a rule.
#[derive(Clone, Copy)]
pub(crate) struct KeyContext {
    /// True if paths are refused, as in a Lambda function.
    pub(crate) no_files: bool,
    /// Parser of OpenPGP keys, if the program has one.
    pub(crate) keyrings: Option<&'static dyn OpenPgpBackend>,
}

/// A rule: either cosign keys or a `policy.json`.
#[derive(Deserialize)]
#[serde(
    rename_all = "camelCase",
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

impl SignatureRules {
    pub(crate) fn set_default(&mut self, rule: Value, place: String) {
        self.default = Some(PlacedRule { place, rule });
    }

    pub(crate) fn set_own(&mut self, catalog: &CatalogName, rule: Value, place: String) {
        self.own.push((catalog.clone(), PlacedRule { place, rule }));
    }

    /// Sets the policy of every catalog.
    pub(crate) fn apply(&self, catalogs: &mut [Catalog], keys: KeyContext, problems: &mut ConfigProblems) {
        for catalog in catalogs {
            // The rule of a catalog replaces the rule for all, also where it is weaker.
            let own = self.own.iter().find(|(name, _)| *name == catalog.name);
            let Some(placed) = own.map(|(_, placed)| placed).or(self.default.as_ref()) else {
                continue;
            };
            let name = catalog.name.clone();
            for pulled in catalog.pulled_mut() {
                let set = keys.set_policy(&placed.rule, pulled);
                problems.ok(
                    &placed.place,
                    set.map_err(|problem| format!("for the catalog {name}: {problem}")),
                );
            }
        }
    }
}

impl KeyContext {
    fn set_policy(self, rule: &Value, catalog: &mut Catalog) -> Result<(), String> {
        let Some(source) = catalog.source.pulled() else {
            return Ok(());
        };
        if let Some((policy, lookaside)) = self.policy(rule, source)? {
            (catalog.policy, catalog.lookaside) = (Some(policy), lookaside);
        }
        Ok(())
    }

    fn policy(self, rule: &Value, source: &Source) -> Result<Option<(Policy, Option<Lookaside>)>, String> {
        if rule.as_str() == Some(ANYTHING) {
            return Ok(None);
        }
        let rule = SignatureRule::deserialize(rule).map_err(|error| error.to_string())?;
        // Only registries store signatures. To publish another source silently would defeat the rule.
        let Source::Registry { reference, pinned } = source else {
            return Err(format!(
                "the source {source} is not in a registry, so it has no signatures: \
                 write `signature: {ANYTHING}` for this catalog to publish it without"
            ));
        };
        let image = ImageName {
            repository: format!("{}/{}", reference.registry(), reference.repository()),
            tag: reference.tag().map(ToOwned::to_owned),
            digest: pinned.as_ref().map(ToString::to_string),
        };
        match rule {
            SignatureRule {
                cosign: Some(cosign),
                policy: None,
                lookaside: None,
            } => Ok(Some((self.cosign(image, &cosign)?, None))),
            SignatureRule {
                cosign: None,
                policy: Some(path),
                lookaside,
            } => {
                let policy = self.containers(image, &path)?;
                let lookaside = lookaside.map(|text| text.parse()).transpose();
                let lookaside = lookaside.map_err(|error: LookasideError| error.to_string())?;
                if policy.signature_kinds().simple && lookaside.is_none() {
                    return Err("the policy requires simple signatures, so lookaside must be set".to_owned());
                }
                Ok(Some((policy, lookaside)))
            }
            _ => Err("set one of cosign and policy; lookaside is only for policy".to_owned()),
        }
    }

    fn cosign(self, image: ImageName, cosign: &CosignKeys) -> Result<Policy, String> {
        let mut all = Vec::new();
        for key in &cosign.keys {
            all.extend(keys::public_keys(key, self.no_files)?);
        }
        if all.is_empty() {
            Err("cosign.keys is empty".to_owned())
        } else {
            Ok(Policy::cosign(image, all))
        }
    }

    fn containers(self, image: ImageName, path: &str) -> Result<Policy, String> {
        if self.no_files {
            return Err("files are not read here: write the keys into the configuration, as cosign.keys".to_owned());
        }
        let text = fs::read(path).map_err(|error| format!("{path} cannot be read: {error}"))?;
        let files = KeySources {
            read: &|path: &Path| fs::read(path),
            keyrings: self.keyrings,
        };
        Policy::containers(image, &text, &files).map_err(|error| format!("{path}: {}", model::text::chain(&error)))
    }
}
