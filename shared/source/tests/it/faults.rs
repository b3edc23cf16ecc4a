//! Registries that refuse, fail, break and lie.

use std::time::{Duration, Instant};

use catalog_mirror_source::{FetchError, ServerFault};
use testkit::{Fault, Kind, Layer, Registry};

use crate::kit::{catalog, client, fault, pull, push, pushed, small, source};

#[tokio::test]
async fn error_names_missing_tag() {
    let registry = Registry::start().await;
    let (found, text) = fault(client(registry.host()).resolve(&source(&registry)).await);
    assert!(matches!(found, ServerFault::NotFound { .. }));
    let want = format!(
        "registry {}, repository ns/cat: 404, there is no tag v1; check the name",
        registry.host()
    );
    assert!(text.starts_with(&want), "{text}");
    assert_eq!(registry.requests().len(), 1, "a 404 is not tried again");
}

#[tokio::test]
async fn retry_after_is_waited_for() {
    let (registry, images) = pushed(&small()).await;
    registry.script(Kind::Head, Fault::Status(429, Some("1".to_owned())));
    let started = Instant::now();
    images.resolve(&source(&registry)).await.unwrap();
    assert!(started.elapsed() >= Duration::from_secs(1));
    assert_eq!(registry.requests().len(), 2);
}

fn big() -> testkit::Image {
    // Not compressible, so that the layer is large on the wire too.
    let noise: Vec<u8> = (0..400_000u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8 % 64 + 32)
        .collect();
    catalog([Layer::new().plain().file("configs/a", noise)])
}

#[tokio::test]
async fn layer_cut_by_server_is_resumed_at_position() {
    let (registry, images) = pushed(&big()).await;
    // The config is cut and comes whole the second time, then the layer is cut twice.
    registry.script(Kind::Blob, Fault::Cut(10));
    registry.script(Kind::Blob, Fault::Pass);
    registry.script(Kind::Blob, Fault::Cut(100_000));
    registry.script(Kind::Blob, Fault::Cut(150_000));
    let (sink, pull) = pull(&images, &registry).await.unwrap();
    assert_eq!(sink.files["a"].len(), 400_000);
    let ranges: Vec<_> = registry
        .requests()
        .into_iter()
        .filter_map(|request| request.range)
        .collect();
    assert_eq!(ranges, ["bytes=100000-", "bytes=250000-"]);
    assert!(pull.traffic.bytes < 410_000, "nothing came twice: {pull:?}");
}

#[tokio::test]
async fn registry_without_ranges_resends_whole_layer() {
    let registry = Registry::builder().without_ranges().start().await;
    push(&registry, &big());
    registry.script(Kind::Blob, Fault::Pass);
    registry.script(Kind::Blob, Fault::Cut(100_000));
    let (sink, _) = pull(&client(registry.host()), &registry).await.unwrap();
    assert_eq!(sink.files["a"].len(), 400_000);
}

#[tokio::test]
async fn layer_that_always_breaks_ends_attempts() {
    let (registry, images) = pushed(&big()).await;
    registry.script(Kind::Blob, Fault::Pass);
    (0..20).for_each(|_| registry.script(Kind::Blob, Fault::Cut(100)));
    let (found, _) = fault(pull(&images, &registry).await);
    assert!(matches!(found, ServerFault::Fetch(FetchError::Broken(_))), "{found:?}");
    assert_eq!(registry.count(Kind::Blob), 6);
}
