//! The HTTP client: connections, scopes and redirects.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue};
use reqwest::{Client, Response, Url};

use crate::error::{FailedFetch, FetchError, Peer, RedirectRefusal};
use crate::network::{AddressScope, ScopedResolver};
use crate::redirect::RedirectTarget;
use crate::request::RequestSpec;
use crate::response::{FetchResponse, ThroughputGuard, content_coding};
use crate::settings::{FetchSettings, FetchSettingsError, USER_AGENT};
use crate::tls::TrustedCertificates;
use crate::traffic::{Traffic, TrafficCounter};

/// Maximum number of redirects of one request. A CDN in front of a CDN takes two; more is a loop.
const MAX_REDIRECTS: usize = 5;

/// Sends requests within the rules of its settings. Clones share connections and counters.
#[derive(Clone)]
pub struct Fetcher {
    settings: Arc<FetchSettings>,
    pools: Arc<Mutex<Pools>>,
    pub(crate) traffic: Arc<TrafficCounter>,
}

/// The CA certificates in use, and the connections that trust them.
struct Pools {
    trusted: Arc<TrustedCertificates>,
    /// A connection pool that is shared between scopes would lend a connection to a request that
    /// must not go there.
    clients: BTreeMap<ClientKind, Client>,
}

/// The properties that all connections of an HTTP client share.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ClientKind {
    proxy: Option<Url>,
    nearest: AddressScope,
}

impl Fetcher {
    /// Checks the settings; sends nothing.
    ///
    /// # Errors
    /// CA bundles that cannot be used.
    pub fn new(settings: FetchSettings) -> Result<Self, FetchSettingsError> {
        let trusted = TrustedCertificates::read(&settings.ca_files)?;
        let pools = Pools {
            trusted: Arc::clone(&trusted),
            clients: BTreeMap::new(),
        };
        let fetcher = Self {
            settings: Arc::new(settings),
            pools: Arc::new(Mutex::new(pools)),
            traffic: Arc::default(),
        };
        // Building one client now finds every error in the settings, so that none is left for
        // later.
        fetcher.build(&trusted, AddressScope::Machine, None)?;
        Ok(fetcher)
    }

    /// Returns the settings that the fetcher was made with.
    pub fn settings(&self) -> &FetchSettings {
        &self.settings
    }

    /// Trusts these CA bundles from now on in place of those of the settings, and reads the
    /// system's again. Requests that have begun go on. After an error nothing has changed.
    ///
    /// # Errors
    /// CA bundles that cannot be used.
    pub fn trust_ca_files(&self, ca_files: &[PathBuf]) -> Result<(), FetchSettingsError> {
        let trusted = TrustedCertificates::read(ca_files)?;
        let mut pools = self.pools.lock();
        pools.trusted = trusted;
        // Their idle connections were made with the certificates before.
        pools.clients.clear();
        Ok(())
    }

    /// Returns the proxy of a request to `url`, with its password.
    ///
    /// # Errors
    /// [`FetchError::Proxy`].
    pub fn proxy(&self, url: &Url) -> Result<Option<&Url>, FailedFetch> {
        let found = self.settings().proxy.for_url(url);
        found.map_err(|error| error.at(Peer::of(url, None)))
    }

    /// Returns all trusted certificates in PEM, the system's too, for a program that makes
    /// connections of its own.
    pub fn ca_bundle(&self) -> String {
        let trusted = Arc::clone(&self.pools.lock().trusted);
        trusted.pem()
    }

    /// Returns a fetcher on the same connections whose traffic is counted from zero. All its
    /// requests together may wait for servers for `wait_max`, then they fail with
    /// [`FetchError::WaitedTooLong`]; the time that the reader of a body takes does not count.
    #[must_use]
    pub fn with_own_traffic(&self, wait_max: Option<Duration>) -> Self {
        let mut own = self.clone();
        own.traffic = Arc::new(TrafficCounter {
            wait_max,
            ..TrafficCounter::default()
        });
        own
    }

    /// Returns a fetcher on the same connections that may ask a host over plain HTTP.
    #[must_use]
    pub fn with_plain_http(mut self, host: &str) -> Self {
        let settings = Arc::make_mut(&mut self.settings);
        settings.plain_http.push(host.to_owned());
        self
    }

    /// Returns the bytes and requests counted so far.
    pub fn traffic(&self) -> Traffic {
        *self.traffic.counted.lock()
    }

    /// Sends one request and returns any answer, redirects included.
    ///
    /// # Errors
    /// Everything that keeps an answer from coming.
    pub async fn send(
        &self,
        target: &RedirectTarget,
        request: &RequestSpec,
    ) -> Result<FetchResponse, FailedFetch> {
        self.send_as(target, request, true).await
    }

    /// Sends a request to a configured URL and follows redirects. Returns any other answer,
    /// whatever its status.
    ///
    /// # Errors
    /// Everything that keeps an answer from coming, and redirects that break a rule.
    pub async fn follow(
        &self,
        url: Url,
        request: &RequestSpec,
    ) -> Result<FetchResponse, FailedFetch> {
        let home = url.origin();
        let peer = Peer::of(&url, None);
        let mut target = RedirectTarget::configured(url).map_err(|error| error.at(peer.clone()))?;
        // A redirect back to the first server gets no credentials: another server chose that URL.
        let mut is_home = true;
        for _ in 0..=MAX_REDIRECTS {
            let response = self.send_as(&target, request, is_home).await?;
            if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
                return Ok(response);
            }
            target = target
                .follow(response.headers(), response.sender, self.settings())
                .map_err(|error| error.at(response.peer))?;
            is_home &= home == target.url.origin();
        }
        Err(RedirectRefusal::TooMany.error(&target.url).at(peer))
    }

    async fn send_as(
        &self,
        target: &RedirectTarget,
        request: &RequestSpec,
        is_home: bool,
    ) -> Result<FetchResponse, FailedFetch> {
        self.traffic.counted.lock().requests += 1;
        let proxy = self.proxy(&target.url)?;
        let client = self.client(target.nearest, proxy);
        let mut builder = client
            .request(request.method.clone(), target.url.clone())
            .headers(request.headers.clone());
        if is_home {
            builder = builder.headers(request.credentials.clone());
        }
        if let Some(body) = &request.body {
            builder = builder.body(body.clone());
        }
        let peer = Peer::of(&target.url, proxy);
        let sent = self.traffic.wait(builder.send()).await;
        let response = sent
            .and_then(|sent| sent.map_err(FetchError::from_transport))
            .map_err(|error| error.at(peer.clone()))?;
        Ok(FetchResponse {
            is_home,
            // The scope of the peer that answered, and not of its name, which may resolve to
            // another address the next time.
            sender: self.sender(&response, proxy.is_some()),
            guard: ThroughputGuard::new(self.settings().min_throughput),
            traffic: Arc::clone(&self.traffic),
            peer,
            coding: content_coding(response.headers()),
            response,
        })
    }

    /// Returns the client for a request. It connects to no scope nearer than `nearest`.
    fn client(&self, nearest: AddressScope, proxy: Option<&Url>) -> Client {
        // Through a proxy only the proxy's own name is resolved here, and the operator has chosen
        // that.
        let nearest = if proxy.is_some() {
            AddressScope::Machine
        } else {
            nearest
        };
        let kind = ClientKind {
            proxy: proxy.cloned(),
            nearest,
        };
        let mut pools = self.pools.lock();
        if let Some(client) = pools.clients.get(&kind) {
            return client.clone();
        }
        let client = self
            .build(&pools.trusted, nearest, proxy)
            .expect("`new` has built a client from these settings");
        pools.clients.insert(kind, client.clone());
        client
    }

    /// Returns the scope that an answer came from. Behind a proxy only the URL tells, and an
    /// unknown name counts as far.
    fn sender(&self, response: &Response, is_proxied: bool) -> AddressScope {
        if let Some(address) = response.remote_addr()
            && !is_proxied
        {
            return (self.settings.network.scope)(address.ip());
        }
        AddressScope::written_in(response.url()).unwrap_or(AddressScope::Internet)
    }

    fn build(
        &self,
        trusted: &Arc<TrustedCertificates>,
        nearest: AddressScope,
        proxy: Option<&Url>,
    ) -> Result<Client, FetchSettingsError> {
        let settings = self.settings();
        let resolver = ScopedResolver {
            network: settings.network.clone(),
            nearest,
        };
        // Bodies without a content coding. Without the header a server may choose any (RFC 9110,
        // section 12.5.3).
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let builder = Client::builder()
            .tls_backend_preconfigured(Arc::clone(trusted).config()?)
            .user_agent(USER_AGENT)
            .default_headers(headers)
            .connect_timeout(settings.connect_timeout)
            .read_timeout(settings.read_timeout)
            .dns_resolver(Arc::new(resolver))
            // `follow` checks each redirect and drops credentials, which the client's own policy
            // does not.
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            // Digests are of the bytes as sent, even if another crate enables the decoders.
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate();
        // Chosen here for each request, so the client must not look at the environment itself.
        let client = match proxy {
            None => builder.no_proxy().build(),
            Some(proxy) => {
                reqwest::Proxy::all(proxy.as_str()).and_then(|proxy| builder.proxy(proxy).build())
            }
        };
        client.map_err(FetchSettingsError::Client)
    }
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetcher")
            .field("settings", self.settings())
            .finish_non_exhaustive()
    }
}
