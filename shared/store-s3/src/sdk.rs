use std::env;

use aws_config::{
    BehaviorVersion, ConfigLoader, Region, SdkConfig, environment::region::EnvironmentVariableRegionProvider,
    meta::region::RegionProviderChain, profile::ProfileFileRegionProvider, retry::RetryConfig,
    stalled_stream_protection::StalledStreamProtectionConfig, timeout::TimeoutConfig,
};
use aws_smithy_http_client::{
    Builder,
    tls::{Provider, rustls_provider::CryptoMode},
};

use crate::{OpenError, Settings, trust};

/// What most S3-compatible servers call the region that they do not have.
const ANY_REGION: &str = "us-east-1";

/// Prepares what every AWS client of the process shares: HTTP over rustls with ring, credentials, retries, time limits.
///
/// # Errors
/// [`OpenError`]. Missing credentials only show at the first request.
pub async fn sdk_config(settings: &Settings) -> Result<SdkConfig, OpenError> {
    settings.check_endpoint()?;
    let http_client = Builder::new()
        .tls_provider(Provider::Rustls(CryptoMode::Ring))
        .tls_context(trust::tls_context(settings)?)
        .build_https();
    let loader = aws_config::defaults(BehaviorVersion::latest())
        .http_client(http_client)
        .retry_config(RetryConfig::standard().with_max_attempts(settings.attempts))
        .timeout_config(timeouts(settings))
        .stalled_stream_protection(
            StalledStreamProtectionConfig::enabled()
                .grace_period(settings.stall_timeout)
                .build(),
        );
    Ok(with_region(loader, settings).load().await)
}

/// These end with the head of an answer: the SDK hands a body over as a stream, on which only the stall limit holds.
fn timeouts(settings: &Settings) -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(settings.connect_timeout)
        .read_timeout(settings.attempt_timeout)
        .operation_attempt_timeout(settings.attempt_timeout)
        .operation_timeout(settings.total_timeout)
        .build()
}

/// The SDK's own chain ends by asking the machine's metadata service, for which a custom endpoint need not wait.
fn with_region(loader: ConfigLoader, settings: &Settings) -> ConfigLoader {
    match &settings.region {
        Some(region) => loader.region(Region::new(region.clone())),
        None if has_custom_endpoint(settings) => loader.region(
            RegionProviderChain::first_try(EnvironmentVariableRegionProvider::new())
                .or_else(ProfileFileRegionProvider::new())
                .or_else(Region::from_static(ANY_REGION)),
        ),
        None => loader,
    }
}

fn has_custom_endpoint(settings: &Settings) -> bool {
    let set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    settings.endpoint.is_some() || set("AWS_ENDPOINT_URL_S3") || set("AWS_ENDPOINT_URL")
}
