//! Fetching bearer tokens.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, RequestBuilder, StatusCode, Url};
use serde::Deserialize;

use crate::auth::Secret;
use crate::error::Error;
use crate::registry::grant::Token;
use crate::registry::hop::{self, Hop};
use crate::registry::zone::Zone;
use crate::registry::{Fault, Session};

/// What the token protocol assumes where a service does not say.
const DEFAULT_LIFETIME_S: u64 = 60;

/// Renew this much before the end at most: clocks and networks are slow.
const MOST_MARGIN: Duration = Duration::from_secs(10);

/// Tokens have a few KiB; no server takes a header of more than this.
const MOST_TOKEN_BYTES: usize = 64 << 10;

#[derive(Deserialize)]
struct Answer {
    token: Option<String>,
    access_token: Option<String>,
    expires_in: Option<u64>,
}

/// A fresh token to pull from the session's repository, for its login or for anybody. The realm was named from within
/// `sender`.
pub(crate) async fn fetch(
    session: &Session,
    (realm, sender): (&Url, Zone),
    service: Option<&str>,
) -> Result<Token, Error> {
    let wrong = |why| {
        let service = hop::authority(realm);
        session.failed(Fault::TokenService { service, why })
    };
    let hop = Hop::led(realm.clone(), sender, session.settings()).map_err(|fault| session.failed(fault))?;
    let asked = Instant::now();
    let request = request(session, &hop, service).await?;
    let response = session.exchange(&hop, request).await?;
    match response.status() {
        StatusCode::OK => {}
        // The request may carry a password, and it was meant for the realm alone.
        status if status.is_redirection() => return Err(wrong("redirects, which is not followed")),
        // Some services answer 400 to wrong identity tokens, as OAuth 2 says.
        StatusCode::UNAUTHORIZED | StatusCode::BAD_REQUEST => return Err(session.refused(false).await),
        StatusCode::FORBIDDEN => return Err(session.refused(true).await),
        status => {
            let fault = session.fault(status, response.headers(), "token service");
            return Err(session.failed_at(realm, fault));
        }
    }
    let body = session.small_body(response, "token answer").await?;
    let answer: Answer = serde_json::from_slice(&body).map_err(|_| wrong("answers something other than a token"))?;
    token(answer, asked).ok_or_else(|| wrong("answers without a token that can be sent"))
}

fn token(answer: Answer, asked: Instant) -> Option<Token> {
    let text = answer.token.or(answer.access_token).filter(|text| is_token(text))?;
    let lifetime = Duration::from_secs(answer.expires_in.filter(|s| *s > 0).unwrap_or(DEFAULT_LIFETIME_S));
    let usable = lifetime - (lifetime / 10).min(MOST_MARGIN);
    // A lifetime beyond what a clock can hold is as good as a day.
    let expires = asked.checked_add(usable).unwrap_or(asked + Duration::from_secs(86_400));
    Some(Token {
        text: Arc::from(text),
        expires,
    })
}

/// Whether it can be a header's value, and nothing but that: no line ends, no spaces.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.len() <= MOST_TOKEN_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic())
}

async fn request(session: &Session, hop: &Hop, service: Option<&str>) -> Result<RequestBuilder, Error> {
    let scope = format!("repository:{}:pull", session.repository);
    let realm = &hop.url;
    let get = |pairs: &[(&str, &str)]| {
        let url = with_query(realm, pairs);
        let nearest = hop.nearest;
        session.start(Method::GET, &Hop { url, nearest })
    };
    let mut pairs = vec![("scope", scope.as_str())];
    pairs.extend(service.map(|service| ("service", service)));
    Ok(match session.login().await?.map(|login| &login.secret) {
        None => get(&pairs),
        Some(Secret::Password { user, password }) => {
            pairs.push(("account", user));
            get(&pairs).basic_auth(user, Some(password))
        }
        Some(Secret::IdentityToken(identity)) => {
            pairs.extend([
                ("grant_type", "refresh_token"),
                ("client_id", "catalog-mirror"),
                ("refresh_token", identity),
            ]);
            let mut form = realm.clone();
            form.set_query(None);
            let body = with_query(&form, &pairs).query().unwrap_or_default().to_owned();
            let post = session.start(Method::POST, hop);
            post.header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(body)
        }
    })
}

fn with_query(url: &Url, pairs: &[(&str, &str)]) -> Url {
    let mut url = url.clone();
    url.query_pairs_mut().extend_pairs(pairs);
    url
}
