//! A container registry in this process.

mod answer;
pub(crate) mod auth;
mod faults;
pub(crate) mod tls;
mod upload;
mod wire;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use parking_lot::Mutex;

use crate::image::Image;
use crate::script::Script;
use crate::serving::Serving;
use auth::{Auth, Scheme};

pub use faults::{Fault, Kind, Request};
pub use tls::CertificateFault;
pub use wire::{Say, Wire};

/// Registry on a free port of 127.0.0.1, until it is dropped.
pub struct Registry {
    serving: Serving,
    shared: Shared,
}

/// Builder of a registry. The default needs no credentials, speaks plain HTTP and has no images.
#[derive(Default)]
#[must_use]
pub struct Builder {
    state: Inner,
    tls_names: Option<Vec<String>>,
    certificate_fault: CertificateFault,
    address: Option<IpAddr>,
}

pub(crate) type Shared = Arc<Mutex<Inner>>;

#[derive(Default)]
pub(crate) struct Inner {
    auth: Auth,
    /// Status of an answer with a challenge in place of 401.
    challenge_status: Option<u16>,
    /// URL of this registry, `scheme://host:port`.
    base: String,
    has_no_head: bool,
    /// Content coding of all bodies, though none is asked for.
    coding: Option<&'static str>,
    has_no_ranges: bool,
    /// Manifests with their media types, by repository and tag or digest.
    manifests: BTreeMap<(String, String), (String, Bytes)>,
    blobs: BTreeMap<String, Bytes>,
    /// Parts of uploads that are not complete, by path.
    uploads: BTreeMap<String, Vec<u8>>,
    /// Number of uploads that were begun.
    begun: u64,
    /// True if manifests can be deleted.
    deletes: bool,
    /// True if an index may name images that are not there.
    takes_sparse: bool,
    script: Script<Kind, Fault, Request>,
    /// Faults of all requests with a method whose path has a text in it.
    rules: Vec<(&'static str, String, Fault)>,
    delays: BTreeMap<Kind, Duration>,
    /// Numbers of requests that are being answered, now and at most.
    running: BTreeMap<Kind, (usize, usize)>,
}

/// Returns the key of a manifest, by tag or digest.
pub(crate) fn named(repository: &str, version: &str) -> (String, String) {
    (repository.to_owned(), version.to_owned())
}

impl Builder {
    /// Requires basic credentials for every request.
    pub fn basic(mut self, user: &str, password: &str) -> Self {
        self.state.auth = Auth::new(Scheme::Basic, Some((user, password)));
        self
    }

    /// Requires a bearer token, which its own token service issues for these credentials.
    pub fn bearer(mut self, user: &str, password: &str) -> Self {
        self.state.auth = Auth::new(Scheme::Bearer, Some((user, password)));
        self
    }

    /// Requires a bearer token, which its own token service issues without credentials.
    pub fn anonymous_bearer(mut self) -> Self {
        self.state.auth = Auth::new(Scheme::Bearer, None);
        self
    }

    /// Challenges with another status than 401.
    pub fn challenging_with(mut self, status: u16) -> Self {
        self.state.challenge_status = Some(status);
        self
    }

    /// Sets the lifetime of tokens. Default one minute.
    pub fn token_lifetime(mut self, lifetime: Duration) -> Self {
        self.state.auth.lifetime = Some(lifetime);
        self
    }

    /// Answers every HEAD request with 405.
    pub fn without_head(mut self) -> Self {
        self.state.has_no_head = true;
        self
    }

    /// Sends all bodies with a content coding, whatever is asked for: `gzip`, or another name for
    /// bytes of no use.
    pub fn coded_as(mut self, coding: &'static str) -> Self {
        self.state.coding = Some(coding);
        self
    }

    /// Ignores `Range` and sends whole blobs.
    pub fn without_ranges(mut self) -> Self {
        self.state.has_no_ranges = true;
        self
    }

    /// Speaks TLS with a certificate for 127.0.0.1 from a CA that is made for this registry.
    pub fn tls(self) -> Self {
        self.tls_for(&["127.0.0.1"])
    }

    /// Speaks TLS with a certificate for other names.
    pub fn tls_for(mut self, names: &[&str]) -> Self {
        self.tls_names = Some(names.iter().map(|name| (*name).to_owned()).collect());
        self
    }

    /// Speaks TLS with a faulty certificate for 127.0.0.1.
    pub fn tls_with_fault(mut self, fault: CertificateFault) -> Self {
        self.certificate_fault = fault;
        self.tls()
    }

    /// Listens on another address of this machine. On Linux that may be any in 127.0.0.0/8.
    pub fn at(mut self, address: IpAddr) -> Self {
        self.address = Some(address);
        self
    }

    /// Lets manifests be deleted.
    pub fn deleting(mut self) -> Self {
        self.state.deletes = true;
        self
    }

    /// Takes an index that names images which are not there.
    pub fn taking_sparse(mut self) -> Self {
        self.state.takes_sparse = true;
        self
    }

    /// Starts the registry in a task of its own.
    pub async fn start(self) -> Registry {
        let address = self.address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let shared = Shared::new(Mutex::new(self.state));
        let router = Router::new()
            .fallback(answer::answer)
            .with_state(shared.clone());
        let tls = self
            .tls_names
            .as_deref()
            .map(|names| (names, self.certificate_fault));
        let serving = Serving::start(address, router, tls).await;
        shared.lock().base.clone_from(&serving.url);
        Registry { serving, shared }
    }
}

impl Registry {
    /// Starts a registry with the defaults.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// Returns a builder, for other than the defaults.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns the address as in image references, `127.0.0.1:PORT`.
    pub fn host(&self) -> &str {
        self.serving.host()
    }

    /// Returns the CA of the certificate, in PEM.
    pub fn ca_pem(&self) -> &str {
        self.serving.ca_pem()
    }

    /// Returns the reference to `tag` as users write it.
    pub fn reference(&self, repository: &str, tag: &str) -> String {
        format!("{}/{repository}:{tag}", self.host())
    }

    /// Stores the image and moves the tag to it.
    pub fn push(&self, repository: &str, tag: &str, image: &Image) {
        let mut state = self.shared.lock();
        for (digest, manifest) in &image.manifests {
            state
                .manifests
                .insert(named(repository, digest), manifest.clone());
        }
        state.blobs.extend(image.blobs.clone());
        let top = image.manifests[&image.digest].clone();
        state.manifests.insert(named(repository, tag), top);
    }

    /// Replaces the bytes that are served under a digest.
    pub fn replace_blob(&self, digest: &str, bytes: impl Into<Bytes>) {
        self.shared
            .lock()
            .blobs
            .insert(digest.to_owned(), bytes.into());
    }

    /// Adds a fault for the next request of a kind. Several faults are used one after another.
    pub fn script(&self, kind: Kind, fault: Fault) {
        self.shared.lock().script.push(kind, fault);
    }

    /// Adds a fault for all requests with a method whose path has a text in it.
    pub fn rule(&self, method: &'static str, path: &str, fault: Fault) {
        let rule = (method, path.to_owned(), fault);
        self.shared.lock().rules.push(rule);
    }

    /// Removes all faults of [`Self::rule`].
    pub fn clear_rules(&self) {
        self.shared.lock().rules.clear();
    }

    /// Removes a tag or a digest of a repository.
    pub fn remove(&self, repository: &str, version: &str) {
        self.shared
            .lock()
            .manifests
            .remove(&named(repository, version));
    }

    /// Returns the repository and the tag or digest of each manifest.
    pub fn versions(&self) -> Vec<(String, String)> {
        self.shared.lock().manifests.keys().cloned().collect()
    }

    /// Returns the manifest under a tag or digest.
    pub fn manifest(&self, repository: &str, version: &str) -> Option<Bytes> {
        let state = self.shared.lock();
        let (_, bytes) = state.manifests.get(&named(repository, version))?;
        Some(bytes.clone())
    }

    /// Returns the blob under a digest.
    pub fn blob(&self, digest: &str) -> Option<Bytes> {
        self.shared.lock().blobs.get(digest).cloned()
    }

    /// Delays every request of a kind.
    pub fn delay(&self, kind: Kind, delay: Duration) {
        self.shared.lock().delays.insert(kind, delay);
    }

    /// Returns all requests in the order of their arrival.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.lock().script.requests.clone()
    }

    /// Returns the number of requests of a kind.
    pub fn count(&self, kind: Kind) -> usize {
        self.requests()
            .iter()
            .filter(|request| request.kind == kind)
            .count()
    }

    /// Returns the largest number of requests of a kind that were answered at the same time.
    pub fn most_at_once(&self, kind: Kind) -> usize {
        match self.shared.lock().running.get(&kind) {
            Some((_, most)) => *most,
            None => 0,
        }
    }

    /// Clears the log of requests, not the faults.
    pub fn reset(&self) {
        self.shared.lock().script.requests.clear();
    }

    /// Revokes all tokens that were issued so far.
    pub fn revoke_tokens(&self) {
        self.shared.lock().auth.revoke();
    }
}
