//! Authentication: users, their passwords and tokens.

mod list;
mod refused;
mod verified;

use std::net::SocketAddr;
use std::{path::PathBuf, thread};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, StatusCode, header::AUTHORIZATION};
use tokio::sync::Semaphore;

use crate::error::FileError;
use crate::metrics::{LoginOutcome, ServerMetrics};
use crate::reload::ReloadedFiles;
use crate::users::list::UserList;
use crate::users::refused::RefusedLogins;

/// Requests that may wait for the verification of their password. Further ones are answered with
/// 429. At bcrypt's usual cost of 2^10 rounds the last one waits for one or two seconds.
const WAITING_MAX: usize = 32;

/// Checks the credentials of requests against the user list.
pub(crate) struct Authenticator {
    pub(crate) users: ReloadedFiles<UserList>,
    waiting: Semaphore,
    /// At most half of the processors verify passwords, so that a flood of logins leaves the rest
    /// for serving.
    workers: Semaphore,
    metrics: ServerMetrics,
    refused: RefusedLogins,
}

/// User of a request, and the status that refuses it.
pub(crate) struct LoginResult {
    /// Name with right credentials, or the one that a refused request gives.
    pub(crate) user: Option<String>,
    /// `None` if the user may read.
    pub(crate) refusal: Option<StatusCode>,
}

impl Authenticator {
    /// Reads the user list.
    ///
    /// # Errors
    /// [`FileError`] for a list that cannot be used.
    pub(crate) fn new(path: PathBuf, metrics: ServerMetrics) -> Result<Self, FileError> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            users: ReloadedFiles::new("readers", vec![path], UserList::parse, metrics.clone())?,
            waiting: Semaphore::new(WAITING_MAX),
            workers: Semaphore::new((processors / 2).max(1)),
            metrics,
            refused: RefusedLogins::default(),
        })
    }

    /// Checks the credentials of a request. Logs wrong ones.
    pub(crate) async fn login(&self, headers: &HeaderMap, peer: SocketAddr) -> LoginResult {
        let mut user = None;
        let mut outcome = LoginOutcome::Refused;
        if let Some(credentials) = Credentials::from_headers(headers) {
            user.clone_from(&credentials.name);
            outcome = self.check(credentials, &mut user).await;
        }
        // A client asks without credentials first, to learn that they are needed.
        if outcome == LoginOutcome::Refused && headers.contains_key(AUTHORIZATION) {
            self.refused.warn(peer, user.as_deref());
        }
        self.metrics
            .logins
            .get_or_create(&[("outcome", outcome.into())])
            .inc();
        let refusal = match outcome {
            LoginOutcome::Accepted => None,
            LoginOutcome::Refused => Some(StatusCode::UNAUTHORIZED),
            LoginOutcome::Busy => Some(StatusCode::TOO_MANY_REQUESTS),
        };
        LoginResult { user, refusal }
    }

    /// Checks credentials. The owner of a token becomes the user.
    async fn check(
        &self,
        Credentials { name, secret }: Credentials,
        user: &mut Option<String>,
    ) -> LoginOutcome {
        let users = self.users.current();
        if let Some(owner) = users.token_owner(name.as_deref(), &secret) {
            *user = Some(owner.to_owned());
            return LoginOutcome::Accepted;
        }
        match name {
            Some(name) => self.verify(&users, &name, &secret).await,
            None => LoginOutcome::Refused,
        }
    }

    async fn verify(&self, users: &UserList, name: &str, password: &[u8]) -> LoginOutcome {
        let tag = users.verified.tag(name, password);
        if users.verified.tags.get(&tag).is_some() {
            return LoginOutcome::Accepted;
        }
        let Ok(_place) = self.waiting.try_acquire() else {
            return LoginOutcome::Busy;
        };
        let _worker = self
            .workers
            .acquire()
            .await
            .expect("the semaphore is never closed");
        // Another request with the same password may have been verified in the meantime.
        if users.verified.tags.get(&tag).is_some() {
            return LoginOutcome::Accepted;
        }
        if tokio::task::block_in_place(|| users.has_password(name, password)) {
            users.verified.tags.insert(tag, ());
            LoginOutcome::Accepted
        } else {
            LoginOutcome::Refused
        }
    }
}

/// Credentials of a request, not verified yet. They cannot be printed.
struct Credentials {
    /// Name before a password (RFC 7617). `None` for a Bearer token (RFC 6750, section 2.1).
    name: Option<String>,
    /// The password, which may be a token, or the token.
    secret: Vec<u8>,
}

impl Credentials {
    /// Reads the `Authorization` field. Returns `None` without the field, for other schemes and for
    /// two fields.
    fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let mut fields = headers.get_all(AUTHORIZATION).iter();
        let (Some(field), None) = (fields.next(), fields.next()) else {
            return None;
        };
        let (scheme, credentials) = field.to_str().ok()?.split_once(' ')?;
        let credentials = credentials.trim_matches(' ');
        if scheme.eq_ignore_ascii_case("Bearer") {
            let secret = credentials.into();
            return Some(Self { name: None, secret });
        }
        if !scheme.eq_ignore_ascii_case("Basic") {
            return None;
        }
        let decoded = STANDARD.decode(credentials).ok()?;
        let colon = decoded.iter().position(|&byte| byte == b':')?;
        Some(Self {
            name: Some(String::from_utf8(decoded[..colon].to_vec()).ok()?),
            secret: decoded[colon + 1..].to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::Sha256;

    use super::*;

    fn peer() -> SocketAddr {
        ([192, 0, 2, 1], 1234).into()
    }

    fn basic(name: &str, password: &str) -> HeaderMap {
        fields(&[&format!(
            "Basic {}",
            STANDARD.encode(format!("{name}:{password}"))
        )])
    }

    fn fields(values: &[&str]) -> HeaderMap {
        let values = values
            .iter()
            .map(|value| (AUTHORIZATION, value.parse().unwrap()));
        values.collect()
    }

    /// Users with passwords, one with a token, and `alice` with two passwords.
    fn authenticator(cost: u32) -> (tempfile::TempDir, Authenticator) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users");
        let hash = |password: &str| bcrypt::hash(password, cost).unwrap();
        let (old, new, other) = (hash("1:2"), hash("pass"), hash("open sesame"));
        let token = Sha256::of(b"token");
        let text = format!(
            "# users\n\nalice:{old}\n  robot:sha256:{token}\nalice:{new}\nAladdin:{other}\n"
        );
        std::fs::write(&path, text).unwrap();
        let authenticator = Authenticator::new(path, ServerMetrics::default()).unwrap();
        (folder, authenticator)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn authenticator_accepts_only_right_credentials() {
        let (_folder, authenticator) = authenticator(4);
        for (headers, accepted) in [
            (basic("alice", "pass"), true),
            (basic("alice", "pass"), true),
            (basic("alice", "1:2"), true),
            (basic("robot", "token"), true),
            (fields(&["Bearer token"]), true),
            (fields(&["BEARER  token "]), true),
            // The example of RFC 7617, section 2.
            (fields(&["basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="]), true),
            (basic("alice", "token"), false),
            (basic("alice", "wrong"), false),
            (basic("unknown", "pass"), false),
            (basic("robot", "pass"), false),
            (basic("", "pass"), false),
            (fields(&["Bearer pass"]), false),
            (fields(&["Bearer "]), false),
            (fields(&["Bearer token", "Bearer token"]), false),
            (fields(&["Basic"]), false),
            (fields(&["Basic !!!"]), false),
            (fields(&["Basic bm9jb2xvbg=="]), false),
            (fields(&["Digest QWxhZGRpbjpvcGVuIHNlc2FtZQ=="]), false),
            (fields(&["token"]), false),
            (fields(&[""]), false),
            (fields(&[]), false),
        ] {
            let refusal = authenticator.login(&headers, peer()).await.refusal;
            let expected = if accepted {
                None
            } else {
                Some(StatusCode::UNAUTHORIZED)
            };
            assert_eq!(refusal, expected, "{headers:?}");
        }
    }

    /// A flood of wrong passwords neither grows a queue nor locks out users who were verified
    /// before.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn authenticator_flood_is_answered_busy() {
        let (_folder, authenticator) = authenticator(8);
        let authenticator = Arc::new(authenticator);
        assert!(
            authenticator
                .login(&basic("alice", "pass"), peer())
                .await
                .refusal
                .is_none()
        );
        let flood: Vec<_> = (0..500)
            .map(|number| {
                let authenticator = Arc::clone(&authenticator);
                tokio::spawn(async move {
                    authenticator
                        .login(&basic("alice", &number.to_string()), peer())
                        .await
                        .refusal
                })
            })
            .collect();
        assert!(
            authenticator
                .login(&basic("alice", "pass"), peer())
                .await
                .refusal
                .is_none()
        );
        assert!(
            authenticator
                .login(&fields(&["Bearer token"]), peer())
                .await
                .refusal
                .is_none()
        );
        let mut busy = 0;
        for attempt in flood {
            let refusal = attempt.await.unwrap();
            assert!(refusal.is_some());
            busy += usize::from(matches!(refusal, Some(StatusCode::TOO_MANY_REQUESTS)));
        }
        assert!(
            busy > 100,
            "{busy} of 500 were answered without verification"
        );
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn authenticator_removed_user_is_denied() {
        let (folder, authenticator) = authenticator(4);
        assert!(
            authenticator
                .login(&basic("alice", "pass"), peer())
                .await
                .refusal
                .is_none()
        );
        let text = format!("robot:sha256:{}\n", Sha256::of(b"token"));
        std::fs::write(folder.path().join("users"), text).unwrap();
        authenticator.users.check();
        let refusal = authenticator
            .login(&basic("alice", "pass"), peer())
            .await
            .refusal;
        assert_eq!(refusal, Some(StatusCode::UNAUTHORIZED));
        assert!(
            authenticator
                .login(&fields(&["Bearer token"]), peer())
                .await
                .refusal
                .is_none()
        );
    }
}
