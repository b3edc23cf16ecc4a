use std::{env, path::Path};

use aws_config::environment::{
    EnvironmentVariableCredentialsProvider, EnvironmentVariableRegionProvider,
};
use aws_config::meta::region::RegionProviderChain;
use aws_config::profile::ProfileFileRegionProvider;
use aws_config::retry::RetryConfig;
use aws_config::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_s3::config::SharedCredentialsProvider;
use aws_smithy_http_client::tls::{TlsContext, TrustStore};
use model::pem;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::s3::proxy::client;
use crate::s3::settings::{endpoint, variable};
use crate::s3::{S3Error, S3Settings};

/// Region of an endpoint without regions: the name that most S3-compatible servers take.
const ANY_REGION: &str = "us-east-1";

/// Prepares the configuration that all AWS clients of the process share: HTTP over rustls with
/// ring, credentials, retries, time limits.
///
/// # Errors
/// [`S3Error`]. Missing credentials show at the first request only.
pub async fn sdk_config(settings: &S3Settings) -> Result<SdkConfig, S3Error> {
    settings.check_endpoint()?;
    let mut loader = aws_config::defaults(BehaviorVersion::latest())
        .http_client(client(tls_context()?, settings.proxy_of))
        .retry_config(retries(settings))
        .timeout_config(timeouts(settings))
        .stalled_stream_protection(stalls(settings));
    if let Some(region) = &settings.region {
        loader = loader.region(Region::new(region.clone()));
    } else if settings.endpoint.is_some() || endpoint().is_some() {
        // The chain of the SDK ends with the metadata service of the machine, whose time-out a
        // custom endpoint need not wait for.
        let region = RegionProviderChain::first_try(EnvironmentVariableRegionProvider::new())
            .or_else(ProfileFileRegionProvider::new())
            .or_else(Region::from_static(ANY_REGION));
        loader = loader.region(region);
    }
    Ok(loader.load().await)
}

/// Prepares the configuration from the environment alone, as in Lambda: `AWS_ACCESS_KEY_ID` and its
/// kind, `AWS_REGION`, `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL`. Profiles, roles and metadata
/// services are not read, and their code is not linked.
///
/// # Errors
/// The errors of [`sdk_config`].
pub fn sdk_config_of_environment(settings: &S3Settings) -> Result<SdkConfig, S3Error> {
    settings.check_endpoint()?;
    let region = settings.region.clone().or_else(|| variable("AWS_REGION"));
    let credentials = SharedCredentialsProvider::new(EnvironmentVariableCredentialsProvider::new());
    let mut config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(region.unwrap_or_else(|| ANY_REGION.to_owned())))
        .credentials_provider(credentials)
        .http_client(client(tls_context()?, settings.proxy_of))
        .retry_config(retries(settings))
        .timeout_config(timeouts(settings))
        .stalled_stream_protection(stalls(settings));
    config.set_endpoint_url(endpoint());
    Ok(config.build())
}

fn retries(settings: &S3Settings) -> RetryConfig {
    RetryConfig::standard().with_max_attempts(settings.attempts)
}

fn stalls(settings: &S3Settings) -> StalledStreamProtectionConfig {
    StalledStreamProtectionConfig::enabled()
        .grace_period(settings.stall_timeout)
        .build()
}

/// Returns the time limits up to the head of an answer. The SDK hands a body over as a stream, on
/// which only the limit on stalls holds. A put has limits of its own.
fn timeouts(settings: &S3Settings) -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(settings.connect_timeout)
        // No `read_timeout`: it covers what the limit of an attempt covers, but a request cannot
        // change it without a connection pool of its own.
        .operation_attempt_timeout(settings.attempt_timeout)
        .operation_timeout(settings.total_timeout)
        .build()
}

/// Variable from which other AWS tools take CA certificates. The SDK for Rust does not read it.
const BUNDLE: &str = "AWS_CA_BUNDLE";

/// Returns the CA certificates of the system and those of the operator.
fn tls_context() -> Result<TlsContext, S3Error> {
    let mut trusted = TrustStore::default();
    if let Some(bundle) = env::var_os(BUNDLE).filter(|path| !path.is_empty()) {
        trusted.add_pem_certificate(certificates(Path::new(&bundle))?);
    }
    let context = TlsContext::builder().with_trust_store(trusted).build();
    Ok(context.expect("a trust store is all it takes"))
}

/// Reads the certificates of a file and tries each of them. One that cannot be used is logged and
/// skipped, as for registries; the SDK would panic at it, at the first request only.
fn certificates(path: &Path) -> Result<Vec<u8>, S3Error> {
    let bytes = std::fs::read(path).map_err(|error| {
        let what = format!("cannot read the CA certificates in {}", path.display());
        let source = Some(error.into());
        S3Error { what, source }
    })?;
    let mut usable = Vec::new();
    for (certificate, number) in pem::certificates(&bytes).iter().zip(1_usize..) {
        match try_certificate(certificate) {
            Ok(()) => usable.extend_from_slice(certificate.as_bytes()),
            Err(error) => {
                tracing::warn!(file = %path.display(), number, error, "skipped a CA certificate that cannot be used");
            }
        }
    }
    if usable.is_empty() {
        let what = format!("{} holds no usable certificate", path.display());
        return Err(S3Error { what, source: None });
    }
    Ok(usable)
}

fn try_certificate(pem: &str) -> Result<(), String> {
    let certificate =
        CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|error| error.to_string())?;
    RootCertStore::empty()
        .add(certificate)
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(content: &[u8]) -> Result<Vec<u8>, S3Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        std::fs::write(&path, content).unwrap();
        certificates(&path)
    }

    #[test]
    fn certificates_of_a_bad_file_fail() {
        let error = certificates("/nonexistent".as_ref())
            .unwrap_err()
            .to_string();
        assert_eq!(error, "cannot read the CA certificates in /nonexistent");
        let cut = "-----BEGIN CERTIFICATE-----\nAAAA\n";
        let hollow = format!("{cut}-----END CERTIFICATE-----\n");
        for bad in ["no certificate\n", cut, &hollow] {
            let error = checked(bad.as_bytes()).unwrap_err().to_string();
            assert!(
                error.ends_with("ca.pem holds no usable certificate"),
                "{error}"
            );
        }
    }

    #[tokio::test]
    async fn broken_certificate_is_skipped() {
        let registry = testkit::Registry::builder().tls().start().await;
        let good = registry.ca_pem();
        let hollow = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for pem in [
            format!("{hollow}{good}"),
            format!("{good}{hollow}"),
            good.to_owned(),
        ] {
            assert_eq!(checked(pem.as_bytes()).unwrap(), good.as_bytes());
        }
    }
}
