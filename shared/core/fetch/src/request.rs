//! A request that can be sent again and redirected.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, RANGE};

/// Method, headers and body of a request, without its URL.
#[derive(Clone, Default)]
pub struct RequestSpec {
    /// Method of the request. Default: GET.
    pub method: Method,
    /// Headers for every server that the request is redirected to.
    pub headers: HeaderMap,
    /// Headers for the first server only, such as `Authorization`.
    pub credentials: HeaderMap,
    /// The body, if there is one.
    pub body: Option<Bytes>,
}

impl RequestSpec {
    /// Creates a request with `method` and nothing else.
    pub fn new(method: Method) -> Self {
        Self {
            method,
            ..Self::default()
        }
    }

    /// Asks for the bytes from `position` on.
    #[must_use]
    pub fn from_position(mut self, position: u64) -> Self {
        if position > 0 {
            let range = HeaderValue::try_from(format!("bytes={position}-"));
            self.headers
                .insert(RANGE, range.expect("digits are a header value"));
        }
        self
    }

    /// Sends a user name and password to the first server.
    #[must_use]
    pub fn with_basic_auth(self, user: &str, password: &str) -> Self {
        let encoded = STANDARD.encode(format!("{user}:{password}"));
        self.with_authorization(&format!("Basic {encoded}"))
    }

    /// Sends a token to the first server. A token with characters that a header cannot carry is
    /// left out.
    #[must_use]
    pub fn with_bearer_auth(self, token: &str) -> Self {
        self.with_authorization(&format!("Bearer {token}"))
    }

    fn with_authorization(mut self, value: &str) -> Self {
        if let Ok(mut value) = HeaderValue::from_str(value) {
            value.set_sensitive(true);
            self.credentials.insert(AUTHORIZATION, value);
        }
        self
    }
}

/// Prints neither the credentials nor the body, which can hold a token.
impl fmt::Debug for RequestSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestSpec")
            .field("method", &self.method)
            .field("headers", &self.headers)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_hides_credentials_and_body() {
        let spec = RequestSpec {
            body: Some(Bytes::from_static(b"refresh_token=hunter2")),
            ..RequestSpec::new(Method::POST).with_basic_auth("robot", "hunter2")
        };
        assert_eq!(
            spec.credentials[AUTHORIZATION],
            "Basic cm9ib3Q6aHVudGVyMg=="
        );
        let text = format!("{spec:?}");
        assert!(
            !text.contains("hunter2") && !text.contains("cm9ib3Q"),
            "{text}"
        );
    }
}
