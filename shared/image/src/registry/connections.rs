//! The HTTP clients, with TLS only once it is needed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hyper_util::client::proxy::matcher::Matcher;
use reqwest::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue};
use reqwest::{Client, Response, Url};
use rustls::{ClientConfig, RootCertStore};

use crate::registry::names::{Resolver, World};
use crate::registry::tls;
use crate::registry::zone::Zone;
use crate::settings::{Proxy, Settings, SettingsError};

/// Loading the system's CA certificates takes longer than an unchanged poll, and plain http and layouts need none.
pub(crate) struct Connections {
    settings: Arc<Settings>,
    own_roots: RootCertStore,
    tls: OnceLock<ClientConfig>,
    /// By scheme and the nearest zone: a connection that one may use is never handed to one that may not.
    clients: Mutex<BTreeMap<(bool, Zone), Client>>,
    /// What decides in the client, asked here as well.
    environment: Matcher,
    world: World,
}

impl Connections {
    /// Finds every mistake in the settings, so that nothing is left to go wrong later.
    pub(crate) fn new(settings: &Arc<Settings>, world: World) -> Result<Self, SettingsError> {
        let connections = Self {
            settings: Arc::clone(settings),
            own_roots: tls::roots(&settings.ca_files)?,
            tls: OnceLock::new(),
            clients: Mutex::default(),
            environment: Matcher::from_system(),
            world,
        };
        connections.client(tls::config(RootCertStore::empty())?, Zone::Machine)?;
        Ok(connections)
    }

    /// The client for a URL, which connects to no nearer zone.
    pub(crate) fn to(&self, url: &Url, nearest: Zone) -> Client {
        // With a proxy only the proxy's own name is resolved here, and that is the operator's choice.
        let nearest = if self.is_proxied(url) { Zone::Machine } else { nearest };
        let is_plain = url.scheme() == "http";
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let made = clients.entry((is_plain, nearest)).or_insert_with(|| {
            let tls = if is_plain {
                tls::config(RootCertStore::empty())
            } else {
                Ok(self.tls().clone())
            };
            tls.and_then(|tls| self.client(tls, nearest))
                .expect("the same settings have made a client before")
        });
        made.clone()
    }

    /// Where the answer came from. Behind a proxy that is what the URL says, or anywhere.
    pub(crate) fn sender(&self, response: &Response) -> Zone {
        let url = response.url();
        let peer = response.remote_addr().filter(|_| !self.is_proxied(url));
        peer.map(|address| (self.world.zone)(address.ip()))
            .or(Zone::written(url))
            .unwrap_or(Zone::Internet)
    }

    fn is_proxied(&self, url: &Url) -> bool {
        match &self.settings.proxy {
            Proxy::Off => false,
            Proxy::Url(_) => true,
            Proxy::Environment => {
                let uri = url.as_str().parse().ok();
                uri.is_some_and(|uri| self.environment.intercept(&uri).is_some())
            }
        }
    }

    fn tls(&self) -> &ClientConfig {
        self.tls.get_or_init(|| {
            let roots = tls::with_system_roots(self.own_roots.clone());
            tls::config(roots).expect("the same settings have made a client before")
        })
    }

    fn client(&self, tls: ClientConfig, nearest: Zone) -> Result<Client, SettingsError> {
        let settings = &self.settings;
        let resolver = Resolver {
            world: self.world.clone(),
            nearest,
        };
        let builder = Client::builder()
            .tls_backend_preconfigured(tls)
            .user_agent(&settings.user_agent)
            .default_headers(as_stored())
            .connect_timeout(settings.connect_timeout)
            .read_timeout(settings.read_timeout)
            .dns_resolver(Arc::new(resolver))
            // Redirects are followed here, hop by hop, to judge where they lead and what they may carry.
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            // Digests are of the bytes as they come, also if another crate switches decoders on.
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate();
        let builder = match &settings.proxy {
            Proxy::Environment => builder,
            Proxy::Off => builder.no_proxy(),
            Proxy::Url(url) => builder.proxy(reqwest::Proxy::all(url).map_err(SettingsError::Proxy)?),
        };
        builder.build().map_err(SettingsError::Client)
    }
}

/// RFC 9110, 12.5.3: a request that does not say lets a server choose any coding.
fn as_stored() -> HeaderMap {
    HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("identity"))])
}
