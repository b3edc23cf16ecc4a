use std::{collections::BTreeMap, io, path::Path, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use seal::{KeyError, PublicKey};
use serde::Deserialize;

use crate::{
    Identity, ImageName, Keyring, Keyrings, OpenPgpError, Policy,
    object::{Object, object, read},
    requirement::Requirement,
};

/// What reading a policy needs of the world.
pub struct Files<'a> {
    /// Reads the file of a key.
    pub read: &'a dyn Fn(&Path) -> io::Result<Vec<u8>>,
    /// Reads OpenPGP keys, where the program can.
    pub keyrings: Option<&'a dyn Keyrings>,
}

/// Why a `policy.json` cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// Not JSON, or not of the right shape.
    #[error("it is no policy as containers-policy.json(5) describes")]
    Json(#[from] serde_json::Error),
    /// A scope that asks for nothing at all, which is not the same as accepting anything.
    #[error("the requirements for {0} are empty: write insecureAcceptAnything if anything is to be accepted")]
    Empty(String),
    /// A requirement that no key alone can fulfil.
    #[error("{0} is not supported: only keys are, not certificates and transparency logs")]
    NotKeys(&'static str),
    /// Not exactly one way to name keys.
    #[error("{0} wants its keys in exactly one of keyPath, keyPaths, keyData and keyDatas")]
    Keys(&'static str),
    /// A kind of GPG keys that is not known.
    #[error("signedBy has keys of the type {0:?}, which is not supported: only GPGKeys is")]
    KeyType(String),
    /// A file that cannot be read.
    #[error("the key {path} cannot be read")]
    File {
        /// Which.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// Key data that is not base64.
    #[error("the data of a key is not base64")]
    Data,
    /// A public key that cannot be used.
    #[error("a key of sigstoreSigned cannot be used")]
    Key(#[from] KeyError),
    /// An OpenPGP key that cannot be used.
    #[error("a key of signedBy cannot be used")]
    OpenPgp(#[from] OpenPgpError),
    /// A program that was built without OpenPGP.
    #[error("signedBy needs OpenPGP, which this program is built without")]
    NoOpenPgp,
}

/// `policy.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    default: Vec<Object<Entry>>,
    /// By transport and scope. Those of other transports than `docker` mean nothing here, but have to be sound.
    #[serde(default)]
    transports: BTreeMap<String, BTreeMap<String, Vec<Object<Entry>>>>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", deny_unknown_fields)]
enum Entry {
    // The braces are for unknown fields, which are passed over without.
    InsecureAcceptAnything {},
    Reject {},
    #[serde(rename_all = "camelCase")]
    SignedBy {
        key_type: String,
        key_path: Option<String>,
        key_paths: Option<Vec<String>>,
        key_data: Option<String>,
        #[serde(default, deserialize_with = "object")]
        signed_identity: Identity,
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
        signed_identity: Identity,
    },
}

/// Where keys are said to be.
struct Keys {
    paths: Vec<String>,
    data: Vec<String>,
}

impl Policy {
    /// What a `policy.json` (containers-policy.json(5)) asks of this image.
    ///
    /// # Errors
    /// [`PolicyError`] if that cannot be understood in every detail. What it asks of others is only parsed.
    pub fn containers(image: ImageName, text: &[u8], files: &Files<'_>) -> Result<Self, PolicyError> {
        let document: Document = read(text)?;
        let docker = document.transports.get("docker");
        let chosen = scopes(&image)
            .into_iter()
            .find_map(|scope| docker?.get(&scope).map(|entries| (scope, entries)));
        let (scope, entries) = chosen.unwrap_or_else(|| ("the default".to_owned(), &document.default));
        if entries.is_empty() {
            return Err(PolicyError::Empty(scope));
        }
        let requirements = entries.iter().map(|Object(entry)| entry.requirement(files));
        let requirements = requirements.collect::<Result<_, _>>()?;
        Ok(Self::containers_of(image, requirements))
    }
}

/// The scopes of an image from the most specific one on (containers-policy.json(5), "docker:"): itself, its repository, the
/// folders above, the host, wildcards for the domains above, and the transport's own default.
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

impl Entry {
    fn requirement(&self, files: &Files<'_>) -> Result<Requirement, PolicyError> {
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
                let keys = Keys::one_of("signedBy", (key_path, key_paths), (key_data, &None))?;
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
                let keys = Keys::one_of("sigstoreSigned", (key_path, key_paths), (key_data, key_datas))?;
                Ok(Requirement::Sigstore {
                    keys: keys.sigstore(files)?,
                    identity: Some(signed_identity.clone()),
                })
            }
        }
    }

    /// What a key alone cannot fulfil is refused rather than passed over.
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

type OneOrMany<'a> = (&'a Option<String>, &'a Option<Vec<String>>);

impl Keys {
    fn one_of(kind: &'static str, paths: OneOrMany<'_>, data: OneOrMany<'_>) -> Result<Self, PolicyError> {
        let ways = [paths.0.is_some(), paths.1.is_some(), data.0.is_some(), data.1.is_some()];
        let all =
            |(one, many): OneOrMany<'_>| -> Vec<String> { one.iter().chain(many.iter().flatten()).cloned().collect() };
        let keys = Self {
            paths: all(paths),
            data: all(data),
        };
        let is_empty = keys.paths.is_empty() && keys.data.is_empty();
        if is_empty || ways.into_iter().filter(|way| *way).count() != 1 {
            return Err(PolicyError::Keys(kind));
        }
        Ok(keys)
    }

    fn contents(&self, files: &Files<'_>) -> Result<Vec<Vec<u8>>, PolicyError> {
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

    fn sigstore(&self, files: &Files<'_>) -> Result<Vec<PublicKey>, PolicyError> {
        let mut keys = Vec::new();
        for content in self.contents(files)? {
            keys.extend(PublicKey::from_pem(&content)?);
        }
        Ok(keys)
    }

    fn openpgp(&self, files: &Files<'_>) -> Result<Arc<dyn Keyring>, PolicyError> {
        let keyrings = files.keyrings.ok_or(PolicyError::NoOpenPgp)?;
        Ok(keyrings.read(&self.contents(files)?)?)
    }
}

#[cfg(test)]
mod tests;
