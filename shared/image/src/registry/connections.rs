//! The HTTP clients, with TLS only once it is needed.

use std::sync::{Arc, OnceLock};

use reqwest::{Client, Url};
use rustls::RootCertStore;

use crate::registry::tls;
use crate::settings::{Proxy, Settings, SettingsError};

/// Loading the system's CA certificates takes longer than an unchanged poll, and plain http and layouts need none.
pub(crate) struct Connections {
    settings: Arc<Settings>,
    own_roots: RootCertStore,
    plain: Client,
    tls: OnceLock<Client>,
}

impl Connections {
    /// Finds every mistake in the settings, so that nothing is left to go wrong later.
    pub(crate) fn new(settings: &Arc<Settings>) -> Result<Self, SettingsError> {
        let own_roots = tls::roots(&settings.ca_files)?;
        let plain = client(settings, RootCertStore::empty())?;
        Ok(Self {
            settings: Arc::clone(settings),
            own_roots,
            plain,
            tls: OnceLock::new(),
        })
    }

    /// The client for a URL.
    pub(crate) fn to(&self, url: &Url) -> &Client {
        if url.scheme() == "http" {
            &self.plain
        } else {
            self.tls.get_or_init(|| self.with_tls())
        }
    }

    fn with_tls(&self) -> Client {
        let roots = tls::with_system_roots(self.own_roots.clone());
        client(&self.settings, roots).expect("the same settings have made a client before")
    }
}

fn client(settings: &Settings, roots: RootCertStore) -> Result<Client, SettingsError> {
    let builder = Client::builder()
        .tls_backend_preconfigured(tls::config(roots)?)
        .user_agent(&settings.user_agent)
        .connect_timeout(settings.connect_timeout)
        .read_timeout(settings.read_timeout)
        // Redirects are followed here, hop by hop, to judge where they lead and what they may carry.
        .redirect(reqwest::redirect::Policy::none())
        .referer(false);
    let builder = match &settings.proxy {
        Proxy::Environment => builder,
        Proxy::Off => builder.no_proxy(),
        Proxy::Url(url) => builder.proxy(reqwest::Proxy::all(url).map_err(SettingsError::Proxy)?),
    };
    builder.build().map_err(SettingsError::Client)
}
