use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use store::{
    Store,
    conformance::{conformance, held_readers},
};
use testkit::S3;

use crate::support::{open_at, settings};

async fn keeps_every_promise(server: &S3, single_writer: bool) {
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
async fn the_bucket_keeps_every_promise() {
    keeps_every_promise(&S3::builder().page(50).start().await, false).await;
}

/// Within one process, looking and then writing is as good, as nobody else writes.
#[tokio::test(flavor = "multi_thread")]
async fn a_single_writer_needs_no_conditions() {
    keeps_every_promise(&S3::builder().ignoring_conditions().start().await, true).await;
}
