//! From the environment to the parts that do the work.

use std::{env, sync::Arc, time::Duration};

use anyhow::Context;
use seal::Trust;
use serve::{BaseUrl, Large, Locate};
use store_s3::{S3Reader, S3Store};

use crate::{Environment, Presigned, function};

/// The variables that send AWS clients elsewhere (AWS SDKs and Tools Reference Guide, "Service-specific endpoints").
const ENDPOINTS: [&str; 2] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"];

/// Answers events for as long as the service sends any.
///
/// # Errors
/// What cannot be set up, and the loss of the service.
pub async fn serve(environment: Environment) -> anyhow::Result<()> {
    let s3 = s3_settings();
    let sdk = store_s3::sdk_config_of_environment(&s3).context("cannot set up the S3 client")?;
    let store = S3Store::new(&sdk, environment.store.clone(), &s3);
    let settings = settings(&environment, &store);
    let served = lambda_http::lambda_runtime::run(function(Arc::new(S3Reader::new(store)), settings)).await;
    served.map_err(anyhow::Error::from_boxed)
}

/// A client waits while S3 is asked, so what takes seconds has failed: together these stay below the 10 s after which
/// a CDN gives up at the latest.
fn s3_settings() -> store_s3::Settings {
    store_s3::Settings {
        // Servers that are not AWS seldom have a host name for each bucket.
        path_style: ENDPOINTS
            .iter()
            .any(|name| env::var(name).is_ok_and(|url| !url.is_empty())),
        attempts: 3,
        connect_timeout: Duration::from_secs(1),
        attempt_timeout: Duration::from_secs(3),
        total_timeout: Duration::from_secs(8),
        stall_timeout: Duration::from_secs(5),
        ..store_s3::Settings::default()
    }
}

fn settings(environment: &Environment, store: &S3Store) -> serve::Settings {
    let to: Arc<dyn Locate> = match &environment.public_url {
        Some(url) => Arc::new(BaseUrl::new(url)),
        None => Arc::new(Presigned::new(store.clone())),
    };
    serve::Settings {
        cache_bytes: environment.cache_bytes,
        freshness: environment.freshness,
        trust: (!environment.verify_keys.is_empty()).then(|| Trust::new(environment.verify_keys.clone())),
        large: Large::Redirect {
            above: environment.inline_max,
            to,
        },
        ..serve::Settings::default()
    }
}
