use std::time::Duration;

use layout::{Key, Sha256};
use store_s3::{Place, S3Store, Settings, sdk_config};
use testkit::S3;

/// Short limits, since the server is in this process; everything from the environment is overruled.
pub(crate) fn settings(server: &S3) -> Settings {
    Settings {
        endpoint: Some(server.url().into()),
        region: Some("us-east-1".into()),
        path_style: true,
        connect_timeout: Duration::from_secs(5),
        attempt_timeout: Duration::from_secs(5),
        ..Settings::default()
    }
}

pub(crate) async fn open(server: &S3, settings: &Settings) -> S3Store {
    open_at(server, settings, "s3://bucket/mirror").await
}

pub(crate) async fn open_at(_server: &S3, settings: &Settings, place: &str) -> S3Store {
    let config = sdk_config(settings).await.expect("the settings are good");
    let place: Place = place.parse().expect("a place");
    let credentials = aws_sdk_s3::config::Credentials::new("key", "secret", None, None, "test");
    let provider = aws_sdk_s3::config::SharedCredentialsProvider::new(credentials);
    let config = config.into_builder().credentials_provider(provider).build();
    S3Store::new(&config, place, settings)
}

pub(crate) fn current() -> Key {
    Key::Current("a".parse().expect("a name"))
}

pub(crate) fn shard() -> Key {
    Key::Shard(Sha256::of(b"shard"))
}
