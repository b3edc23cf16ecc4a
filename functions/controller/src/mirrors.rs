//! Mirrors that ClusterCatalogs may name as their source, and the Secrets for them.

use std::{collections::BTreeMap, str::FromStr};

use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{Api, Client};
use publish::PollMetrics;
use source::{MirrorLocation, MirrorLocationError};
use sync::{ClientCertificate, CopyPermits, FetchSettings, HttpSettings, header_fields};
use tokio::time::timeout;
use trust::{KeyError, PublicKey, Trust};

use crate::secrets::READ_TIME;

/// Names of the key file of `catalog-mirror keygen`, and of the one that others write.
const PUBLIC_KEYS: [&str; 2] = ["public.key", "key.pub"];

/// Value of `--mirror-origin`: a URL below which mirrors may be named, and the Secret for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MirrorOrigin {
    /// Normalised, ending in a slash.
    url: String,
    secret: Option<String>,
}

/// The mirrors that an administrator has allowed. Only these are asked: an editor of ClusterCatalogs must not make this pod call
/// any host of the cluster's network.
pub(crate) struct Mirrors {
    pub(crate) permits: CopyPermits,
    pub(crate) metrics: PollMetrics,
    origins: Vec<MirrorOrigin>,
    secrets: Api<Secret>,
    namespace: String,
}

/// Settings for one copy.
#[derive(Debug, Default)]
pub(crate) struct MirrorAccess {
    pub(crate) http: HttpSettings,
    pub(crate) trust: Option<Trust>,
}

/// Reason for which a mirror is not asked. No message quotes a Secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MirrorRefusal {
    #[error(
        "the annotation catalog-mirror/source is not the URL of a catalog in a mirror: write https://HOST/catalogs/NAME"
    )]
    NotUrl,
    #[error(
        "the URL in the annotation catalog-mirror/source has a user, a password, a query or a fragment: leave it out, \
         credentials belong in the Secret of --mirror-origin"
    )]
    Credentials,
    #[error("the path of the URL in the annotation catalog-mirror/source does not end in /catalogs/NAME")]
    NoCatalog,
    #[error(
        "the path of the URL in the annotation catalog-mirror/source has a % or an empty part, which servers read differently"
    )]
    Path,
    #[error("{0} is not allowed as a mirror: an administrator of the cluster can allow it with --mirror-origin")]
    NotAllowed(String),
    #[error("the Secret {0} of --mirror-origin does not exist")]
    NoSecret(String),
    #[error("the Secret {0} of --mirror-origin may not be read by this program's role")]
    Forbidden(String),
    #[error("cannot read the Secret {0} of --mirror-origin: the API server does not answer")]
    NoAnswer(String),
    #[error("cannot read the Secret {0} of --mirror-origin")]
    Read(String, #[source] kube::Error),
    #[error("line {1} of header in the Secret {0} is not a header field: write NAME: VALUE")]
    Header(String, usize),
    #[error("the Secret {0} has header or a client certificate, which must not be sent over plain http")]
    PlainHttp(String),
    #[error("the Secret {0} has only one of tls.crt and tls.key")]
    HalfCertificate(String),
    #[error("{1} in the Secret {0} cannot be used as a public key")]
    Key(String, &'static str, #[source] KeyError),
}

impl MirrorRefusal {
    /// True if only another annotation, or another start of this program, can help.
    pub(crate) const fn is_terminal(&self) -> bool {
        matches!(
            self,
            Self::NotUrl | Self::Credentials | Self::NoCatalog | Self::Path | Self::NotAllowed(_)
        )
    }
}

impl FromStr for MirrorOrigin {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (url, secret) = match text.split_once(',') {
            Some((url, rest)) => (
                url,
                Some(rest.strip_prefix("secret=").ok_or("write URL[,secret=NAME]")?),
            ),
            None => (text, None),
        };
        if secret.is_some_and(|name| name.is_empty() || name.contains([',', '/'])) {
            return Err("write the name of one Secret in the system namespace");
        }
        // Parsed as annotations are, so that both are normalised in the same way.
        let location = location(&format!("{}/catalogs/x", url.trim_end_matches('/')));
        let location = location.map_err(|_| "write https://HOST[:PORT][/PATH], without user, query and fragment")?;
        Ok(Self {
            url: location.mirror().to_owned(),
            secret: secret.map(str::to_owned),
        })
    }
}

/// Parses the text of the annotation.
pub(crate) fn location(text: &str) -> Result<MirrorLocation, MirrorRefusal> {
    let location: MirrorLocation = text.parse().map_err(|error| match error {
        MirrorLocationError::NotUrl => MirrorRefusal::NotUrl,
        MirrorLocationError::Secret => MirrorRefusal::Credentials,
        MirrorLocationError::NoCatalog => MirrorRefusal::NoCatalog,
    })?;
    // `..%2f` stays as it is in a URL, and a server that decodes it would leave the allowed path.
    let path = location.mirror().split_once("://").map_or("", |(_, rest)| rest);
    if path.contains('%') || path.contains("//") {
        return Err(MirrorRefusal::Path);
    }
    Ok(location)
}

impl Mirrors {
    /// Allows these origins. Their Secrets are in `namespace`.
    pub(crate) fn new(client: Client, namespace: &str, origins: Vec<MirrorOrigin>, metrics: PollMetrics) -> Self {
        Self {
            permits: CopyPermits::default(),
            metrics,
            origins,
            secrets: Api::namespaced(client, namespace),
            namespace: namespace.to_owned(),
        }
    }

    /// Returns the settings for a mirror, from its Secret as it is now. Sends nothing to the mirror.
    pub(crate) async fn access(&self, location: &MirrorLocation) -> Result<MirrorAccess, MirrorRefusal> {
        let allowed = self
            .origins
            .iter()
            .filter(|origin| location.mirror().starts_with(&origin.url));
        let Some(origin) = allowed.max_by_key(|origin| origin.url.len()) else {
            return Err(MirrorRefusal::NotAllowed(location.mirror().to_owned()));
        };
        let Some(secret) = &origin.secret else {
            return Ok(MirrorAccess::default());
        };
        let name = format!("{}/{secret}", self.namespace);
        let Ok(read) = timeout(READ_TIME, self.secrets.get_opt(secret)).await else {
            return Err(MirrorRefusal::NoAnswer(name));
        };
        match read {
            Ok(Some(found)) => access(name, found, origin.url.starts_with("http:")),
            Ok(None) => Err(MirrorRefusal::NoSecret(name)),
            Err(kube::Error::Api(status)) if status.code == 403 => Err(MirrorRefusal::Forbidden(name)),
            Err(error) => Err(MirrorRefusal::Read(name, error)),
        }
    }
}

/// Returns the settings that a Secret stands for. Certificates are parsed by the client that uses them.
fn access(name: String, secret: Secret, is_plain_http: bool) -> Result<MirrorAccess, MirrorRefusal> {
    let mut data: BTreeMap<String, ByteString> = secret.data.unwrap_or_default();
    let mut take = |key: &str| data.remove(key).map(|bytes| bytes.0);
    let mut keys = Vec::new();
    for key in PUBLIC_KEYS {
        if let Some(pem) = take(key) {
            let read = PublicKey::from_pem(&pem);
            keys.extend(read.map_err(|error| MirrorRefusal::Key(name.clone(), key, error))?);
        }
    }
    let client_certificate = match (take("tls.crt"), take("tls.key")) {
        (Some(chain), Some(key)) => Some(ClientCertificate { chain, key }),
        (None, None) => None,
        _ => return Err(MirrorRefusal::HalfCertificate(name)),
    };
    let headers = match take("header") {
        Some(bytes) => header_fields(&String::from_utf8_lossy(&bytes)),
        None => Ok(Default::default()),
    };
    let headers = headers.map_err(|line| MirrorRefusal::Header(name.clone(), line))?;
    if is_plain_http && (client_certificate.is_some() || !headers.is_empty()) {
        return Err(MirrorRefusal::PlainHttp(name));
    }
    let http = FetchSettings {
        ca_pem: take("ca.crt"),
        client_certificate,
        ..FetchSettings::default()
    };
    Ok(MirrorAccess {
        http: HttpSettings { http, headers },
        trust: (!keys.is_empty()).then(|| Trust::new(keys)),
    })
}
