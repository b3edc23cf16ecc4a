//! Access to /metrics: the API server authenticates the token, and decides whether its user may
//! `get` the path.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use k8s_openapi::api::authentication::v1::TokenReview;
use k8s_openapi::api::authorization::v1::{NonResourceAttributes, SubjectAccessReview};
use kube::{Api, Client, api::PostParams};
use tokio::{sync::Semaphore, time::timeout};

/// Places for tokens that are reviewed at a time, so that a flood of wrong ones does not reach the
/// API server.
static REVIEWS: Semaphore = Semaphore::const_new(4);

/// Maximum time for the review of one token.
const REVIEW_TIME: Duration = Duration::from_secs(10);

/// Returns 200 for a token whose user may see the page, else the status of the refusal: 401 for one
/// that is not valid, 403 for a user without the right.
async fn status(client: &Client, token: &str) -> StatusCode {
    // Refused, not queued: requests that wait hold connections.
    let Ok(_permit) = REVIEWS.try_acquire() else {
        return StatusCode::TOO_MANY_REQUESTS;
    };
    match timeout(REVIEW_TIME, review(client, token)).await {
        Ok(Ok(status)) => status,
        Ok(Err(error)) => {
            tracing::warn!(
                error = model::text::chain(&error),
                "cannot review access to /metrics"
            );
            StatusCode::SERVICE_UNAVAILABLE
        }
        Err(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

async fn review(client: &Client, token: &str) -> Result<StatusCode, kube::Error> {
    let mut review = TokenReview::default();
    review.spec.token = Some(token.to_owned());
    let reviewed = Api::all(client.clone())
        .create(&PostParams::default(), &review)
        .await?;
    let status = reviewed.status.unwrap_or_default();
    let Some(user) = status.user.filter(|_| status.authenticated == Some(true)) else {
        return Ok(StatusCode::UNAUTHORIZED);
    };
    let mut review = SubjectAccessReview::default();
    let spec = &mut review.spec;
    (spec.user, spec.uid, spec.groups, spec.extra) =
        (user.username, user.uid, user.groups, user.extra);
    spec.non_resource_attributes = Some(NonResourceAttributes {
        path: Some("/metrics".to_owned()),
        verb: Some("get".to_owned()),
    });
    let reviewed = Api::all(client.clone())
        .create(&PostParams::default(), &review)
        .await?;
    Ok(match reviewed.status {
        Some(status) if status.allowed => StatusCode::OK,
        _ => StatusCode::FORBIDDEN,
    })
}

/// Answers 401 without a valid token, and 403 to users without the right. The user of the client
/// needs the role `system:auth-delegator` or the same rules.
pub(crate) async fn check(
    State(client): State<Client>,
    request: Request,
    next: Next,
) -> Result<Response, StatusCode> {
    let token = bearer(request.headers()).ok_or(StatusCode::UNAUTHORIZED)?;
    match status(&client, token).await {
        StatusCode::OK => Ok(next.run(request).await),
        refused => Err(refused),
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
