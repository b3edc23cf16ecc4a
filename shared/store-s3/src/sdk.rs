use std::env;

use aws_config::{
    BehaviorVersion, ConfigLoader, Region, SdkConfig,
    environment::{EnvironmentVariableCredentialsProvider, EnvironmentVariableRegionProvider},
    meta::region::RegionProviderChain,
    profile::ProfileFileRegionProvider,
    retry::RetryConfig,
    stalled_stream_protection::StalledStreamProtectionConfig,
    timeout::TimeoutConfig,
};
use aws_sdk_s3::config::SharedCredentialsProvider;

use crate::{OpenError, Settings, http};

/// What most S3-compatible servers call the region that they do not have.
const ANY_REGION: &str = "us-east-1";

/// Prepares what every AWS client of the process shares: HTTP over rustls with ring, credentials, retries, time limits.
///
/// # Errors
/// [`OpenError`]. Missing credentials only show at the first request.
pub async fn sdk_config(settings: &Settings) -> Result<SdkConfig, OpenError> {
    settings.check_endpoint()?;
    let loader = aws_config::defaults(BehaviorVersion::latest())
        .http_client(http::client(settings)?)
        .retry_config(retries(settings))
        .timeout_config(timeouts(settings))
        .stalled_stream_protection(stalls(settings));
    Ok(with_region(loader, settings).load().await)
}

/// The same where the environment says everything, as in Lambda: `AWS_ACCESS_KEY_ID` and its kind, `AWS_REGION`,
/// `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL`. Without profiles, roles and metadata services, and without their code.
///
/// # Errors
/// As [`sdk_config`].
pub fn sdk_config_of_environment(settings: &Settings) -> Result<SdkConfig, OpenError> {
    settings.check_endpoint()?;
    let region = settings.region.clone().or_else(|| variable("AWS_REGION"));
    let endpoint = variable("AWS_ENDPOINT_URL_S3").or_else(|| variable("AWS_ENDPOINT_URL"));
    let mut config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(region.unwrap_or_else(|| ANY_REGION.to_owned())))
        .credentials_provider(SharedCredentialsProvider::new(
            EnvironmentVariableCredentialsProvider::new(),
        ))
        .http_client(http::client(settings)?)
        .retry_config(retries(settings))
        .timeout_config(timeouts(settings))
        .stalled_stream_protection(stalls(settings));
    config.set_endpoint_url(endpoint);
    Ok(config.build())
}

fn retries(settings: &Settings) -> RetryConfig {
    RetryConfig::standard().with_max_attempts(settings.attempts)
}

fn stalls(settings: &Settings) -> StalledStreamProtectionConfig {
    StalledStreamProtectionConfig::enabled()
        .grace_period(settings.stall_timeout)
        .build()
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
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
    let named = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"].map(variable);
    settings.endpoint.is_some() || named.iter().any(Option::is_some)
}
