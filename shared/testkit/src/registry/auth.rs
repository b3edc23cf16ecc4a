//! Authentication of the registry: basic credentials and a token service.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Authentication that the registry requires, and its tokens.
#[derive(Default)]
pub(crate) struct Auth {
    scheme: Scheme,
    /// `Authorization` that the registry accepts for its password; `None` accepts all.
    login: Option<String>,
    password: String,
    /// Lifetime of tokens. Default one minute.
    pub(crate) lifetime: Option<Duration>,
    tokens: BTreeMap<String, Instant>,
    count: usize,
}

#[derive(Default)]
pub(crate) enum Scheme {
    #[default]
    Nothing,
    Basic,
    Bearer,
}

/// Returns the value of `Authorization` for these credentials.
pub(crate) fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

impl Auth {
    pub(crate) fn new(scheme: Scheme, login: Option<(&str, &str)>) -> Self {
        let mut auth = Self {
            scheme,
            ..Self::default()
        };
        if let Some((user, password)) = login {
            auth.login = Some(basic(user, password));
            auth.password = password.to_owned();
        }
        auth
    }

    pub(crate) fn lifetime(&self) -> Duration {
        self.lifetime.unwrap_or(Duration::from_secs(60))
    }

    pub(crate) fn revoke(&mut self) {
        self.tokens.clear();
    }

    /// Returns the challenge to answer with, or `None` if the request may pass.
    pub(crate) fn refuse(&self, authorization: Option<&str>, base: &str) -> Option<String> {
        match self.scheme {
            Scheme::Nothing => None,
            Scheme::Basic if authorization == self.login.as_deref() => None,
            Scheme::Basic => Some(r#"Basic realm="testkit""#.to_owned()),
            Scheme::Bearer if self.is_live(authorization) => None,
            Scheme::Bearer => Some(format!(
                r#"Bearer realm="{base}/token",service="testkit",scope="repository:x:pull""#
            )),
        }
    }

    fn is_live(&self, authorization: Option<&str>) -> bool {
        let token = authorization.and_then(|value| value.strip_prefix("Bearer "));
        token
            .and_then(|token| self.tokens.get(token))
            .is_some_and(|until| *until > Instant::now())
    }

    /// Issues a token for the right login, or for a form with the password as identity token.
    pub(crate) fn token(&mut self, authorization: Option<&str>, form: &str) -> Option<String> {
        let identity = format!("refresh_token={}", self.password);
        let knows_token = !self.password.is_empty() && form.split('&').any(|pair| pair == identity);
        if self.login.is_some() && authorization != self.login.as_deref() && !knows_token {
            return None;
        }
        self.count += 1;
        let token = format!("token-{}", self.count);
        self.tokens
            .insert(token.clone(), Instant::now() + self.lifetime());
        Some(token)
    }
}
