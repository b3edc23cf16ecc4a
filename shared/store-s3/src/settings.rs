use std::{path::PathBuf, time::Duration};

use rustls::pki_types::pem;

/// How S3 is reached. What is not set here comes from the environment and the profile, as for every AWS tool:
/// credentials, `AWS_REGION`, `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, `AWS_CA_BUNDLE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The URL of an S3-compatible server; AWS itself, or what the environment says, without. Of S3 alone.
    pub endpoint: Option<String>,
    /// The region; a custom endpoint for which nobody names one is taken to be in `us-east-1`.
    pub region: Option<String>,
    /// Whether the bucket stands in the path (`https://endpoint/bucket/key`) rather than in the host name.
    pub path_style: bool,
    /// PEM files of CA certificates that are trusted beside the system's.
    pub ca_files: Vec<PathBuf>,
    /// Whether to trust that nobody else writes where the endpoint does not honour conditional writes.
    pub single_writer: bool,
    /// How often one request is tried at most.
    pub attempts: u32,
    /// How long a connection may take.
    pub connect_timeout: Duration,
    /// How long one attempt may take from sending a request, with its body, to the head of the answer.
    pub attempt_timeout: Duration,
    /// How long a request may take with all its attempts and the waits between, to the head of the answer.
    pub total_timeout: Duration,
    /// How long a body that is being read or sent may stand still.
    pub stall_timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            endpoint: None,
            region: None,
            path_style: false,
            ca_files: Vec::new(),
            single_writer: false,
            // With waits that double from at most one second: about 7 s of trouble are survived.
            attempts: 4,
            connect_timeout: Duration::from_secs(5),
            // The largest body, of 16 MiB, at 5 Mbit/s.
            attempt_timeout: Duration::from_secs(30),
            // Below the shortest sensible interval of polls, so that a poll ends before the next is due.
            total_timeout: Duration::from_secs(60),
            // What the SDK takes, and far above the pauses of a loaded server.
            stall_timeout: Duration::from_secs(20),
        }
    }
}

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The endpoint is no URL of a server.
    #[error("the S3 endpoint {0:?} is no http:// or https:// URL of a host")]
    Endpoint(String),
    /// A CA file cannot be read.
    #[error("cannot read the CA certificates in {path}")]
    CaFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: pem::Error,
    },
    /// A certificate of a CA file cannot be used.
    #[error("{path} holds a certificate that cannot be used")]
    Certificate {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// A CA file holds none.
    #[error("{0} holds no certificate")]
    NoCertificate(PathBuf),
}

impl Settings {
    /// Credentials in a URL would be printed wherever the URL is, so they are refused without being repeated.
    pub(crate) fn check_endpoint(&self) -> Result<(), OpenError> {
        let Some(endpoint) = &self.endpoint else {
            return Ok(());
        };
        let host = ["https://", "http://"]
            .iter()
            .find_map(|scheme| endpoint.strip_prefix(scheme))
            .unwrap_or_default();
        let visible = host.bytes().all(|byte| byte.is_ascii_graphic());
        if host.contains('@') {
            Err(OpenError::Endpoint("(a URL with credentials)".into()))
        } else if host.is_empty() || host.starts_with(['/', ':']) || !visible || host.contains(['?', '#']) {
            Err(OpenError::Endpoint(endpoint.clone()))
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(endpoint: &str) -> Settings {
        Settings {
            endpoint: Some(endpoint.into()),
            ..Settings::default()
        }
    }

    #[test]
    fn an_endpoint_is_a_url_of_a_host() {
        for endpoint in ["http://127.0.0.1:9000", "https://s3.example.com/", "http://[::1]:9000"] {
            with(endpoint).check_endpoint().unwrap();
        }
        for endpoint in [
            "",
            "minio:9000",
            "ftp://h",
            "http://",
            "http:///x",
            "http://a b",
            "http://h/?x",
        ] {
            assert!(with(endpoint).check_endpoint().is_err(), "{endpoint}");
        }
    }

    #[test]
    fn credentials_in_an_endpoint_are_refused_and_not_repeated() {
        let error = with("https://user:secret@host").check_endpoint().unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
