use std::{path::PathBuf, sync::Arc, thread};

use http::{HeaderMap, StatusCode};
use tokio::sync::Semaphore;

use crate::{
    error::FileError,
    metrics::{FileKind, LoginOutcome, ServerMetrics},
    reload::ReloadedFiles,
    users::{
        credentials::Credentials,
        list::{UserList, parse},
    },
};

/// Requests that may wait for the verification of their password. Further ones are answered with 429. At bcrypt's usual
/// cost of 2^10 rounds the last one waits for one or two seconds.
const WAITING_MAX: usize = 32;

/// Checks the credentials of requests against the user list.
#[derive(Debug)]
pub(crate) struct Authenticator {
    pub(crate) users: ReloadedFiles<UserList>,
    waiting: Semaphore,
    /// At most half of the processors verify passwords, so that a flood of logins leaves the rest for serving.
    workers: Semaphore,
    metrics: ServerMetrics,
}

impl Authenticator {
    /// Reads the user list.
    ///
    /// # Errors
    /// [`FileError`] for a list that cannot be used.
    pub(crate) fn new(path: PathBuf, metrics: ServerMetrics) -> Result<Self, FileError> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            users: ReloadedFiles::new(FileKind::Users, vec![path], parse, metrics.clone())?,
            waiting: Semaphore::new(WAITING_MAX),
            workers: Semaphore::new((processors / 2).max(1)),
            metrics,
        })
    }

    /// Returns the status with which a request is denied, or `None` if its user may read.
    pub(crate) async fn refusal(&self, headers: &HeaderMap) -> Option<StatusCode> {
        let outcome = match Credentials::from_headers(headers) {
            None => LoginOutcome::Refused,
            Some(credentials) => self.check(credentials).await,
        };
        self.metrics.count_login(outcome);
        match outcome {
            LoginOutcome::Accepted => None,
            LoginOutcome::Refused => Some(StatusCode::UNAUTHORIZED),
            LoginOutcome::Busy => Some(StatusCode::TOO_MANY_REQUESTS),
        }
    }

    async fn check(&self, credentials: Credentials) -> LoginOutcome {
        let users = self.users.current();
        match credentials {
            Credentials::Bearer(token) if users.has_token(None, &token) => LoginOutcome::Accepted,
            Credentials::Bearer(_) => LoginOutcome::Refused,
            Credentials::Basic { name, password } if users.has_token(Some(&name), &password) => LoginOutcome::Accepted,
            Credentials::Basic { name, password } => self.verify(users, &name, password).await,
        }
    }

    async fn verify(&self, users: Arc<UserList>, name: &str, password: Vec<u8>) -> LoginOutcome {
        let tag = users.verified.tag(name, &password);
        if users.verified.contains(&tag) {
            return LoginOutcome::Accepted;
        }
        let candidates = users.passwords(name);
        let Ok(_place) = self.waiting.try_acquire() else {
            return LoginOutcome::Busy;
        };
        let _worker = self.workers.acquire().await.expect("the semaphore is never closed");
        // Another request with the same password may have been verified in the meantime.
        if users.verified.contains(&tag) {
            return LoginOutcome::Accepted;
        }
        let is_right = |hash: &String| bcrypt::verify(&password, hash).unwrap_or(false);
        let matches = tokio::task::block_in_place(|| candidates.hashes.iter().any(is_right));
        if matches && candidates.is_known {
            users.verified.add(tag);
            LoginOutcome::Accepted
        } else {
            LoginOutcome::Refused
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use http::header::AUTHORIZATION;
    use model::Sha256;

    use super::*;

    fn basic(name: &str, password: &str) -> HeaderMap {
        field(&format!("Basic {}", STANDARD.encode(format!("{name}:{password}"))))
    }

    fn field(value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, value.parse().unwrap());
        headers
    }

    fn authenticator(cost: u32) -> (tempfile::TempDir, Authenticator) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users");
        let hash = bcrypt::hash("pass", cost).unwrap();
        let text = format!("alice:{hash}\nrobot:sha256:{}\n", Sha256::of(b"token"));
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
            (basic("robot", "token"), true),
            (field("Bearer token"), true),
            (basic("alice", "token"), false),
            (basic("alice", "wrong"), false),
            (basic("unknown", "pass"), false),
            (basic("robot", "pass"), false),
            (field("Bearer pass"), false),
            (HeaderMap::new(), false),
        ] {
            let refusal = authenticator.refusal(&headers).await;
            assert_eq!(refusal.is_none(), accepted, "{refusal:?}");
            assert!(matches!(refusal, None | Some(StatusCode::UNAUTHORIZED)), "{refusal:?}");
        }
    }

    /// A flood of wrong passwords neither grows a queue nor locks out users who were verified before.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn authenticator_flood_is_answered_busy() {
        let (_folder, authenticator) = authenticator(8);
        let authenticator = Arc::new(authenticator);
        assert!(authenticator.refusal(&basic("alice", "pass")).await.is_none());
        let flood: Vec<_> = (0..500)
            .map(|number| {
                let authenticator = Arc::clone(&authenticator);
                tokio::spawn(async move { authenticator.refusal(&basic("alice", &number.to_string())).await })
            })
            .collect();
        assert!(authenticator.refusal(&basic("alice", "pass")).await.is_none());
        assert!(authenticator.refusal(&field("Bearer token")).await.is_none());
        let mut busy = 0;
        for attempt in flood {
            let refusal = attempt.await.unwrap();
            assert!(refusal.is_some());
            busy += usize::from(matches!(refusal, Some(StatusCode::TOO_MANY_REQUESTS)));
        }
        assert!(busy > 100, "{busy} of 500 were answered without verification");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn authenticator_removed_user_is_denied() {
        let (folder, authenticator) = authenticator(4);
        assert!(authenticator.refusal(&basic("alice", "pass")).await.is_none());
        let text = format!("robot:sha256:{}\n", Sha256::of(b"token"));
        std::fs::write(folder.path().join("users"), text).unwrap();
        authenticator.users.check();
        assert!(matches!(
            authenticator.refusal(&basic("alice", "pass")).await,
            Some(StatusCode::UNAUTHORIZED)
        ));
        assert!(authenticator.refusal(&field("Bearer token")).await.is_none());
    }
}
