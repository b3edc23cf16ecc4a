//! What a repository is asked with: nothing, a password or a token, remembered between pulls.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use reqwest::RequestBuilder;
use reqwest::header::HeaderMap;

use crate::auth::{Login, Secret};
use crate::error::Error;
use crate::registry::challenge::Challenge;
use crate::registry::zone::Zone;
use crate::registry::{Fault, Session, token};

/// The state of authentication for one repository of one registry.
#[derive(Default)]
pub(crate) struct Grant {
    /// Counts changes, so that of several requests that get a 401 only one renews.
    generation: u64,
    /// And from where it came, for a realm must not lead nearer.
    challenge: Option<(Challenge, Zone)>,
    token: Option<Token>,
}

/// A bearer token and when not to use it any more.
#[derive(Clone)]
pub(crate) struct Token {
    pub(crate) text: Arc<str>,
    pub(crate) expires: Instant,
}

/// The credentials of one request, and the generation they are of.
pub(crate) struct Pass {
    generation: u64,
    kind: PassKind,
}

enum PassKind {
    Nothing,
    Basic(Login),
    Bearer(Arc<str>),
}

impl Pass {
    pub(crate) fn apply(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.kind {
            PassKind::Nothing => request,
            PassKind::Basic(Login {
                secret: Secret::Password { user, password },
                ..
            }) => request.basic_auth(user, Some(password)),
            PassKind::Basic(Login {
                secret: Secret::IdentityToken(token),
                ..
            }) => {
                // What docker sends where a registry wants basic and only a token is stored.
                request.basic_auth("<token>", Some(token))
            }
            PassKind::Bearer(token) => request.bearer_auth(token),
        }
    }
}

impl Session {
    /// What to send with the next request. A token that has expired is renewed before it is refused.
    pub(crate) async fn pass(&self) -> Result<Pass, Error> {
        let mut grant = self.grant.lock().await;
        let kind = match &grant.challenge {
            None => PassKind::Nothing,
            Some((Challenge::Basic, _)) => self
                .login()
                .await?
                .map_or(PassKind::Nothing, |login| PassKind::Basic(login.clone())),
            Some((Challenge::Bearer { realm, service }, sender)) => {
                let live = grant.token.as_ref().filter(|token| token.expires > Instant::now());
                let token = match live {
                    Some(token) => token.clone(),
                    None => {
                        let token = token::fetch(self, (realm, *sender), service.as_deref()).await?;
                        grant.generation += 1;
                        grant.token.insert(token).clone()
                    }
                };
                *self.sent.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&token.text));
                PassKind::Bearer(token.text)
            }
        };
        Ok(Pass {
            generation: grant.generation,
            kind,
        })
    }

    /// Takes the challenge of a 401 that came from within `sender`, and makes the next `pass` satisfy it.
    pub(crate) async fn challenged(&self, refused: &Pass, headers: &HeaderMap, sender: Zone) -> Result<(), Error> {
        let mut grant = self.grant.lock().await;
        if grant.generation != refused.generation {
            return Ok(());
        }
        let Some(challenge) = Challenge::from_headers(headers) else {
            return Err(self.failed(Fault::Challenge));
        };
        if challenge == Challenge::Basic && self.login().await?.is_none() {
            return Err(self.failed(Fault::Unauthorized { login: None }));
        }
        grant.generation += 1;
        grant.token = None;
        grant.challenge = Some((challenge, sender));
        Ok(())
    }

    /// Forgets a token that did not help, so that corrected credentials are tried the next time.
    /// Whoever holds the lock is renewing it already.
    pub(crate) fn forget(&self) {
        if let Ok(mut grant) = self.grant.try_lock() {
            grant.generation += 1;
            grant.token = None;
        }
    }
}
