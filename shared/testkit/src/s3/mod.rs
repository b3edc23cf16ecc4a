//! A small S3 server in this process, faithful in all that the mirror uses.

mod answer;
mod bucket;
mod faults;
mod reply;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use parking_lot::Mutex;

use crate::script::Script;
use crate::serving::Serving;
use bucket::{Bucket, Refusal};

pub use bucket::StoredObject;
pub use faults::{S3Call, S3Fault, S3Request};

/// S3 server on a free port of 127.0.0.1, until it is dropped. It accepts any credentials.
pub struct S3 {
    serving: Serving,
    shared: Shared,
}

/// Builder of an S3 server. The default has an empty bucket named `bucket`.
#[derive(Default)]
#[must_use]
pub struct S3Builder {
    state: Inner,
}

type Shared = Arc<Mutex<Inner>>;

#[derive(Default)]
struct Inner {
    /// The only bucket, `bucket`.
    bucket: Bucket,
    conditions: Conditions,
    /// Shortest time between two writes of an object, on a server that behaves as R2.
    r2_limit: Option<Duration>,
    ignores_fields: bool,
    /// Number of objects in one page of a listing. Default 1,000.
    page: Option<usize>,
    script: Script<S3Call, S3Fault, S3Request>,
}

/// Treatment of the conditions of writes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Conditions {
    #[default]
    Honoured,
    Ignored,
    CheckedBefore,
}

impl Inner {
    fn bucket(&mut self, name: &str) -> Result<&mut Bucket, Refusal> {
        if name == "bucket" {
            Ok(&mut self.bucket)
        } else {
            Err((404, "NoSuchBucket"))
        }
    }
}

impl S3Builder {
    /// Ignores `If-Match` and `If-None-Match` on writes, as some self-hosted servers do.
    pub fn ignoring_conditions(mut self) -> Self {
        self.state.conditions = Conditions::Ignored;
        self
    }

    /// Checks conditions some time before it writes, as S3Proxy does, so that several writers at a
    /// time succeed.
    pub fn checking_conditions_before(mut self) -> Self {
        self.state.conditions = Conditions::CheckedBefore;
        self
    }

    /// Behaves as Cloudflare documents R2, which allows one write of an object in a time `limit` of
    /// a second.
    pub fn like_r2(mut self, limit: Duration) -> Self {
        self.state.r2_limit = Some(limit);
        self
    }

    /// Forgets `Content-Type`, `Content-Encoding` and the like of a write.
    pub fn ignoring_fields(mut self) -> Self {
        self.state.ignores_fields = true;
        self
    }

    /// Sets the number of objects in one page of a listing. Default 1,000.
    pub fn page(mut self, objects: usize) -> Self {
        self.state.page = Some(objects);
        self
    }

    /// Starts the server in a task of its own.
    pub async fn start(self) -> S3 {
        let shared = Shared::new(Mutex::new(self.state));
        let router = Router::new()
            .fallback(answer::answer)
            .with_state(shared.clone());
        let serving = Serving::start(Ipv4Addr::LOCALHOST.into(), router, None).await;
        S3 { serving, shared }
    }
}

impl S3 {
    /// Starts a server with the defaults.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// Returns a builder, for other than the defaults.
    pub fn builder() -> S3Builder {
        S3Builder::default()
    }

    /// Returns the endpoint, `http://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        &self.serving.url
    }

    /// Returns an object of the bucket as it is now.
    pub fn object(&self, name: &str) -> Option<StoredObject> {
        self.shared.lock().bucket.objects.get(name).cloned()
    }

    /// Returns the names of all objects of the bucket.
    pub fn names(&self) -> Vec<String> {
        self.shared.lock().bucket.objects.keys().cloned().collect()
    }

    /// Removes an object.
    pub fn remove(&self, name: &str) {
        self.shared.lock().bucket.objects.remove(name);
    }

    /// Adds a fault for the next request of an operation. Several faults are used one after
    /// another.
    pub fn script(&self, call: S3Call, fault: S3Fault) {
        self.shared.lock().script.push(call, fault);
    }

    /// Returns all requests in the order of their arrival.
    pub fn requests(&self) -> Vec<S3Request> {
        self.shared.lock().script.requests.clone()
    }

    /// Returns the number of requests of an operation.
    pub fn count(&self, call: S3Call) -> usize {
        self.requests()
            .iter()
            .filter(|request| request.call == call)
            .count()
    }

    /// Clears the log of requests, not the faults.
    pub fn reset(&self) {
        self.shared.lock().script.requests.clear();
    }
}
