use std::{fs, path::Path};

use image::{Lookaside, LookasideError, Source};
use layout::CatalogName;
use policy::{Files, ImageName, Keyrings, Policy};
use poll::Catalog;
use serde::Deserialize;
use serde_json::Value;

use super::{Problems, keys};

/// How a catalog is exempted from what all others have to fulfil; `policy.json` has the same word.
const ANYTHING: &str = "insecureAcceptAnything";

/// What all texts say of the signatures of images, not checked yet.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    /// For catalogs that do not say.
    default: Option<(String, Value)>,
    own: Vec<(CatalogName, String, Value)>,
}

/// What reading keys needs.
#[derive(Clone, Copy)]
pub(crate) struct Ground {
    /// Whether paths mean nothing.
    pub(crate) no_files: bool,
    /// Who reads OpenPGP keys, if the program can.
    pub(crate) keyrings: Option<&'static dyn Keyrings>,
}

/// `signature` of `catalogs.yaml`, or of one of its catalogs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rule {
    cosign: Option<Cosign>,
    /// The path of a `policy.json`.
    policy: Option<String>,
    /// Where simple signatures are, if not in the registry.
    lookaside: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cosign {
    /// Files, or PEM texts.
    keys: Vec<String>,
}

impl Merged {
    pub(crate) fn all(&mut self, rule: Option<Value>, place: &str) {
        let rule = rule.map(|rule| (format!("{place}, signature"), rule));
        self.default = rule.or(self.default.take());
    }

    pub(crate) fn one(&mut self, catalog: Option<&Catalog>, rule: Option<Value>, place: &str) {
        if let (Some(catalog), Some(rule)) = (catalog, rule) {
            let place = format!("{place}, signature");
            self.own.push((catalog.name.clone(), place, rule));
        }
    }

    /// Gives every catalog its policy.
    pub(crate) fn apply(&self, catalogs: &mut [Catalog], ground: Ground, problems: &mut Problems) {
        for catalog in catalogs {
            let own = self.own.iter().find(|(name, ..)| *name == catalog.name);
            let own = own.map(|(_, place, rule)| (place, rule));
            let Some((place, rule)) = own.or(self.default.as_ref().map(|(place, rule)| (place, rule))) else {
                continue;
            };
            match ground.policy(rule, &catalog.source) {
                Ok(None) => {}
                Ok(Some((policy, lookaside))) => (catalog.policy, catalog.lookaside) = (Some(policy), lookaside),
                Err(problem) => problems.add(place, format!("for the catalog {}: {problem}", catalog.name)),
            }
        }
    }
}

impl Ground {
    fn policy(self, rule: &Value, source: &Source) -> Result<Option<(Policy, Option<Lookaside>)>, String> {
        if rule.as_str() == Some(ANYTHING) {
            return Ok(None);
        }
        let rule = Rule::deserialize(rule).map_err(|error| error.to_string())?;
        let Source::Registry { reference, pinned } = source else {
            return Err(format!(
                "the source {source} is not in a registry, so nothing vouches for it: \
                 say `signature: {ANYTHING}` for this catalog if it is to be published all the same"
            ));
        };
        let image = ImageName {
            repository: format!("{}/{}", reference.registry(), reference.repository()),
            tag: reference.tag().map(ToOwned::to_owned),
            digest: pinned.as_ref().map(ToString::to_string),
        };
        match rule {
            Rule {
                cosign: Some(cosign),
                policy: None,
                lookaside: None,
            } => Ok(Some((self.cosign(image, &cosign)?, None))),
            Rule {
                cosign: None,
                policy: Some(path),
                lookaside,
            } => {
                let policy = self.containers(image, &path)?;
                let lookaside = lookaside.map(|text| text.parse()).transpose();
                let lookaside = lookaside.map_err(|error: LookasideError| error.to_string())?;
                if policy.wants().simple && lookaside.is_none() {
                    return Err(
                        "the policy asks for simple signatures, so lookaside has to say where they are".to_owned(),
                    );
                }
                Ok(Some((policy, lookaside)))
            }
            _ => Err("it has to have one of cosign and policy; lookaside belongs to policy".to_owned()),
        }
    }

    fn cosign(self, image: ImageName, cosign: &Cosign) -> Result<Policy, String> {
        let mut all = Vec::new();
        for key in &cosign.keys {
            all.extend(keys::public_keys(key, self.no_files)?);
        }
        match all.is_empty() {
            true => Err("cosign.keys is empty".to_owned()),
            false => Ok(Policy::cosign(image, all)),
        }
    }

    fn containers(self, image: ImageName, path: &str) -> Result<Policy, String> {
        if self.no_files {
            return Err("files are not read here: write the keys into the configuration, as cosign.keys".to_owned());
        }
        let text = fs::read(path).map_err(|error| format!("{path} cannot be read: {error}"))?;
        let files = Files {
            read: &|path: &Path| fs::read(path),
            keyrings: self.keyrings,
        };
        Policy::containers(image, &text, &files).map_err(|error| format!("{path}: {}", telemetry::chain(&error)))
    }
}
