use std::{collections::BTreeMap, io, path::Path, sync::Arc};

use crate::{KeyError, PublicKey};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;

use crate::policy::{
    IdentityRule, ImageName, Keyring, OpenPgpBackend, OpenPgpError, Policy,
    payload::{JsonObject, object, read},
    requirement::Requirement,
};

/// Access to the keys that a policy names.
pub struct KeySources<'a> {
    /// Reads a key file by its path.
    pub read: &'a dyn Fn(&Path) -> io::Result<Vec<u8>>,
    /// Reads OpenPGP keys; `None` if the program is built without OpenPGP.
    pub keyrings: Option<&'a dyn OpenPgpBackend>,
}

/// Error of a `policy.json` that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The text is not JSON or has another structure.
    #[error("it is no policy as containers-policy.json(5) describes")]
    Json(#[from] serde_json::Error),
    /// A scope has no requirements. That is not the same as accepting anything.
    #[error("the requirements for {0} are empty: write insecureAcceptAnything if anything is to be accepted")]
    Empty(String),
    /// A requirement needs more than keys.
    #[error("{0} is not supported: only keys are, not certificates and transparency logs")]
    NotKeys(&'static str),
    /// A requirement names its keys in no field or in more than one.
    #[error("{0} wants its keys in exactly one of keyPath, keyPaths, keyData and keyDatas")]
    Keys(&'static str),
    /// The type of the GPG keys is not supported.
    #[error("signedBy has keys of the type {0:?}, which is not supported: only GPGKeys is")]
    KeyType(String),
    /// A key file cannot be read.
    #[error("the key {path} cannot be read")]
    File {
        /// Path of the file as the policy names it.
        path: String,
        /// Error that the operating system returned.
        source: io::Error,
    },
    /// The data of a key is not base64.
    #[error("the data of a key is not base64")]
    Data,
    /// A public key cannot be used.
    #[error("a key of sigstoreSigned cannot be used")]
    Key(#[from] KeyError),
    /// An OpenPGP key cannot be used.
    #[error("a key of signedBy cannot be used")]
    OpenPgp(#[from] OpenPgpError),
    /// The program is built without OpenPGP.
    #[error("signedBy needs OpenPGP, which this program is built without; a default build of catalog-mirror has it")]
    NoOpenPgp,
}

/// Structure of `policy.json` (containers-policy.json(5)).
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyDocument {
    default: Vec<JsonObject<RequirementEntry>>,
    /// Requirements by transport and scope. Only `docker` is evaluated, but the others must be valid too.
    #[serde(default)]
    transports: BTreeMap<String, BTreeMap<String, Vec<JsonObject<RequirementEntry>>>>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", deny_unknown_fields)]
enum RequirementEntry {
    // Variants without fields have braces, because serde ignores unknown fields of unit variants.
    InsecureAcceptAnything {},
    Reject {},
    #[serde(rename_all = "camelCase")]
    SignedBy {
        key_type: String,
        key_path: Option<String>,
        key_paths: Option<Vec<String>>,
        key_data: Option<String>,
        #[serde(default, deserialize_with = "object")]
        signed_identity: IdentityRule,
    },
    #[serde(rename_all = "camelCase")]
    SigstoreSigned {
        key_path: Option<String>,
        key_paths: Option<Vec<String>>,
        key_data: Option<String>,
        key_datas: Option<Vec<String>>,
        fulcio: Option<serde::de::IgnoredAny>,
        pki: Option<serde::de::IgnoredAny>,
        rekor_public_key_path: Option<serde::de::IgnoredAny>,
        rekor_public_key_paths: Option<serde::de::IgnoredAny>,
        rekor_public_key_data: Option<serde::de::IgnoredAny>,
        rekor_public_key_datas: Option<serde::de::IgnoredAny>,
        #[serde(default, deserialize_with = "object")]
        signed_identity: IdentityRule,
    },
}

/// Paths and base64 contents of keys.
struct KeyLocations {
    paths: Vec<String>,
    data: Vec<String>,
}

impl Policy {
    /// Reads the requirements of a `policy.json` (containers-policy.json(5)) for this image. The scope that fits best counts,
    /// and all of its requirements must be met.
    ///
    /// # Errors
    /// Fails if any part of the requirements is not understood. Requirements for other images are only parsed.
    pub fn containers(image: ImageName, text: &[u8], files: &KeySources<'_>) -> Result<Self, PolicyError> {
        let document: PolicyDocument = read(text)?;
        let docker = document.transports.get("docker");
        let chosen = scopes(&image)
            .into_iter()
            .find_map(|scope| docker?.get(&scope).map(|entries| (scope, entries)));
        let (scope, entries) = chosen.unwrap_or_else(|| ("the default".to_owned(), &document.default));
        if entries.is_empty() {
            return Err(PolicyError::Empty(scope));
        }
        let requirements = entries.iter().map(|JsonObject(entry)| entry.requirement(files));
        let requirements = requirements.collect::<Result<_, _>>()?;
        Ok(Self::containers_of(image, requirements))
    }
}

/// Returns the scopes of an image, the most specific one first (containers-policy.json(5), "docker:"): the image, its
/// repository, the folders above, the host, wildcards for its parent domains, and the default of the transport.
fn scopes(image: &ImageName) -> Vec<String> {
    let mut scopes = match (&image.digest, &image.tag) {
        (Some(digest), _) => vec![format!("{}@{digest}", image.repository)],
        (None, Some(tag)) => vec![format!("{}:{tag}", image.repository)],
        (None, None) => Vec::new(),
    };
    let mut folder = image.repository.as_str();
    scopes.push(folder.to_owned());
    while let Some((above, _)) = folder.rsplit_once('/') {
        folder = above;
        scopes.push(folder.to_owned());
    }
    let mut domain = image.host().split(':').next().unwrap_or_default();
    while let Some((_, above)) = domain.split_once('.') {
        domain = above;
        scopes.push(format!("*.{domain}"));
    }
    scopes.push(String::new());
    scopes
}

impl RequirementEntry {
    fn requirement(&self, files: &KeySources<'_>) -> Result<Requirement, PolicyError> {
        match self {
            Self::InsecureAcceptAnything {} => Ok(Requirement::Anything),
            Self::Reject {} => Ok(Requirement::Reject),
            Self::SignedBy {
                key_type,
                key_path,
                key_paths,
                key_data,
                signed_identity,
            } => {
                if key_type != "GPGKeys" {
                    return Err(PolicyError::KeyType(key_type.clone()));
                }
                let keys = KeyFields {
                    path: key_path,
                    paths: key_paths,
                    data: key_data,
                    datas: &None,
                };
                let keys = keys.locations("signedBy")?;
                Ok(Requirement::OpenPgp {
                    keys: keys.openpgp(files)?,
                    identity: signed_identity.clone(),
                })
            }
            Self::SigstoreSigned {
                key_path,
                key_paths,
                key_data,
                key_datas,
                signed_identity,
                ..
            } => {
                self.only_keys()?;
                let keys = KeyFields {
                    path: key_path,
                    paths: key_paths,
                    data: key_data,
                    datas: key_datas,
                };
                let keys = keys.locations("sigstoreSigned")?;
                Ok(Requirement::Sigstore {
                    keys: keys.sigstore(files)?,
                    identity: Some(signed_identity.clone()),
                })
            }
        }
    }

    /// Refuses requirements that keys alone cannot meet. Ignoring them would verify less than the policy asks for.
    const fn only_keys(&self) -> Result<(), PolicyError> {
        match self {
            Self::SigstoreSigned { fulcio: Some(_), .. } => Err(PolicyError::NotKeys("fulcio")),
            Self::SigstoreSigned { pki: Some(_), .. } => Err(PolicyError::NotKeys("pki")),
            Self::SigstoreSigned {
                rekor_public_key_path: None,
                rekor_public_key_paths: None,
                rekor_public_key_data: None,
                rekor_public_key_datas: None,
                ..
            }
            | Self::InsecureAcceptAnything {}
            | Self::Reject {}
            | Self::SignedBy { .. } => Ok(()),
            Self::SigstoreSigned { .. } => Err(PolicyError::NotKeys("a Rekor public key")),
        }
    }
}

/// The four fields of a requirement that may name its keys.
struct KeyFields<'a> {
    path: &'a Option<String>,
    paths: &'a Option<Vec<String>>,
    data: &'a Option<String>,
    datas: &'a Option<Vec<String>>,
}

impl KeyFields<'_> {
    /// Returns the keys. Fails unless exactly one of the fields is set, as in containers/image.
    fn locations(&self, requirement: &'static str) -> Result<KeyLocations, PolicyError> {
        let set = usize::from(self.path.is_some())
            + usize::from(self.paths.is_some())
            + usize::from(self.data.is_some())
            + usize::from(self.datas.is_some());
        let all = |one: &Option<String>, many: &Option<Vec<String>>| -> Vec<String> {
            one.iter().chain(many.iter().flatten()).cloned().collect()
        };
        let keys = KeyLocations {
            paths: all(self.path, self.paths),
            data: all(self.data, self.datas),
        };
        let is_empty = keys.paths.is_empty() && keys.data.is_empty();
        match set == 1 && !is_empty {
            true => Ok(keys),
            false => Err(PolicyError::Keys(requirement)),
        }
    }
}

impl KeyLocations {
    fn contents(&self, files: &KeySources<'_>) -> Result<Vec<Vec<u8>>, PolicyError> {
        let read = |path: &String| {
            (files.read)(Path::new(path)).map_err(|source| PolicyError::File {
                path: path.clone(),
                source,
            })
        };
        let decode = |data: &String| STANDARD.decode(data).map_err(|_| PolicyError::Data);
        self.paths
            .iter()
            .map(read)
            .chain(self.data.iter().map(decode))
            .collect()
    }

    fn sigstore(&self, files: &KeySources<'_>) -> Result<Vec<PublicKey>, PolicyError> {
        let mut keys = Vec::new();
        for content in self.contents(files)? {
            keys.extend(PublicKey::from_pem(&content)?);
        }
        Ok(keys)
    }

    fn openpgp(&self, files: &KeySources<'_>) -> Result<Arc<dyn Keyring>, PolicyError> {
        let keyrings = files.keyrings.ok_or(PolicyError::NoOpenPgp)?;
        Ok(keyrings.read(&self.contents(files)?)?)
    }
}

#[cfg(test)]
mod tests;
