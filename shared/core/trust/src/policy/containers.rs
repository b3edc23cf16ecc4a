use std::{collections::BTreeMap, io, iter, path::Path};

use crate::{KeyError, PublicKey};
use base64::{Engine, engine::general_purpose::STANDARD};
use model::ImageReference;
use serde::{Deserialize, de::IgnoredAny};

use crate::policy::payload::{JsonObject, object, read};
use crate::policy::{IdentityRule, KeyringReader, OpenPgpError, Policy, Requirement};

/// Access to the keys that a policy names.
pub struct KeySources<'a> {
    /// Reads a key file by its path.
    pub read: &'a dyn Fn(&Path) -> io::Result<Vec<u8>>,
    /// Reads OpenPGP keys; `None` if the program is built without OpenPGP.
    pub keyrings: Option<KeyringReader>,
}

/// Error of a `policy.json` that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The text is not JSON or has another structure.
    #[error("it is no policy as containers-policy.json(5) describes")]
    Json(#[from] serde_json::Error),
    /// A scope has no requirements. That is not the same as accepting anything.
    #[error(
        "the requirements for {0} are empty: write insecureAcceptAnything if anything is to be accepted"
    )]
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
    #[error(
        "signedBy needs OpenPGP, which this program is built without; a default build of catalog-mirror has it"
    )]
    NoOpenPgp,
}

/// Structure of `policy.json` (containers-policy.json(5)).
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyDocument {
    default: Vec<JsonObject<RequirementEntry>>,
    /// Requirements by transport and scope. Only `docker` is evaluated, but the others must be
    /// valid too.
    #[serde(default)]
    transports: BTreeMap<String, BTreeMap<String, Vec<JsonObject<RequirementEntry>>>>,
}

/// Requirement as written. Which fields it needs depends on its type.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RequirementEntry {
    #[serde(rename = "type")]
    kind: RequirementKind,
    key_type: Option<String>,
    key_path: Option<String>,
    key_paths: Option<Vec<String>>,
    key_data: Option<String>,
    key_datas: Option<Vec<String>>,
    fulcio: Option<IgnoredAny>,
    pki: Option<IgnoredAny>,
    #[serde(
        alias = "rekorPublicKeyPaths",
        alias = "rekorPublicKeyData",
        alias = "rekorPublicKeyDatas"
    )]
    rekor_public_key_path: Option<IgnoredAny>,
    #[serde(default, deserialize_with = "object")]
    signed_identity: IdentityRule,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "camelCase")]
enum RequirementKind {
    InsecureAcceptAnything,
    Reject,
    SignedBy,
    SigstoreSigned,
}

impl Policy {
    /// Reads the requirements of a `policy.json` (containers-policy.json(5)) for this image. The
    /// scope that fits best counts, and all of its requirements must be met.
    ///
    /// # Errors
    /// Fails if any part of the requirements is not understood. Requirements for other images are
    /// only parsed.
    pub fn containers(
        image: ImageReference,
        text: &[u8],
        files: &KeySources<'_>,
    ) -> Result<Self, PolicyError> {
        let document: PolicyDocument = read(text)?;
        let docker = document.transports.get("docker");
        let chosen = scopes(&image)
            .into_iter()
            .find_map(|scope| docker?.get(&scope).map(|entries| (scope, entries)));
        let (scope, entries) =
            chosen.unwrap_or_else(|| ("the default".to_owned(), &document.default));
        if entries.is_empty() {
            return Err(PolicyError::Empty(scope));
        }
        let requirements = entries
            .iter()
            .map(|JsonObject(entry)| entry.requirement(files));
        Ok(Self {
            image,
            requirements: requirements.collect::<Result<_, _>>()?,
            accepts_manifests: true,
        })
    }
}

/// Returns the scopes of an image, the most specific one first (containers-policy.json(5),
/// "docker:"): the image, its repository, the folders above, the host, wildcards for its parent
/// domains, and the default of the transport.
fn scopes(image: &ImageReference) -> Vec<String> {
    let name = image.name();
    let mut scopes = match (&image.digest, &image.tag) {
        (Some(digest), _) => vec![format!("{name}@{digest}")],
        (None, Some(tag)) => vec![format!("{name}:{tag}")],
        (None, None) => Vec::new(),
    };
    let folders = iter::successors(Some(&*name), |folder| Some(folder.rsplit_once('/')?.0));
    scopes.extend(folders.map(str::to_owned));
    let host = image.registry.split(':').next().unwrap_or_default();
    let domains = iter::successors(Some(host), |domain| Some(domain.split_once('.')?.1));
    scopes.extend(domains.skip(1).map(|domain| format!("*.{domain}")));
    scopes.push(String::new());
    scopes
}

impl RequirementEntry {
    fn requirement(&self, files: &KeySources<'_>) -> Result<Requirement, PolicyError> {
        match self.kind {
            RequirementKind::InsecureAcceptAnything => Ok(Requirement::Anything),
            RequirementKind::Reject => Ok(Requirement::Reject),
            RequirementKind::SignedBy => {
                let kind = self.key_type.as_deref().unwrap_or_default();
                if kind != "GPGKeys" {
                    return Err(PolicyError::KeyType(kind.to_owned()));
                }
                let keys = self.keys("signedBy", files)?;
                let read_keyring = files.keyrings.ok_or(PolicyError::NoOpenPgp)?;
                Ok(Requirement::OpenPgp {
                    keys: read_keyring(&keys)?,
                    identity: self.signed_identity.clone(),
                })
            }
            RequirementKind::SigstoreSigned => {
                let mut keys = Vec::new();
                for content in self.keys("sigstoreSigned", files)? {
                    keys.extend(PublicKey::from_pem(&content)?);
                }
                Ok(Requirement::Sigstore {
                    keys,
                    identity: Some(self.signed_identity.clone()),
                })
            }
        }
    }

    /// Returns the contents of the keys. Fails unless exactly one of the four fields is set, as in
    /// containers/image.
    fn keys(
        &self,
        requirement: &'static str,
        files: &KeySources<'_>,
    ) -> Result<Vec<Vec<u8>>, PolicyError> {
        // Keys alone cannot meet these. Ignoring them would verify less than the policy asks for.
        let others = [
            (&self.fulcio, "fulcio"),
            (&self.pki, "pki"),
            (&self.rekor_public_key_path, "a Rekor public key"),
        ];
        if let Some((_, name)) = others.into_iter().find(|(other, _)| other.is_some()) {
            return Err(PolicyError::NotKeys(name));
        }
        let read = |path: &String| {
            (files.read)(Path::new(path)).map_err(|source| PolicyError::File {
                path: path.clone(),
                source,
            })
        };
        match (
            &self.key_path,
            &self.key_paths,
            &self.key_data,
            &self.key_datas,
        ) {
            (Some(path), None, None, None) => Ok(vec![read(path)?]),
            (None, Some(paths), None, None) if !paths.is_empty() => {
                paths.iter().map(read).collect()
            }
            (None, None, Some(data), None) => Ok(vec![decode(data)?]),
            (None, None, None, Some(datas)) if !datas.is_empty() => {
                datas.iter().map(decode).collect()
            }
            _ => Err(PolicyError::Keys(requirement)),
        }
    }
}

/// Decodes a key that stands in the policy.
fn decode(data: impl AsRef<[u8]>) -> Result<Vec<u8>, PolicyError> {
    STANDARD.decode(data).map_err(|_| PolicyError::Data)
}

#[cfg(test)]
mod tests;
