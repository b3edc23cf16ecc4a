//! TokenAccess to pages that are not for all: the API server authenticates the token and its user is asked for a right.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header::AUTHORIZATION},
    middleware::Next,
    response::{IntoResponse, Response},
};
use k8s_openapi::api::{
    authentication::v1::{SelfSubjectReview, TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};
use model::Sha256;
use tokio::{sync::Semaphore, time::timeout};

/// Time for which an answer of the API server is used. Prometheus asks twice a minute, and a token that was revoked is refused soon.
const FRESH: Duration = Duration::from_secs(60);
/// Maximum number of tokens whose answers are kept. A cluster has a few scrapers.
const TOKENS_MAX: usize = 256;
/// Maximum number of tokens that are reviewed at a time, so that a flood of wrong ones does not reach the API server.
const REVIEWS_MAX: usize = 4;
/// Maximum time for the review of one token.
const REVIEW_TIME: Duration = Duration::from_secs(10);

/// Right that a user needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Right {
    /// To `get` the path `/metrics`, as the API server's roles say.
    Metrics,
    /// To be the user of this process: another replica.
    Replica,
}

/// Answers of the API server, by the hash of the token.
pub(crate) struct TokenAccess {
    client: Client,
    right: Right,
    known: Mutex<HashMap<Sha256, (Verdict, Instant)>>,
    reviews: Semaphore,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Allowed,
    /// The token is not valid (401).
    Unknown,
    /// The user does not have the right (403).
    Forbidden,
}

impl TokenAccess {
    /// Asks with this client, whose user needs the role `system:auth-delegator` or the same rules.
    pub(crate) fn new(client: Client, right: Right) -> Self {
        Self {
            client,
            right,
            known: Mutex::default(),
            reviews: Semaphore::new(REVIEWS_MAX),
        }
    }

    async fn verdict(&self, token: &str) -> Result<Verdict, StatusCode> {
        let hash = Sha256::of(token.as_bytes());
        if let Some(verdict) = self.known(hash) {
            return Ok(verdict);
        }
        // Refused, not queued: requests that wait hold connections.
        let _permit = self.reviews.try_acquire().map_err(|_| StatusCode::TOO_MANY_REQUESTS)?;
        let verdict = match timeout(REVIEW_TIME, self.review(token)).await {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(error)) => {
                tracing::warn!(right = ?self.right, error = model::text::chain(&error), "cannot review access");
                return Err(StatusCode::SERVICE_UNAVAILABLE);
            }
            Err(_) => return Err(StatusCode::SERVICE_UNAVAILABLE),
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, (_, since)| since.elapsed() < FRESH);
        if known.len() < TOKENS_MAX {
            known.insert(hash, (verdict, Instant::now()));
        }
        Ok(verdict)
    }

    fn known(&self, hash: Sha256) -> Option<Verdict> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (verdict, since) = known.get(&hash)?;
        (since.elapsed() < FRESH).then_some(*verdict)
    }

    async fn review(&self, token: &str) -> Result<Verdict, kube::Error> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: Some(token.to_owned()),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        let reviewed = reviews.create(&PostParams::default(), &review).await?;
        let status = reviewed.status.unwrap_or_default();
        let Some(user) = status.user.filter(|_| status.authenticated == Some(true)) else {
            return Ok(Verdict::Unknown);
        };
        let is_allowed = match self.right {
            Right::Metrics => {
                let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
                let reviewed = reviews.create(&PostParams::default(), &access_of(user)).await?;
                reviewed.status.is_some_and(|status| status.allowed)
            }
            Right::Replica => user.username.is_some() && user.username == own_user(&self.client).await?,
        };
        match is_allowed {
            true => Ok(Verdict::Allowed),
            false => Ok(Verdict::Forbidden),
        }
    }
}

/// Returns the name of the user of this process.
pub(crate) async fn own_user(client: &Client) -> Result<Option<String>, kube::Error> {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let reviewed = reviews
        .create(&PostParams::default(), &SelfSubjectReview::default())
        .await?;
    Ok(reviewed.status.and_then(|status| status.user_info?.username))
}

fn access_of(user: UserInfo) -> SubjectAccessReview {
    SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: user.username,
            uid: user.uid,
            groups: user.groups,
            extra: user.extra,
            non_resource_attributes: Some(NonResourceAttributes {
                path: Some("/metrics".to_owned()),
                verb: Some("get".to_owned()),
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    }
}

/// Answers 401 without a valid token, and 403 to users without the right.
pub(crate) async fn check(State(access): State<Arc<TokenAccess>>, request: Request, next: Next) -> Response {
    let Some(token) = bearer(request.headers()) else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    match access.verdict(token).await {
        Ok(Verdict::Allowed) => next.run(request).await,
        Ok(Verdict::Unknown) => StatusCode::UNAUTHORIZED.into_response(),
        Ok(Verdict::Forbidden) => StatusCode::FORBIDDEN.into_response(),
        Err(status) => status.into_response(),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bearer_returns_token_of_that_scheme_only() {
        let token = |value: &str| {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
            bearer(&headers).map(str::to_owned)
        };
        assert_eq!(token("Bearer abc").as_deref(), Some("abc"));
        assert_eq!(token("bearer  abc ").as_deref(), Some("abc"));
        for other in ["Basic abc", "Bearer", "Bearer  ", "abc"] {
            assert_eq!(token(other), None, "{other}");
        }
        assert_eq!(bearer(&HeaderMap::new()), None);
    }
}
