use std::{path::PathBuf, sync::Arc, thread};

use http::HeaderMap;
use serve::Denial;
use tokio::sync::Semaphore;

use crate::{
    metrics::{File, Login as Outcome, Metrics},
    readers::{
        file::{Readers, parse},
        login::Login,
    },
    reread::{FileError, Reread},
};

/// How many may wait for their password to be verified; a flood gets 429 instead. At the customary cost of 2^10 rounds
/// the last of them waits for a second or two.
const WAITING: usize = 32;

/// Lets those through who may read.
#[derive(Debug)]
pub(crate) struct Guard {
    pub(crate) list: Reread<Readers>,
    waiting: Semaphore,
    /// At most half of the processors hash passwords; the others serve.
    workers: Semaphore,
    metrics: Metrics,
}

impl Guard {
    pub(crate) fn new(path: PathBuf, metrics: Metrics) -> Result<Self, FileError> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            list: Reread::new(File::Readers, vec![path], parse, metrics.clone())?,
            waiting: Semaphore::new(WAITING),
            workers: Semaphore::new((processors / 2).max(1)),
            metrics,
        })
    }

    /// Why a request is not let through.
    pub(crate) async fn objection(&self, headers: &HeaderMap) -> Option<Denial> {
        let outcome = match Login::of(headers) {
            None => Outcome::Refused,
            Some(login) => self.judge(login).await,
        };
        self.metrics.login(outcome);
        match outcome {
            Outcome::Accepted => None,
            Outcome::Refused => Some(Denial::Unauthorized),
            Outcome::Busy => Some(Denial::Busy),
        }
    }

    async fn judge(&self, login: Login) -> Outcome {
        let readers = self.list.now();
        match login {
            Login::Bearer(token) if readers.has_token(None, &token) => Outcome::Accepted,
            Login::Bearer(_) => Outcome::Refused,
            Login::Basic { name, password } if readers.has_token(Some(&name), &password) => Outcome::Accepted,
            Login::Basic { name, password } => self.verify(readers, &name, password).await,
        }
    }

    async fn verify(&self, readers: Arc<Readers>, name: &str, password: Vec<u8>) -> Outcome {
        let mark = readers.verified.mark(name, &password);
        if readers.verified.holds(&mark) {
            return Outcome::Accepted;
        }
        let (hashes, known) = readers.passwords(name);
        let Ok(_place) = self.waiting.try_acquire() else {
            return Outcome::Busy;
        };
        let _worker = self.workers.acquire().await.expect("it is never closed");
        // Another request of the same client may have been first.
        if readers.verified.holds(&mark) {
            return Outcome::Accepted;
        }
        let right = |hash: &String| bcrypt::verify(&password, hash).unwrap_or(false);
        let matches = tokio::task::block_in_place(|| hashes.iter().any(right));
        if matches && known {
            readers.verified.add(mark);
            Outcome::Accepted
        } else {
            Outcome::Refused
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use http::header::AUTHORIZATION;
    use layout::Sha256;

    use super::*;

    fn basic(name: &str, password: &str) -> HeaderMap {
        field(&format!("Basic {}", STANDARD.encode(format!("{name}:{password}"))))
    }

    fn field(value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, value.parse().unwrap());
        headers
    }

    fn guard(cost: u32) -> (tempfile::TempDir, Guard) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("readers");
        let hash = bcrypt::hash("pass", cost).unwrap();
        let text = format!("alice:{hash}\nrobot:sha256:{}\n", Sha256::of(b"token"));
        std::fs::write(&path, text).unwrap();
        let guard = Guard::new(path, Metrics::default()).unwrap();
        (folder, guard)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn only_readers_are_let_through() {
        let (_folder, guard) = guard(4);
        for (headers, denial) in [
            (basic("alice", "pass"), None),
            (basic("alice", "pass"), None),
            (basic("robot", "token"), None),
            (field("Bearer token"), None),
            (basic("alice", "token"), Some(Denial::Unauthorized)),
            (basic("alice", "wrong"), Some(Denial::Unauthorized)),
            (basic("nobody", "pass"), Some(Denial::Unauthorized)),
            (basic("robot", "pass"), Some(Denial::Unauthorized)),
            (field("Bearer pass"), Some(Denial::Unauthorized)),
            (HeaderMap::new(), Some(Denial::Unauthorized)),
        ] {
            assert_eq!(guard.objection(&headers).await, denial);
        }
    }

    /// A flood of wrong passwords neither grows a queue nor locks out those who were verified before.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn a_flood_is_bounded() {
        let (_folder, guard) = guard(8);
        let guard = Arc::new(guard);
        assert_eq!(guard.objection(&basic("alice", "pass")).await, None);
        let flood: Vec<_> = (0..500)
            .map(|number| {
                let guard = Arc::clone(&guard);
                tokio::spawn(async move { guard.objection(&basic("alice", &number.to_string())).await })
            })
            .collect();
        assert_eq!(guard.objection(&basic("alice", "pass")).await, None);
        assert_eq!(guard.objection(&field("Bearer token")).await, None);
        let mut busy = 0;
        for attempt in flood {
            let denial = attempt.await.unwrap();
            assert!(denial.is_some());
            busy += usize::from(denial == Some(Denial::Busy));
        }
        assert!(busy > 100, "{busy} of 500 were not even looked at");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn who_leaves_the_list_is_locked_out() {
        let (folder, guard) = guard(4);
        assert_eq!(guard.objection(&basic("alice", "pass")).await, None);
        let text = format!("robot:sha256:{}\n", Sha256::of(b"token"));
        std::fs::write(folder.path().join("readers"), text).unwrap();
        guard.list.look();
        assert_eq!(
            guard.objection(&basic("alice", "pass")).await,
            Some(Denial::Unauthorized)
        );
        assert_eq!(guard.objection(&field("Bearer token")).await, None);
    }
}
