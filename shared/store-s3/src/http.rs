use aws_sdk_s3::config::{HttpClient, SharedHttpClient};
use aws_smithy_http_client::{
    Builder,
    tls::{Provider, rustls_provider::CryptoMode},
};
use aws_smithy_runtime_api::client::{
    connector_metadata::ConnectorMetadata,
    http::{HttpConnectorSettings, SharedHttpConnector},
    runtime_components::RuntimeComponents,
};

use crate::{OpenError, Settings, trust};

/// HTTP over rustls with ring, for all clients of one process.
///
/// The SDK has every new client load the system's certificates at once, so that its first request need not; it then
/// throws the result away and does it again at that request. This one waits for the request: a function that starts has
/// not come to it yet, and further clients have it already. The trait's own check of a configuration, which is left as
/// it is here, does nothing.
#[derive(Debug)]
struct Lazy(SharedHttpClient);

/// What [`Settings`] name themselves is read here already, so that what is wrong with it is no surprise later.
pub(crate) fn client(settings: &Settings) -> Result<SharedHttpClient, OpenError> {
    let builder = Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring));
    let client = builder.tls_context(trust::tls_context(settings)?).build_https();
    Ok(SharedHttpClient::new(Lazy(client)))
}

impl HttpClient for Lazy {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        self.0.http_connector(settings, components)
    }

    fn connector_metadata(&self) -> Option<ConnectorMetadata> {
        self.0.connector_metadata()
    }
}
