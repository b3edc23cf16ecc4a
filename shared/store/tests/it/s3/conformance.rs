use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use catalog_mirror_store::Store;
use storekit::conformance::{conformance, held_readers};
use testkit::S3;

use super::support::{open_at, settings};

async fn passes_conformance(server: &S3, single_writer: bool) {
    let mut settings = settings(server);
    settings.single_writer = single_writer;
    let number = AtomicU32::new(0);
    let make = async || {
        let place = format!("s3://bucket/{}", number.fetch_add(1, Ordering::Relaxed));
        Arc::new(open_at(server, &settings, &place).await) as Arc<dyn Store>
    };
    conformance(&make).await;
    held_readers(&make).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_store_passes_conformance() {
    passes_conformance(&S3::builder().page(50).start().await, false).await;
}

/// A look before each write is enough within one process, because there is no other writer.
#[tokio::test(flavor = "multi_thread")]
async fn s3_store_of_single_writer_passes_conformance_without_conditions() {
    passes_conformance(&S3::builder().ignoring_conditions().start().await, true).await;
}
