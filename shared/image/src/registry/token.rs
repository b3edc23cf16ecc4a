//! Fetching bearer tokens.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::header::CONTENT_TYPE;
use reqwest::{RequestBuilder, StatusCode, Url};
use serde::Deserialize;

use crate::auth::Secret;
use crate::error::Error;
use crate::registry::grant::Token;
use crate::registry::{Fault, Session, hop};

/// What the token protocol assumes where a service does not say.
const DEFAULT_LIFETIME_S: u64 = 60;

/// Renew this much before the end at most: clocks and networks are slow.
const MOST_MARGIN: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct Answer {
    token: Option<String>,
    access_token: Option<String>,
    expires_in: Option<u64>,
}

/// A fresh token to pull from the session's repository, for its login or for anybody.
pub(crate) async fn fetch(session: &Session, realm: &Url, service: Option<&str>) -> Result<Token, Error> {
    let host = realm.host_str().unwrap_or("nowhere");
    let wrong = |why| {
        session.failed(Fault::TokenService {
            service: host.to_owned(),
            why,
        })
    };
    if let Some(why) = hop::objection(realm, false, session.settings()) {
        return Err(session.failed(Fault::Redirect {
            to: host.to_owned(),
            why,
        }));
    }
    let asked = Instant::now();
    let response = session.exchange(request(session, realm, service).await?).await?;
    match response.status() {
        StatusCode::OK => {}
        // Some services answer 400 to wrong identity tokens, as OAuth 2 says.
        StatusCode::UNAUTHORIZED | StatusCode::BAD_REQUEST => return Err(session.refused(false).await),
        StatusCode::FORBIDDEN => return Err(session.refused(true).await),
        status => return Err(session.failed(session.fault(status, response.headers(), "token service"))),
    }
    let body = session.small_body(response, "token answer").await?;
    let answer: Answer = serde_json::from_slice(&body).map_err(|_| wrong("answers something other than a token"))?;
    token(answer, asked).ok_or_else(|| wrong("answers without a token"))
}

fn token(answer: Answer, asked: Instant) -> Option<Token> {
    let text = answer.token.or(answer.access_token).filter(|text| !text.is_empty())?;
    let lifetime = Duration::from_secs(answer.expires_in.filter(|s| *s > 0).unwrap_or(DEFAULT_LIFETIME_S));
    let usable = lifetime - (lifetime / 10).min(MOST_MARGIN);
    // A lifetime beyond what a clock can hold is as good as a day.
    let expires = asked.checked_add(usable).unwrap_or(asked + Duration::from_secs(86_400));
    Some(Token {
        text: Arc::from(text),
        expires,
    })
}

async fn request(session: &Session, realm: &Url, service: Option<&str>) -> Result<RequestBuilder, Error> {
    let scope = format!("repository:{}:pull", session.repository);
    let http = session.client.0.http.to(realm);
    let mut pairs = vec![("scope", scope.as_str())];
    pairs.extend(service.map(|service| ("service", service)));
    Ok(match session.login().await?.map(|login| &login.secret) {
        None => http.get(with_query(realm, &pairs)),
        Some(Secret::Password { user, password }) => {
            pairs.push(("account", user));
            http.get(with_query(realm, &pairs)).basic_auth(user, Some(password))
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
            http.post(realm.clone())
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(body)
        }
    })
}

fn with_query(url: &Url, pairs: &[(&str, &str)]) -> Url {
    let mut url = url.clone();
    url.query_pairs_mut().extend_pairs(pairs);
    url
}
