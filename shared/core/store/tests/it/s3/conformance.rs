use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use store::{Store, s3::S3Store};
use storekit::conformance::{Exceptions, conformance};
use testkit::{S3, S3Builder};

use super::support::{config, settings};

#[tokio::test(flavor = "multi_thread")]
async fn s3_store_passes_conformance() {
    passes(S3::builder().page(50)).await;
}

/// R2 is strongly consistent (<https://developers.cloudflare.com/r2/reference/consistency/>).
/// `PutObject` has `If-Match` and `If-None-Match`, and is refused with `412 PreconditionFailed`
/// when the object before it does not match
/// (<https://developers.cloudflare.com/r2/api/s3/extensions/#conditional-operations-in-putobject>).
/// `If-Match` also fails if the key does not exist, where Amazon S3 answers 404
/// (<https://developers.cloudflare.com/r2/api/s3/conditional-operations/>, "Condition values"). Its
/// limit of writes would take hours here.
#[tokio::test(flavor = "multi_thread")]
async fn s3_store_on_r2_passes_conformance() {
    passes(S3::builder().page(50).like_r2(Duration::ZERO)).await;
}

async fn passes(server: S3Builder) {
    let server = &server.start().await;
    let settings = settings(server);
    let config = config(&settings).await;
    let number = AtomicU32::new(0);
    let make = async || {
        let place = format!("s3://bucket/{}", number.fetch_add(1, Ordering::Relaxed));
        let place = place.parse().expect("a place");
        Arc::new(S3Store::new(&config, place, &settings)) as Arc<dyn Store>
    };
    conformance(make, Exceptions::default()).await;
}
