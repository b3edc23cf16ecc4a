//! Authentication for one repository, remembered between pulls.

use std::sync::{Arc, PoisonError};
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
    /// Counts changes, so that only one of several requests with a 401 renews the token.
    generation: u64,
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

/// The credentials of one request and the generation of the state they come from.
pub(crate) struct RequestAuth {
    generation: u64,
    credentials: Credentials,
}

enum Credentials {
    Anonymous,
    Basic(Login),
    Bearer(Arc<str>),
}

impl RequestAuth {
    pub(crate) const fn is_anonymous(&self) -> bool {
        matches!(self.credentials, Credentials::Anonymous)
    }

    /// Adds the credentials to a request.
    pub(crate) fn apply(&self, request: RequestSpec) -> RequestSpec {
        match &self.credentials {
            Credentials::Anonymous => request,
            Credentials::Basic(login) => login.secret.authorize(request),
            Credentials::Bearer(token) => request.with_bearer_auth(token),
        }
    }
}

impl Session {
    /// Returns the credentials for the next request. Renews an expired token before the registry refuses it.
    pub(crate) async fn request_auth(&self) -> Result<RequestAuth, Error> {
        // Held while a token is requested, so that concurrent layers ask the token service once.
        let mut state = self.auth.lock().await;
        let credentials = match &state.challenge {
            None => Credentials::Anonymous,
            Some((Challenge::Basic, _)) => self
                .login()
                .await?
                .map_or(Credentials::Anonymous, |login| Credentials::Basic(login.clone())),
            Some((Challenge::Bearer { realm, service }, sender)) => {
                let live = state.token.as_ref().filter(|token| token.expires > Instant::now());
                let token = match live {
                    Some(token) => token.clone(),
                    None => {
                        let token = token::request(self, realm, *sender, service.as_deref()).await?;
                        state.generation += 1;
                        state.token.insert(token).clone()
                    }
                };
                *self.sent_token.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&token.text));
                Credentials::Bearer(token.text)
            }
        };
        Ok(RequestAuth {
            generation: state.generation,
            credentials,
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
        // Another request has renewed the credentials since this one was sent.
        if state.generation != refused.generation {
            return Ok(());
        }
        let Some(challenge) = Challenge::from_headers(headers) else {
            return Err(self.failed(ServerFault::Challenge));
        };
        if challenge == Challenge::Basic && self.login().await?.is_none() {
            return Err(self.failed(ServerFault::Unauthorized { login: None }));
        }
        state.generation += 1;
        state.token = None;
        state.challenge = Some((challenge, sender));
        Ok(())
    }

    /// Drops a token that did not help, so that the next pull tries corrected credentials.
    pub(crate) fn forget_token(&self) {
        // A lock that is held belongs to a request that is renewing the token already.
        if let Ok(mut state) = self.auth.try_lock() {
            state.generation += 1;
            state.token = None;
        }
    }
}
