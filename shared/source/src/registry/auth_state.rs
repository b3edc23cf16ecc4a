//! Authentication for one repository, remembered between pulls.

use std::sync::Arc;
use std::time::Instant;

use fetch::{AddressScope, FetchResponse, RequestSpec};

use crate::registry::challenge::Challenge;
use crate::registry::{Session, token};
use crate::{Error, ServerFault};

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

impl Session {
    /// Adds the credentials to a request. Renews an expired token before the registry refuses it.
    pub(crate) async fn authorize(&self, request: RequestSpec) -> Result<RequestSpec, Error> {
        // Held while a token is requested, so that concurrent layers ask the token service once.
        let mut state = self.auth.lock().await;
        Ok(match &state.challenge {
            None => request,
            Some((Challenge::Basic, _)) => match self.login().await? {
                Some(login) => request.with_basic_auth(&login.user, &login.password),
                None => request,
            },
            Some((Challenge::Bearer { realm, service }, sender)) => {
                let live = state.token.as_ref().filter(|token| token.expires > Instant::now());
                let token = match live {
                    Some(token) => token.clone(),
                    None => {
                        let token = token::request(self, realm, *sender, service.as_deref()).await;
                        // The next request is challenged again: the registry may have another token service by then.
                        let token = token.inspect_err(|_| *state = AuthState::default())?;
                        state.token.insert(token).clone()
                    }
                };
                self.server.secrets.lock().add(&token.text);
                request.with_bearer_auth(&token.text)
            }
        })
    }

    /// Stores the challenge of an answer, so that the next [`Self::authorize`] meets it.
    /// Keeps a token that another request has got since `refused` was sent.
    pub(crate) async fn accept_challenge(&self, refused: &RequestSpec, response: &FetchResponse) -> Result<(), Error> {
        let mut state = self.auth.lock().await;
        if let Some(token) = &state.token
            && RequestSpec::default().with_bearer_auth(&token.text).credentials != refused.credentials
        {
            return Ok(());
        }
        let Some(challenge) = Challenge::from_headers(response.headers()) else {
            return Err(self.server.failed(ServerFault::Challenge));
        };
        if challenge == Challenge::Basic && self.login().await?.is_none() {
            return Err(self.server.failed(ServerFault::Unauthorized(None)));
        }
        state.token = None;
        state.challenge = Some((challenge, response.sender));
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
