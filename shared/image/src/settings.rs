//! Everything a caller can choose, with its default and why.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::auth::Logins;
use crate::limits::Limits;

/// How images are fetched. `Settings::default()` suits a public registry.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Credential files, read anew for every pull. Empty means the usual places: `REGISTRY_AUTH_FILE`
    /// alone if set, else podman's `auth.json` and docker's `config.json`.
    pub auth_files: Vec<PathBuf>,
    /// Credentials held in memory, asked before the files. While it holds some, the usual places are not looked at.
    pub logins: Logins,
    /// PEM bundles trusted on top of the system's roots (`SSL_CERT_FILE` and `SSL_CERT_DIR` are honoured).
    pub ca_files: Vec<PathBuf>,
    /// Hosts (`host` for any port, or `host:port`) that speak plain http. Nothing else does, not even loopback.
    pub plain_http: Vec<String>,
    /// Hosts (`host` for any port, or `host:port`) on private or loopback addresses that a registry's redirects and
    /// token realms may lead to. Without it each may only lead to where it is itself, or farther away: a registry on
    /// the internet to the internet, one on this network also to this network. Nothing leads to link-local addresses
    /// and metadata services.
    pub internal_hosts: Vec<String>,
    /// Which image of an index is read. Catalogs hold the same files for all, so the default is linux/amd64.
    pub platform: Platform,
    /// The longest wait for a connection, TLS included. Default 10 s.
    pub connect_timeout: Duration,
    /// The longest silence between two reads. Default 30 s.
    pub read_timeout: Duration,
    /// The longest time one `resolve` or `exists` may take in all, so that a slow drip ends. Default 2 min.
    pub resolve_timeout: Duration,
    /// The longest time one `read` may take in all, so that a slow drip ends. Default 30 min.
    pub pull_timeout: Duration,
    /// What is tried again, and how long.
    pub retry: Retry,
    /// How slowly a body may come.
    pub pace: Pace,
    /// Where requests go through.
    pub proxy: Proxy,
    /// How many layers are fetched at a time. Default 3, as docker does.
    pub side_by_side: usize,
    /// What no image may exceed.
    pub limits: Limits,
    /// The `User-Agent` sent to registries.
    pub user_agent: String,
}

/// An operating system and a CPU, as an index names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    /// Such as `linux`.
    pub os: String,
    /// Such as `amd64`.
    pub architecture: String,
}

/// How a request that failed for a passing reason is repeated: exponential backoff with jitter,
/// or what `Retry-After` asks for.
#[derive(Clone, Debug)]
pub struct Retry {
    /// How often a request is sent at most. Default 5.
    pub attempts: usize,
    /// The shortest wait. Default 200 ms.
    pub first: Duration,
    /// The longest wait that is made up here. Default 10 s.
    pub longest: Duration,
    /// The most time all waits of one request may take. A longer `Retry-After` is reported
    /// instead of waited for. Default 60 s.
    pub total: Duration,
}

/// The least a body must bring. A slower one is broken off, and asked for again like any that broke.
#[derive(Clone, Debug)]
pub struct Pace {
    /// Bytes. Default 30 KiB, which is 1 KiB/s.
    pub least_bytes: u64,
    /// In each such time spent waiting for them. Default 30 s.
    pub over: Duration,
}

/// Which proxy requests go through.
#[derive(Clone, Default)]
pub enum Proxy {
    /// `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`.
    #[default]
    Environment,
    /// None, whatever the environment says.
    Off,
    /// This one for everything.
    Url(String),
}

/// Settings that cannot work.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A CA bundle that cannot be read.
    #[error("cannot read the CA bundle {path}", path = .path.display())]
    CaFile {
        /// Which.
        path: PathBuf,
        /// Why.
        source: rustls::pki_types::pem::Error,
    },
    /// A CA bundle without a certificate.
    #[error("the CA bundle {path} holds no usable certificate", path = .0.display())]
    NoCertificate(PathBuf),
    /// A proxy that is no URL.
    #[error("the proxy is not a URL")]
    Proxy(#[source] reqwest::Error),
    /// TLS could not be set up.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
    /// The HTTP client could not be built.
    #[error("cannot set up the HTTP client")]
    Client(#[source] reqwest::Error),
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            auth_files: Vec::new(),
            logins: Logins::default(),
            ca_files: Vec::new(),
            plain_http: Vec::new(),
            internal_hosts: Vec::new(),
            platform: Platform::default(),
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(30),
            resolve_timeout: Duration::from_secs(2 * 60),
            pull_timeout: Duration::from_secs(30 * 60),
            retry: Retry::default(),
            pace: Pace::default(),
            proxy: Proxy::default(),
            side_by_side: 3,
            limits: Limits::default(),
            user_agent: concat!("catalog-mirror/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

impl Default for Platform {
    fn default() -> Self {
        Self {
            os: "linux".to_owned(),
            architecture: "amd64".to_owned(),
        }
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts: 5,
            first: Duration::from_millis(200),
            longest: Duration::from_secs(10),
            total: Duration::from_secs(60),
        }
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            least_bytes: 30 << 10,
            over: Duration::from_secs(30),
        }
    }
}

impl Settings {
    /// Whether `host` (with its port, if one is written) is listed as speaking plain http.
    pub(crate) fn is_plain(&self, host: &str) -> bool {
        is_listed(&self.plain_http, host)
    }

    /// Whether registries may lead to `host` although it is on a private address.
    pub(crate) fn is_internal(&self, host: &str) -> bool {
        is_listed(&self.internal_hosts, host)
    }
}

fn is_listed(list: &[String], host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let is_it = |listed: &String| listed.eq_ignore_ascii_case(host) || listed.eq_ignore_ascii_case(name);
    list.iter().any(is_it)
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)
    }
}

/// A proxy URL may hold a password.
impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Environment => "Environment",
            Self::Off => "Off",
            Self::Url(_) => "Url(<redacted>)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_only_for_listed_hosts() {
        let plain_http = vec!["localhost:5000".to_owned(), "mirror".to_owned()];
        let settings = Settings {
            plain_http,
            ..Settings::default()
        };
        for (host, plain) in [
            ("localhost:5000", true),
            ("localhost:5001", false),
            ("localhost", false),
            ("mirror", true),
            ("mirror:8080", true),
            ("127.0.0.1:5000", false),
        ] {
            assert_eq!(settings.is_plain(host), plain, "{host}");
        }
    }

    #[test]
    fn a_proxy_password_does_not_print() {
        let proxy = Proxy::Url("http://user:hunter2@proxy".to_owned());
        let settings = Settings {
            proxy,
            ..Settings::default()
        };
        assert!(!format!("{settings:?}").contains("hunter2"));
    }
}
