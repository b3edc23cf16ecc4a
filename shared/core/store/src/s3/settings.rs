use std::{env, time::Duration};

use crate::s3::{ProxyOfUrl, S3Error};

/// Settings of the connection to S3. Unset ones come from the environment and the profile, as in
/// every AWS tool: credentials, `AWS_REGION`, `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`,
/// `AWS_CA_BUNDLE`.
#[derive(Debug, Clone)]
pub struct S3Settings {
    /// URL of an S3-compatible server, for S3 alone. Default: that of the environment, or AWS.
    pub endpoint: Option<String>,
    /// Region. Default: that of the environment or profile, else `us-east-1` for a custom endpoint.
    pub region: Option<String>,
    /// Puts the bucket into the path (`https://endpoint/bucket/key`) instead of the host name.
    /// Default: false.
    pub path_style: bool,
    /// Chooser of the proxy of each request. Default: none, so that all servers are asked directly.
    pub proxy_of: Option<ProxyOfUrl>,
    /// Maximum number of attempts of one request. Default: 4. A delete has one attempt.
    pub attempts: u32,
    /// Time-out of one connection set-up. Default: 5 s.
    pub connect_timeout: Duration,
    /// Time-out of one attempt, from sending the request with its body to the head of the answer.
    /// Default: 30 s. The put of an immutable object has one second more for each 625,000 bytes.
    pub attempt_timeout: Duration,
    /// Time-out of a request with all its attempts and the waits between, to the head of the
    /// answer. Default: 60 s. The put of an immutable object has two seconds more for each 625,000
    /// bytes. That of a mutable document has no more, because the protocol of collection lets a
    /// commit take 60 s.
    pub total_timeout: Duration,
    /// Longest time without progress of a body that is being read, or sent from a file. Default: 20
    /// s.
    pub stall_timeout: Duration,
}

impl Default for S3Settings {
    fn default() -> Self {
        Self {
            endpoint: None,
            region: None,
            path_style: false,
            proxy_of: None,
            // The waits double from at most one second, so about 7 s of trouble are survived.
            attempts: 4,
            connect_timeout: Duration::from_secs(5),
            // A loaded server may take seconds to store a small object. The time for the bytes of a
            // large one is added.
            attempt_timeout: Duration::from_secs(30),
            // Below the shortest sensible interval of polls, so that a poll ends before the next is
            // due.
            total_timeout: Duration::from_secs(60),
            // The default of the SDK, far above the pauses of a loaded server.
            stall_timeout: Duration::from_secs(20),
        }
    }
}

impl S3Settings {
    /// Returns the settings for the server that the environment names. One that is not AWS seldom
    /// has a host name for each bucket.
    pub fn of_environment() -> Self {
        Self {
            path_style: endpoint().is_some(),
            ..Self::default()
        }
    }

    /// Checks the form of the endpoint. Credentials in it are refused and not repeated, because a
    /// URL is printed in logs and errors.
    pub(crate) fn check_endpoint(&self) -> Result<(), S3Error> {
        let Some(endpoint) = &self.endpoint else {
            return Ok(());
        };
        let host = endpoint
            .strip_prefix("https://")
            .or_else(|| endpoint.strip_prefix("http://"))
            .unwrap_or_default();
        let has_credentials = host.contains('@');
        if !host.is_empty()
            && !host.starts_with(['/', ':'])
            && !host.contains(['?', '#'])
            && !has_credentials
            && host.bytes().all(|byte| byte.is_ascii_graphic())
        {
            return Ok(());
        }
        let shown = if has_credentials {
            "(a URL with credentials)"
        } else {
            endpoint
        };
        let what = format!("the S3 endpoint {shown:?} is not an http:// or https:// URL of a host");
        Err(S3Error { what, source: None })
    }
}

/// Returns the URL of another server than AWS, if the environment names one (AWS SDKs and Tools
/// Reference Guide, "Service-specific endpoints").
pub(crate) fn endpoint() -> Option<String> {
    variable("AWS_ENDPOINT_URL_S3").or_else(|| variable("AWS_ENDPOINT_URL"))
}

/// Returns the value of a variable that is not empty.
pub(crate) fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_endpoint_that_is_not_a_url_fails_without_its_credentials() {
        let check = |endpoint: &str| {
            let endpoint = Some(endpoint.to_owned());
            let settings = S3Settings {
                endpoint,
                ..S3Settings::default()
            };
            settings.check_endpoint()
        };
        for endpoint in [
            "http://127.0.0.1:9000",
            "https://s3.example.com/",
            "http://[::1]:9000",
        ] {
            check(endpoint).unwrap();
        }
        for endpoint in [
            "",
            "minio:9000",
            "ftp://h",
            "http://",
            "http:///x",
            "http://a b",
            "http://h/?x",
            "https://user:secret@host",
        ] {
            let error = check(endpoint).expect_err(endpoint).to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
