//! Builds the store and the router from the environment.

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use http_api::{LargeBodies, Locate};
use reader::PublishedCatalogs;
use store::s3::S3Store;

use crate::{ReaderEnvironment, answer::Presigned, function};

/// Answers events until the service ends the process.
///
/// # Errors
/// Fails if the S3 client cannot be set up, or if the connection to the service is lost.
pub async fn serve(environment: ReaderEnvironment) -> anyhow::Result<()> {
    let s3 = s3_settings();
    let sdk = store::s3::sdk_config_of_environment(&s3).context("cannot set up the S3 client")?;
    let store = S3Store::new(&sdk, environment.store.clone(), &s3);
    let settings = settings(&environment, &store);
    let catalogs = PublishedCatalogs::new(Arc::new(store), environment.reading);
    let served = lambda_http::lambda_runtime::run(function(catalogs, settings)).await;
    served.map_err(anyhow::Error::from_boxed)
}

/// Returns time-outs that stay together below the 10 s after which a CDN gives up: a client waits while S3 is asked.
fn s3_settings() -> store::s3::S3Settings {
    store::s3::S3Settings {
        attempts: 3,
        connect_timeout: Duration::from_secs(1),
        attempt_timeout: Duration::from_secs(3),
        total_timeout: Duration::from_secs(8),
        stall_timeout: Duration::from_secs(5),
        ..store::s3::S3Settings::of_environment()
    }
}

fn settings(environment: &ReaderEnvironment, store: &S3Store) -> http_api::HttpSettings {
    let to: Arc<dyn Locate> = match &environment.public_url {
        Some(url) => Arc::new(url.clone()),
        None => Arc::new(Presigned(store.clone())),
    };
    http_api::HttpSettings {
        // The CDN adds the fields: its cache has one answer for all origins.
        origins: http_api::Origins::Only(Vec::new()),
        large: Some(LargeBodies {
            above: environment.inline_max,
            max: environment.inline_max,
            to,
        }),
        ..http_api::HttpSettings::default()
    }
}
