//! Bearer tokens from a registry's token service.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fetch::{AddressScope, FetchError, RedirectTarget, RequestSpec};
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Method, StatusCode, Url};
use serde::Deserialize;

use crate::registry::Session;
use crate::registry::auth_state::BearerToken;
use crate::{Error, ServerFault};

/// Lifetime of a token whose answer gives none, in seconds: the default of the token protocol.
const DEFAULT_LIFETIME_S: u64 = 60;

/// Longest time before the end of a token at which it is renewed. Covers slow clocks and networks.
const MAX_MARGIN: Duration = Duration::from_secs(10);

/// Maximum size of a token. Real ones have a few KiB, and no server accepts a larger header.
const MAX_TOKEN_BYTES: usize = 64 << 10;

#[derive(Deserialize)]
struct TokenAnswer {
    token: Option<String>,
    access_token: Option<String>,
    expires_in: Option<u64>,
}

/// Requests a token for the session's repository, with its login or anonymously. A server within `sender`
/// named the realm.
pub(crate) async fn request(
    session: &Session,
    realm: &Url,
    sender: AddressScope,
    service: Option<&str>,
) -> Result<BearerToken, Error> {
    let wrong = |problem: &str| {
        let (service, problem) = (fetch::authority(realm), problem.to_owned());
        session.server.failed(ServerFault::TokenService { service, problem })
    };
    let target = RedirectTarget::named_by(realm.clone(), sender, &session.settings.http);
    let target = target.map_err(|error| session.server.failed(error))?;
    // Before the request: the lifetime starts when the service issues the token, not when its answer arrives.
    let asked = Instant::now();
    let (target, spec) = token_request(session, target, service).await?;
    // Not `follow`: the request may carry a password, which is meant for the realm alone.
    let response = session
        .server
        .fetched(session.server.fetcher.send(&target, &spec).await)?;
    match response.status() {
        StatusCode::OK => {}
        status if status.is_redirection() => return Err(wrong("redirects, which is not followed")),
        // Some services answer a wrong identity token with 400, as OAuth 2 specifies.
        StatusCode::UNAUTHORIZED | StatusCode::BAD_REQUEST => {
            return Err(session.refused(ServerFault::Unauthorized, true).await);
        }
        StatusCode::FORBIDDEN => return Err(session.refused(ServerFault::Forbidden, true).await),
        status => {
            let error = FetchError::from_status(status, response.headers());
            // Others as faults of the service: a 404 of the registry itself says that there is no such image.
            return Err(if error.is_transient() {
                session.server.failed_at(&response, error)
            } else {
                wrong(&format!("answers {status}"))
            });
        }
    }
    let body = session
        .body(response, session.settings.limits.manifest(), "token answer")
        .await?;
    let answer: TokenAnswer =
        serde_json::from_slice(&body).map_err(|_| wrong("answers something other than a token"))?;
    usable_token(answer, asked).ok_or_else(|| wrong("answers without a token that can be sent"))
}

fn usable_token(answer: TokenAnswer, asked: Instant) -> Option<BearerToken> {
    // Either name is allowed (CNCF distribution, "Token Authentication Specification"), and some services send both. An empty
    // token counts as none, as in Docker's client.
    let token = answer.token.filter(|text| !text.is_empty()).or(answer.access_token);
    let text = token.filter(|text| is_token(text))?;
    let lifetime = Duration::from_secs(answer.expires_in.filter(|s| *s > 0).unwrap_or(DEFAULT_LIFETIME_S));
    // A tenth at most: a service may issue tokens of a few seconds, which a fixed margin would make useless.
    let usable = lifetime - (lifetime / 10).min(MAX_MARGIN);
    // A lifetime beyond the range of the clock counts as a day.
    let expires = asked.checked_add(usable).unwrap_or(asked + Duration::from_secs(86_400));
    Some(BearerToken {
        text: Arc::from(text),
        expires,
    })
}

/// Returns true if the text can be the value of a header: no spaces, no line ends.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_TOKEN_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic())
}

async fn token_request(
    session: &Session,
    mut target: RedirectTarget,
    service: Option<&str>,
) -> Result<(RedirectTarget, RequestSpec), Error> {
    let scope = format!("repository:{}:{}", session.repository, session.actions);
    let mut pairs = vec![("scope", scope.as_str())];
    pairs.extend(service.map(|service| ("service", service)));
    let mut spec = RequestSpec::default();
    if let Some(login) = session.login().await? {
        if let Some(identity) = login.identity_token() {
            pairs.extend([
                ("grant_type", "refresh_token"),
                ("client_id", "catalog-mirror"),
                ("refresh_token", identity),
            ]);
            let mut form = target.url.clone();
            form.set_query(None);
            form.query_pairs_mut().extend_pairs(pairs);
            spec.method = Method::POST;
            spec.body = form.query().map(|body| Bytes::from(body.to_owned()));
            let form_type = HeaderValue::from_static("application/x-www-form-urlencoded");
            spec.headers.insert(CONTENT_TYPE, form_type);
            return Ok((target, spec));
        }
        pairs.push(("account", &login.user));
        spec = spec.with_basic_auth(&login.user, &login.password);
    }
    target.url.query_pairs_mut().extend_pairs(pairs);
    Ok((target, spec))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usable_token_is_token_or_access_token() {
        let text = |body: &str| {
            let answer = serde_json::from_str(body).unwrap();
            usable_token(answer, Instant::now()).map(|token| token.text.to_string())
        };
        for (body, want) in [
            (r#"{"token": "a", "access_token": "b"}"#, Some("a")),
            (r#"{"access_token": "b"}"#, Some("b")),
            (r#"{"token": "", "access_token": "b"}"#, Some("b")),
            (r#"{"token": "a\nb", "access_token": "b"}"#, None),
            (r#"{"token": "", "access_token": ""}"#, None),
            ("{}", None),
        ] {
            assert_eq!(text(body).as_deref(), want, "{body}");
        }
    }
}
