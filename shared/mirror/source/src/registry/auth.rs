//! Authentication for one repository, remembered between pulls: challenges, and bearer tokens from
//! the registry's token service.

use std::time::{Duration, Instant};

use bytes::Bytes;
use fetch::{AddressScope, FetchError, FetchResponse, RedirectTarget, RequestSpec};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Method, StatusCode, Url};
use serde::Deserialize;

use crate::{Error, ServerFault, registry::Session};

/// Maximum length of a `WWW-Authenticate` field. Real ones have some hundred bytes, and each byte
/// takes up to forty in memory.
const MAX_CHALLENGE_BYTES: usize = 8 << 10;

/// Maximum number of fields that are read. A registry sends one or two.
const MAX_CHALLENGES: usize = 8;

/// Lifetime of a token whose answer gives none, in seconds: the default of the token protocol.
const DEFAULT_LIFETIME_S: u64 = 60;

/// Longest time before the end of a token at which it is renewed. Covers slow clocks and networks.
const MAX_MARGIN: Duration = Duration::from_secs(10);

/// Maximum size of a token. Real ones have a few KiB, and no server accepts a larger header.
const MAX_TOKEN_BYTES: usize = 64 << 10;

/// The state of authentication for one repository of one registry.
#[derive(Default)]
pub(crate) struct AuthState {
    /// The last challenge and the scope it came from: a token realm must not be nearer.
    challenge: Option<(Challenge, AddressScope)>,
    token: Option<BearerToken>,
}

/// A bearer token and the time from which it is not used any more.
#[derive(Clone)]
struct BearerToken {
    text: String,
    expires: Instant,
}

#[derive(Deserialize)]
struct TokenAnswer {
    token: Option<String>,
    access_token: Option<String>,
    expires_in: Option<u64>,
}

/// Challenge in the `WWW-Authenticate` header that a client can answer (RFC 9110, section 11.6.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Challenge {
    Basic,
    /// Asks for a token from the service at `realm`.
    Bearer {
        realm: Url,
        service: Option<String>,
    },
}

impl Challenge {
    /// Returns the best challenge of an answer. A token is preferred, because a stolen one is worth
    /// less than a password.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let fields = headers.get_all(WWW_AUTHENTICATE).iter();
        let short = fields.filter(|field| field.len() <= MAX_CHALLENGE_BYTES);
        let mut takes_password = false;
        for field in short.take(MAX_CHALLENGES) {
            let Ok(text) = field.to_str() else {
                continue;
            };
            for challenge in http_auth::parse_challenges(text).unwrap_or_default() {
                match supported(&challenge) {
                    Some(Self::Basic) => takes_password = true,
                    Some(bearer) => return Some(bearer),
                    None => {}
                }
            }
        }
        if takes_password {
            return Some(Self::Basic);
        }
        None
    }
}

fn supported(challenge: &http_auth::ChallengeRef<'_>) -> Option<Challenge> {
    if challenge.scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    }
    if !challenge.scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    Some(Challenge::Bearer {
        realm: Url::parse(&param(challenge, "realm")?).ok()?,
        service: param(challenge, "service"),
    })
}

fn param(challenge: &http_auth::ChallengeRef<'_>, name: &str) -> Option<String> {
    let mut params = challenge.params.iter();
    let (_, value) = params.find(|(key, _)| key.eq_ignore_ascii_case(name))?;
    Some(value.to_unescaped())
}

impl Session {
    /// Adds the credentials to a request. Renews an expired token before the registry refuses it.
    pub(crate) async fn authorize(&self, request: RequestSpec) -> Result<RequestSpec, Error> {
        // Held while a token is requested, so that concurrent layers ask the token service once.
        let mut state = self.auth.lock().await;
        match &state.challenge {
            None => Ok(request),
            Some((Challenge::Basic, _)) => match self.login().await? {
                Some(login) => Ok(request.with_basic_auth(&login.user, &login.password)),
                None => Ok(request),
            },
            Some((Challenge::Bearer { realm, service }, sender)) => {
                let token = match &state.token {
                    Some(token) if token.expires > Instant::now() => token.clone(),
                    _ => {
                        let asked = self.request_token(realm, *sender, service.as_deref()).await;
                        if asked.is_err() {
                            // The next request is challenged again: the registry may have another
                            // token service by then.
                            *state = AuthState::default();
                        }
                        let token = asked?;
                        state.token = Some(token.clone());
                        token
                    }
                };
                self.server.secrets.lock().add(&token.text);
                Ok(request.with_bearer_auth(&token.text))
            }
        }
    }

    /// Stores the challenge of an answer, so that the next [`Self::authorize`] meets it.
    /// Keeps a token that another request has got since `refused` was sent.
    pub(crate) async fn accept_challenge(
        &self,
        refused: &RequestSpec,
        response: &FetchResponse,
    ) -> Result<(), Error> {
        let mut state = self.auth.lock().await;
        if let Some(token) = &state.token {
            let current = RequestSpec::default().with_bearer_auth(&token.text);
            if current.credentials != refused.credentials {
                return Ok(());
            }
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

    /// Requests a token for the repository, with its login or anonymously. A server within `sender`
    /// named the realm.
    async fn request_token(
        &self,
        realm: &Url,
        sender: AddressScope,
        service: Option<&str>,
    ) -> Result<BearerToken, Error> {
        let wrong = |problem: &str| {
            self.server.failed(ServerFault::TokenService {
                service: fetch::authority(realm),
                problem: problem.to_owned(),
            })
        };
        let mut target = RedirectTarget::named_by(realm.clone(), sender, &self.settings.http)
            .map_err(|error| self.server.failed(error))?;
        // Before the request: the lifetime starts when the service issues the token, not when its
        // answer arrives.
        let asked = Instant::now();
        let spec = self.token_request(&mut target.url, service).await?;
        // Not `follow`: the request may carry a password, which is meant for the realm alone.
        let sent = self.server.fetcher.send(&target, &spec).await;
        let response = self.server.fetched(sent)?;
        match response.status() {
            StatusCode::OK => {}
            status if status.is_redirection() => {
                return Err(wrong("redirects, which is not followed"));
            }
            // Some services answer a wrong identity token with 400, as OAuth 2 specifies.
            StatusCode::UNAUTHORIZED | StatusCode::BAD_REQUEST => {
                return Err(self.refused(ServerFault::Unauthorized).await);
            }
            StatusCode::FORBIDDEN => return Err(self.refused(ServerFault::Forbidden).await),
            status => {
                let error = FetchError::from_status(status, response.headers());
                // Others as faults of the service: a 404 of the registry itself says that there is
                // no such image.
                if error.is_transient() {
                    return Err(self.server.failed_at(&response, error));
                }
                return Err(wrong(&format!("answers {status}")));
            }
        }
        let limit = self.settings.limits.manifest();
        let body = self.body(response, limit, "token answer").await?;
        let answer = serde_json::from_slice(&body)
            .map_err(|_| wrong("answers something other than a token"))?;
        usable_token(answer, asked).ok_or_else(|| wrong("answers without a token that can be sent"))
    }

    /// Returns the request for a token. Its parameters are in its body, or are added to the URL of
    /// the realm.
    async fn token_request(
        &self,
        realm: &mut Url,
        service: Option<&str>,
    ) -> Result<RequestSpec, Error> {
        let mut pairs = vec![("scope", self.scope.as_str())];
        pairs.extend(service.map(|service| ("service", service)));
        let mut spec = RequestSpec::default();
        if let Some(login) = self.login().await? {
            if let Some(identity) = login.identity_token() {
                pairs.extend([
                    ("grant_type", "refresh_token"),
                    ("client_id", "catalog-mirror"),
                    ("refresh_token", identity),
                ]);
                let mut form = realm.clone();
                form.set_query(None);
                form.query_pairs_mut().extend_pairs(pairs);
                spec.method = Method::POST;
                spec.body = form.query().map(|body| Bytes::from(body.to_owned()));
                let form_type = HeaderValue::from_static("application/x-www-form-urlencoded");
                spec.headers.insert(CONTENT_TYPE, form_type);
                return Ok(spec);
            }
            pairs.push(("account", &login.user));
            spec = spec.with_basic_auth(&login.user, &login.password);
        }
        realm.query_pairs_mut().extend_pairs(pairs);
        Ok(spec)
    }
}

fn usable_token(answer: TokenAnswer, asked: Instant) -> Option<BearerToken> {
    // Either name is allowed (CNCF distribution, "Token Authentication Specification"), and some
    // services send both. An empty token counts as none, as in Docker's client.
    let text = match answer.token {
        Some(text) if !text.is_empty() => text,
        _ => answer.access_token?,
    };
    if !is_token(&text) {
        return None;
    }
    let seconds = match answer.expires_in {
        None | Some(0) => DEFAULT_LIFETIME_S,
        Some(seconds) => seconds,
    };
    let lifetime = Duration::from_secs(seconds);
    // A tenth at most: a service may issue tokens of a few seconds, which a fixed margin would make
    // useless.
    let usable = lifetime - (lifetime / 10).min(MAX_MARGIN);
    // A lifetime beyond the range of the clock counts as a day.
    let expires = asked
        .checked_add(usable)
        .unwrap_or(asked + Duration::from_secs(86_400));
    Some(BearerToken { text, expires })
}

/// Returns true if the text can be the value of a header: no spaces, no line ends.
fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= MAX_TOKEN_BYTES
        && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn challenge(values: &[&str]) -> Option<Challenge> {
        let fields = values
            .iter()
            .map(|value| (WWW_AUTHENTICATE, value.parse().unwrap()));
        Challenge::from_headers(&HeaderMap::from_iter(fields))
    }

    #[test]
    fn challenge_prefers_bearer_and_skips_unknown_or_long_or_further_fields() {
        let basic = r#"Basic realm="a""#;
        let long = format!("Basic realm=\"{}\"", "a".repeat(MAX_CHALLENGE_BYTES));
        let longest = &long[..MAX_CHALLENGE_BYTES - 1];
        let bearer = r#"Bearer realm="https://auth.quay.io/token",service="quay.io",scope="repository:a:pull,push""#;
        let token = Challenge::Bearer {
            realm: Url::parse("https://auth.quay.io/token").unwrap(),
            service: Some("quay.io".to_owned()),
        };
        let further = [&["Negotiate"; MAX_CHALLENGES][..], &[basic]].concat();
        for (fields, want) in [
            (&[bearer][..], Some(token.clone())),
            (&[basic, bearer], Some(token)),
            (&[r#"basic realm="x""#], Some(Challenge::Basic)),
            (&[longest, &long, basic], Some(Challenge::Basic)),
            (&[&long], None),
            (&further, None),
            (&["Negotiate"], None),
            (&["Digest realm=x, nonce=y"], None),
            (&["Bearer"], None),
            (&[r#"Bearer realm="not a url""#], None),
            (&[r#"Bearer realm="http://127.0.0.1:1/token"#], None),
            (&["%01"], None),
            (&[""], None),
            (&[], None),
        ] {
            assert_eq!(challenge(fields), want, "{fields:?}");
        }
    }

    #[test]
    fn usable_token_is_token_or_access_token() {
        let text = |body: &str| {
            let answer = serde_json::from_str(body).unwrap();
            usable_token(answer, Instant::now()).map(|token| token.text)
        };
        for (body, want) in [
            (r#"{"token": "a", "access_token": "b"}"#, Some("a")),
            (r#"{"access_token": "b"}"#, Some("b")),
            (r#"{"token": "", "access_token": "b"}"#, Some("b")),
            (r#"{"token": "a\nb", "access_token": "b"}"#, None),
            (r#"{"token": "a\u0000"}"#, None),
            (r#"{"token": "a b"}"#, None),
            (r#"{"token": "\u001b[31m"}"#, None),
            (r#"{"token": "töken"}"#, None),
            (r#"{"token": "", "access_token": ""}"#, None),
            ("{}", None),
        ] {
            assert_eq!(text(body).as_deref(), want, "{body}");
        }
    }
}
