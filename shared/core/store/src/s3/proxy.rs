//! HTTP connections of the AWS clients: one pool for each proxy, and one for servers that are asked
//! directly.

use std::{collections::HashMap, sync::Arc, time::Duration};

use aws_smithy_http_client::Connector;
use aws_smithy_http_client::proxy::{ProxyConfig, ProxyError};
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use parking_lot::Mutex;

// The implementation of TLS.
#[cfg(fips)]
const CRYPTO_MODE: CryptoMode = CryptoMode::AwsLcFips;
#[cfg(not(fips))]
const CRYPTO_MODE: CryptoMode = CryptoMode::Ring;

/// Returns the URL of the proxy for a URL, `None` if the server is asked directly, or the reason
/// for which the proxy cannot be used.
pub type ProxyOfUrl = fn(&str) -> Result<Option<String>, String>;

/// Makes the HTTP client, over rustls. It loads the certificates of the system at the
/// first request.
///
/// The SDK has every new client load them at once, throws the result away, and loads them again at
/// the first request. That costs a Lambda time at its start. A client of a function, as here, loads
/// nothing when a configuration is checked.
pub(crate) fn client(tls: TlsContext, proxy_of: Option<ProxyOfUrl>) -> SharedHttpClient {
    let connectors = Arc::new(Connectors {
        tls,
        proxy_of,
        made: Mutex::default(),
    });
    http_client_fn(move |settings, components| {
        SharedHttpConnector::new(ProxyConnector {
            connectors: connectors.clone(),
            settings: settings.clone(),
            components: components.clone(),
        })
    })
}

#[derive(Debug)]
struct Connectors {
    tls: TlsContext,
    proxy_of: Option<ProxyOfUrl>,
    made: Mutex<HashMap<ConnectorKey, SharedHttpConnector>>,
}

/// Settings that the connections of one pool share.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ConnectorKey {
    connect_timeout: Option<Duration>,
    read_timeout: Option<Duration>,
    proxy: Option<String>,
}

/// Connector that chooses the proxy of each request.
#[derive(Debug, Clone)]
struct ProxyConnector {
    connectors: Arc<Connectors>,
    settings: HttpConnectorSettings,
    components: RuntimeComponents,
}

impl ProxyConnector {
    fn connector(&self, proxy: Option<&str>) -> Result<SharedHttpConnector, ProxyError> {
        let key = ConnectorKey {
            connect_timeout: self.settings.connect_timeout(),
            read_timeout: self.settings.read_timeout(),
            proxy: proxy.map(str::to_owned),
        };
        let mut made = self.connectors.made.lock();
        if let Some(connector) = made.get(&key) {
            return Ok(connector.clone());
        }
        let mut builder = Connector::builder().connector_settings(self.settings.clone());
        builder.set_sleep_impl(self.components.sleep_impl());
        if let Some(proxy) = proxy {
            builder.set_proxy_config(Some(ProxyConfig::all(proxy)?));
        }
        let connector = builder
            .tls_provider(Provider::Rustls(CRYPTO_MODE))
            .tls_context(self.connectors.tls.clone())
            .build();
        let connector = SharedHttpConnector::new(connector);
        made.insert(key, connector.clone());
        Ok(connector)
    }
}

impl HttpConnector for ProxyConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let chooser = self.clone();
        HttpConnectorFuture::new(async move {
            let proxy = match chooser.connectors.proxy_of {
                Some(proxy_of) => {
                    proxy_of(request.uri()).map_err(|reason| ConnectorError::user(reason.into()))?
                }
                None => None,
            };
            let connector = chooser
                .connector(proxy.as_deref())
                .map_err(|error| ConnectorError::user(error.into()))?;
            let answer = connector.call(request).await;
            answer.map_err(|error| match proxy {
                Some(proxy) => ProxyFault::of(&proxy, error),
                None => error,
            })
        })
    }
}

/// Failure of a request that a proxy should have passed on.
#[derive(Debug, thiserror::Error)]
#[error("through the proxy {proxy}")]
struct ProxyFault {
    /// Host and port, without a password.
    proxy: String,
    source: ConnectorError,
}

impl ProxyFault {
    /// Adds the proxy to an error. What the retries look at stays.
    fn of(proxy: &str, source: ConnectorError) -> ConnectorError {
        let mut parts = proxy.rsplit(['@', '/']);
        let host = parts.find(|part| !part.is_empty()).unwrap_or_default();
        let is_timeout = source.is_timeout();
        let is_io = source.is_io();
        let is_user = source.is_user();
        let kind = source.as_other();
        let fault = Box::new(Self {
            proxy: host.to_owned(),
            source,
        });
        if is_timeout {
            ConnectorError::timeout(fault)
        } else if is_io {
            ConnectorError::io(fault)
        } else if is_user {
            ConnectorError::user(fault)
        } else {
            ConnectorError::other(fault, kind)
        }
    }
}
