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

use crate::s3::{OpenError, S3Settings, trust};

/// HTTP client over rustls with ring, for all AWS clients of one process. It loads the certificates of the system at the
/// first request.
///
/// The SDK has every new client load them at once, throws the result away, and loads them again at the first request. That
/// costs a Lambda time at its start. The default of the trait's check of a configuration, which is used here, does nothing.
#[derive(Debug)]
struct Lazy(SharedHttpClient);

/// Makes the HTTP client. Reads the CA files of [`S3Settings`] at once, so that a bad one is reported at the start.
pub(crate) fn client(settings: &S3Settings) -> Result<SharedHttpClient, OpenError> {
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
