use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_s3::config::{Credentials, SharedCredentialsProvider};
use model::Key;
use store::s3::{S3Settings, S3Store, sdk_config};
use storekit::conformance::object;
use testkit::S3;

/// Short limits, since the server is in this process; everything from the environment is overruled.
pub(crate) fn settings(server: &S3) -> S3Settings {
    S3Settings {
        endpoint: Some(server.url().into()),
        region: Some("us-east-1".into()),
        path_style: true,
        connect_timeout: Duration::from_secs(5),
        attempt_timeout: Duration::from_secs(5),
        ..S3Settings::default()
    }
}

pub(crate) async fn open(settings: &S3Settings) -> S3Store {
    open_at(settings, "s3://bucket/mirror").await
}

pub(crate) async fn open_at(settings: &S3Settings, place: &str) -> S3Store {
    S3Store::new(
        &config(settings).await,
        place.parse().expect("a place"),
        settings,
    )
}

pub(crate) async fn config(settings: &S3Settings) -> SdkConfig {
    let config = sdk_config(settings).await.expect("the settings are good");
    let credentials = Credentials::new("key", "secret", None, None, "test");
    let provider = SharedCredentialsProvider::new(credentials);
    config.into_builder().credentials_provider(provider).build()
}

/// Returns the immutable key of `x`.
pub(crate) fn shard() -> Key {
    object(b"x")
}
