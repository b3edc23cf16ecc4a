use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use catalog_mirror_store::Store;
use storekit::conformance::{conformance, held_readers};
use testkit::S3;

use super::support::{open_at, settings};

#[tokio::test(flavor = "multi_thread")]
async fn s3_store_passes_conformance() {
    let server = &S3::builder().page(50).start().await;
    let settings = settings(server);
    let number = AtomicU32::new(0);
    let make = async || {
        let place = format!("s3://bucket/{}", number.fetch_add(1, Ordering::Relaxed));
        Arc::new(open_at(server, &settings, &place).await) as Arc<dyn Store>
    };
    conformance(&make).await;
    held_readers(&make).await;
}
