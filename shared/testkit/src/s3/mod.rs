//! A small S3 in this process: faithful in what the mirror uses, and wrong by script.

mod answer;
mod bucket;
mod faults;
mod reply;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use bucket::Bucket;
use faults::Script;

pub use bucket::StoredObject;
pub use faults::{S3Call, S3Fault, S3Request};

/// An S3 on a free port of 127.0.0.1, until it is dropped. It takes any credentials and checks no signature.
pub struct S3 {
    url: String,
    shared: Shared,
    task: JoinHandle<()>,
}

/// Chooses what the server can.
pub struct S3Builder {
    state: Inner,
}

#[derive(Clone)]
struct Shared(Arc<Mutex<Inner>>);

struct Inner {
    buckets: BTreeMap<String, Bucket>,
    ignores_conditions: bool,
    /// How many objects one answer lists.
    page: usize,
    script: Script,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for S3Builder {
    fn default() -> Self {
        let buckets = BTreeMap::from([("bucket".to_owned(), Bucket::default())]);
        let state = Inner {
            buckets,
            ignores_conditions: false,
            page: 1000,
            script: Script::default(),
        };
        Self { state }
    }
}

impl S3Builder {
    /// Writes whatever `If-Match` and `If-None-Match` say, as some self-hosted servers do.
    #[must_use]
    pub fn ignoring_conditions(mut self) -> Self {
        self.state.ignores_conditions = true;
        self
    }

    /// Lists so many objects per answer; 1,000 if not said.
    #[must_use]
    pub fn page(mut self, objects: usize) -> Self {
        self.state.page = objects;
        self
    }

    /// Listens.
    pub async fn start(self) -> S3 {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Shared(Arc::new(Mutex::new(self.state)));
        let router = Router::new().fallback(answer::answer).with_state(shared.clone());
        let task = tokio::spawn(async { axum::serve(listener, router).await.unwrap_or_default() });
        S3 {
            url: format!("http://{address}"),
            shared,
            task,
        }
    }
}

impl S3 {
    /// One with an empty bucket named `bucket`.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// To choose more.
    pub fn builder() -> S3Builder {
        S3Builder::default()
    }

    /// The endpoint, `http://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// An object of the bucket as it is now.
    pub fn object(&self, name: &str) -> Option<StoredObject> {
        self.shared.lock().buckets.get("bucket")?.objects.get(name).cloned()
    }

    /// The names of all objects of the bucket.
    pub fn names(&self) -> Vec<String> {
        let state = self.shared.lock();
        state.buckets["bucket"].objects.keys().cloned().collect()
    }

    /// Replaces an object's bytes and nothing else, as a disk that rots does.
    ///
    /// # Panics
    /// Without such an object.
    pub fn damage(&self, name: &str, bytes: impl Into<bytes::Bytes>) {
        let mut state = self.shared.lock();
        let objects = &mut state.buckets.get_mut("bucket").expect("it is always there").objects;
        objects.get_mut(name).expect("there is such an object").bytes = bytes.into();
    }

    /// How many multipart uploads were begun and neither completed nor aborted.
    pub fn open_uploads(&self) -> usize {
        self.shared.lock().buckets["bucket"].uploads.len()
    }

    /// The next request of that kind meets the fault; scripted faults queue up.
    pub fn script(&self, call: S3Call, fault: S3Fault) {
        self.shared.lock().script.push(call, fault);
    }

    /// All requests so far, in the order they came.
    pub fn requests(&self) -> Vec<S3Request> {
        self.shared.lock().script.requests.clone()
    }

    /// How many requests of that kind came.
    pub fn count(&self, call: S3Call) -> usize {
        self.requests().iter().filter(|request| request.call == call).count()
    }

    /// Forgets the requests so far.
    pub fn reset(&self) {
        self.shared.lock().script.requests.clear();
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        self.task.abort();
    }
}
