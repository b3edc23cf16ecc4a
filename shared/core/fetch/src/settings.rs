//! Settings of outgoing HTTP, each with its default and the reason for it.

use std::{path::PathBuf, time::Duration};

use crate::{network::Network, proxy::Proxy};

/// Value of the `User-Agent` header.
pub const USER_AGENT: &str = concat!("catalog-mirror/", env!("CARGO_PKG_VERSION"));

/// Settings of a [`Fetcher`](crate::Fetcher). The default suits public servers.
#[derive(Clone, Debug)]
pub struct FetchSettings {
    /// PEM bundles to trust besides the system's roots (`SSL_CERT_FILE` and `SSL_CERT_DIR` are
    /// honoured). Default: none.
    pub ca_files: Vec<PathBuf>,
    /// Hosts (`host` for any port, or `host:port`) that may be asked over plain HTTP. Default:
    /// none, not even loopback.
    pub plain_http: Vec<String>,
    /// Lets every host be asked over plain HTTP, for a client whose configured URL is plain HTTP
    /// itself. A redirect from HTTPS to HTTP is still refused. Default: no.
    pub plain_http_everywhere: bool,
    /// Hosts (`host` for any port, or `host:port`) on private or loopback addresses that redirects
    /// and token realms may lead to. Other hosts may lead only to their own address scope and
    /// farther. Default: none.
    pub internal_hosts: Vec<String>,
    /// Maximum time to connect, TLS included. Default: 10 s.
    pub connect_timeout: Duration,
    /// Maximum time without a byte of the answer. Default: 30 s.
    pub read_timeout: Duration,
    /// Attempts of one request and the waits between them.
    pub retry: RetrySchedule,
    /// Minimum speed of a body. Default: 1 KiB/s.
    pub min_throughput: MinThroughput,
    /// Proxy for all requests. Default: from the environment.
    pub proxy: Proxy,
    /// Name resolution. Only tests change it.
    pub network: Network,
}

/// Minimum number of bytes that a body must bring in each period. A slower body is broken off and
/// requested again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinThroughput {
    /// Bytes for each period. Default: 30 KiB, which is 1 KiB/s.
    pub bytes: u64,
    /// Length of a period, counted only while waiting for the server. Default: 30 s.
    pub period: Duration,
}

/// Error of a setting that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FetchSettingsError {
    /// The CA bundle cannot be read.
    #[error("cannot read the CA bundle {path}", path = .path.display())]
    CaFile {
        /// Path of the file on this machine.
        path: PathBuf,
        /// The underlying error, which the chain prints after this one.
        source: std::io::Error,
    },
    /// The CA bundle has no certificate, or none that can be used.
    #[error("the CA bundle {path} holds no usable certificate", path = .0.display())]
    NoCertificate(PathBuf),
    /// TLS could not be set up.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
    /// The HTTP client could not be built.
    #[error("cannot set up the HTTP client")]
    Client(#[source] reqwest::Error),
}

impl Default for FetchSettings {
    fn default() -> Self {
        Self {
            ca_files: Vec::new(),
            plain_http: Vec::new(),
            plain_http_everywhere: false,
            internal_hosts: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(30),
            retry: RetrySchedule::default(),
            min_throughput: MinThroughput::default(),
            proxy: Proxy::of_environment(),
            network: Network::default(),
        }
    }
}

impl Default for MinThroughput {
    fn default() -> Self {
        Self {
            bytes: 30 << 10,
            period: Duration::from_secs(30),
        }
    }
}

impl FetchSettings {
    /// Returns true if `host` (with its port, if one is written) may be asked over plain HTTP.
    pub fn allows_plain_http(&self, host: &str) -> bool {
        self.plain_http_everywhere || is_listed(&self.plain_http, host)
    }
}

/// Returns true if the list names `host`, with its port or for all of them.
pub(crate) fn is_listed(list: &[String], host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, _)) => name,
        None => host,
    };
    list.iter()
        .any(|listed| listed.eq_ignore_ascii_case(host) || listed.eq_ignore_ascii_case(name))
}

/// Limits on the attempts of one request. The waits double from `first` to `longest`, with jitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetrySchedule {
    /// Wait after the first attempt. Default: 200 ms.
    pub first: Duration,
    /// Longest wait that is chosen here; `Retry-After` can ask for more. Default: 10 s.
    pub longest: Duration,
    /// Maximum number of attempts, or `None` if only `total` ends them. Default: 5.
    pub attempts: Option<usize>,
    /// Time from the first attempt to the end of the last wait. A longer `Retry-After` is reported,
    /// not waited for. Default: 60 s.
    pub total: Duration,
}

impl Default for RetrySchedule {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(200),
            longest: Duration::from_secs(10),
            attempts: Some(5),
            total: Duration::from_secs(60),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_allowed_for_listed_hosts_only() {
        let settings = FetchSettings {
            plain_http: vec!["localhost:5000".to_owned(), "mirror".to_owned()],
            ..FetchSettings::default()
        };
        for host in ["localhost:5000", "mirror", "mirror:8080"] {
            assert!(settings.allows_plain_http(host), "{host}");
        }
        for host in ["localhost:5001", "localhost", "127.0.0.1:5000"] {
            assert!(!settings.allows_plain_http(host), "{host}");
        }
    }
}
