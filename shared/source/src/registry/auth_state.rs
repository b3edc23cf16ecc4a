//! Authentication for one repository, remembered between pulls.

use std::sync::Arc;
use std::time::Instant;

use fetch::{AddressScope, Login, RequestSpec};
use reqwest::header::HeaderMap;

use crate::error::Error;
use crate::failure::ServerFault;
use crate::registry::challenge::Challenge;
use crate::registry::{Session, token};

/// The state of authentication for one repository of one registry.
#[derive(Default)]
pub(crate) struct AuthState {
    /// The last challenge and the scope it came from: a token realm must not be nearer.
    challenge: Option<(Challenge, AddressScope)>,
    token: Option<BearerToken>,
}

/// A bearer token and the time from which it is not used any more.
#[derive(Clone)]
pub(crate) struct BearerToken {
    pub(crate) text: Arc<str>,
    pub(crate) expires: Instant,
}

/// The credentials of one request.
pub(crate) enum RequestAuth {
    Anonymous,
    Basic(Login),
    Bearer(Arc<str>),
}

impl RequestAuth {
    pub(crate) const fn is_anonymous(&self) -> bool {
        matches!(self, Self::Anonymous)
    }

    /// Adds the credentials to a request.
    pub(crate) fn apply(&self, request: RequestSpec) -> RequestSpec {
        match self {
            Self::Anonymous => request,
            Self::Basic(login) => login.secret.authorize(request),
            Self::Bearer(token) => request.with_bearer_auth(token),
        }
    }
}

impl AuthState {
    /// Returns true if another request has renewed the credentials since this one was refused.
    fn is_newer_than(&self, refused: &RequestAuth) -> bool {
        match refused {
            RequestAuth::Anonymous => matches!(self.challenge, Some((Challenge::Bearer { .. }, _))),
            RequestAuth::Basic(_) => false,
            RequestAuth::Bearer(sent) => self.token.as_ref().is_some_and(|token| token.text != *sent),
        }
    }
}

impl Session {
    /// Returns the credentials for the next request. Renews an expired token before the registry refuses it.
    pub(crate) async fn request_auth(&self) -> Result<RequestAuth, Error> {
        // Held while a token is requested, so that concurrent layers ask the token service once.
        let mut state = self.auth.lock().await;
        Ok(match &state.challenge {
            None => RequestAuth::Anonymous,
            Some((Challenge::Basic, _)) => self
                .login()
                .await?
                .map_or(RequestAuth::Anonymous, |login| RequestAuth::Basic(login.clone())),
            Some((Challenge::Bearer { realm, service }, sender)) => {
                let live = state.token.as_ref().filter(|token| token.expires > Instant::now());
                let token = match live {
                    Some(token) => token.clone(),
                    None => {
                        let token = token::request(self, realm, *sender, service.as_deref()).await?;
                        state.token.insert(token).clone()
                    }
                };
                self.server.secrets().add(&token.text);
                RequestAuth::Bearer(token.text)
            }
        })
    }

    /// Stores the challenge of an answer that came from within `sender`, so that the next [`Self::request_auth`] meets it.
    pub(crate) async fn accept_challenge(
        &self,
        refused: &RequestAuth,
        headers: &HeaderMap,
        sender: AddressScope,
    ) -> Result<(), Error> {
        let mut state = self.auth.lock().await;
        if state.is_newer_than(refused) {
            return Ok(());
        }
        let Some(challenge) = Challenge::from_headers(headers) else {
            return Err(self.server.failed(ServerFault::Challenge));
        };
        if challenge == Challenge::Basic && self.login().await?.is_none() {
            return Err(self.server.failed(ServerFault::Unauthorized(None)));
        }
        state.token = None;
        state.challenge = Some((challenge, sender));
        Ok(())
    }

    /// Drops a token that did not help, so that the next pull tries corrected credentials.
    pub(crate) fn forget_token(&self) {
        // A lock that is held belongs to a request that is renewing the token already.
        if let Ok(mut state) = self.auth.try_lock() {
            state.token = None;
        }
    }
}
