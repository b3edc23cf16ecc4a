//! Registries that refuse, fail, break and lie.

use std::time::{Duration, Instant};

use catalog_mirror_source::{Error, FetchError, ServerFault};
use testkit::{Fault, Kind, Layer, Registry};

use crate::kit::{Collect, catalog, client, client_with, fault, plain, pull, push, read, small, source};

#[tokio::test]
async fn error_names_missing_tag() {
    let registry = Registry::start().await;
    let (found, text) = fault(client(&registry).resolve(&source(&registry)).await);
    assert!(matches!(found, ServerFault::NotFound { .. }));
    let want = format!(
        "registry {}, repository ns/cat: 404, there is no tag v1; check the name",
        registry.host()
    );
    assert!(text.starts_with(&want), "{text}");
    assert_eq!(registry.requests().len(), 1, "a 404 is not tried again");
}

#[tokio::test]
async fn temporary_failure_is_retried() {
    let registry = Registry::start().await;
    push(&registry, &small());
    for status in [502, 503, 504] {
        for kind in [Kind::Head, Kind::Manifest, Kind::Blob] {
            registry.script(kind, Fault::Status(status, None));
        }
    }
    let (_, pull) = pull(&client(&registry), &registry).await.unwrap();
    assert!(pull.requests >= 9, "{pull:?}");
}

#[tokio::test]
async fn unavailable_registry_ends_after_five_attempts() {
    let registry = Registry::start().await;
    push(&registry, &small());
    (0..9).for_each(|_| registry.script(Kind::Head, Fault::Status(503, None)));
    let (found, text) = fault(client(&registry).resolve(&source(&registry)).await);
    assert!(
        matches!(found, ServerFault::Fetch(FetchError::Unavailable { .. })) && text.contains("503"),
        "{text}"
    );
    assert_eq!(registry.requests().len(), 5);
}

#[tokio::test]
async fn retry_after_is_waited_for() {
    let registry = Registry::start().await;
    push(&registry, &small());
    registry.script(Kind::Head, Fault::Status(429, Some("1".to_owned())));
    let started = Instant::now();
    client(&registry).resolve(&source(&registry)).await.unwrap();
    assert!(started.elapsed() >= Duration::from_secs(1));
    assert_eq!(registry.requests().len(), 2);
}

#[tokio::test]
async fn long_retry_after_is_reported_not_waited_for() {
    let registry = Registry::start().await;
    push(&registry, &small());
    registry.script(Kind::Head, Fault::Status(429, Some("3600".to_owned())));
    let (found, text) = fault(client(&registry).resolve(&source(&registry)).await);
    assert_eq!(
        match found {
            ServerFault::Fetch(error) => error.retry_after(),
            _ => None,
        },
        Some(Duration::from_secs(3600))
    );
    assert!(
        text.contains("429, too many requests, it asks to wait 3600 s"),
        "{text}"
    );
    assert_eq!(registry.requests().len(), 1);
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
    let registry = Registry::start().await;
    push(&registry, &big());
    // The config is cut and comes whole the second time, then the layer is cut twice.
    registry.script(Kind::Blob, Fault::Cut(10));
    registry.script(Kind::Blob, Fault::Delay(Duration::ZERO));
    registry.script(Kind::Blob, Fault::Cut(100_000));
    registry.script(Kind::Blob, Fault::Cut(150_000));
    let (sink, pull) = pull(&client(&registry), &registry).await.unwrap();
    assert_eq!(sink.files["a"].len(), 400_000);
    let ranges: Vec<_> = registry
        .requests()
        .into_iter()
        .filter_map(|request| request.range)
        .collect();
    assert_eq!(ranges, ["bytes=100000-", "bytes=250000-"]);
    assert!(pull.bytes < 410_000, "nothing came twice: {pull:?}");
}

#[tokio::test]
async fn registry_without_ranges_resends_whole_layer() {
    let registry = Registry::builder().without_ranges().start().await;
    push(&registry, &big());
    registry.script(Kind::Blob, Fault::Delay(Duration::ZERO));
    registry.script(Kind::Blob, Fault::Cut(100_000));
    let (sink, _) = pull(&client(&registry), &registry).await.unwrap();
    assert_eq!(sink.files["a"].len(), 400_000);
}

#[tokio::test]
async fn layer_that_always_breaks_ends_attempts() {
    let registry = Registry::start().await;
    push(&registry, &big());
    registry.script(Kind::Blob, Fault::Delay(Duration::ZERO));
    (0..20).for_each(|_| registry.script(Kind::Blob, Fault::Cut(100)));
    let (found, _) = fault(pull(&client(&registry), &registry).await);
    assert!(matches!(found, ServerFault::Fetch(FetchError::Broken(_))), "{found:?}");
    assert_eq!(registry.count(Kind::Blob), 6);
}

#[tokio::test]
async fn body_of_wrong_length_is_refused() {
    for (change, says) in [(-1i64, "has"), (1, "has")] {
        let registry = Registry::start().await;
        let image = small();
        push(&registry, &image);
        let layer = &image.layers[0];
        let mut bytes = image.blobs[layer].to_vec();
        bytes.resize((bytes.len() as i64 + change) as usize, 0);
        registry.replace_blob(layer, bytes);
        let images = client_with(&registry, |settings| settings.http.retry.attempts = Some(2));
        let error = pull(&images, &registry).await.unwrap_err();
        let short = matches!(&error, Error::Server(error) if matches!(error.fault, ServerFault::Fetch(FetchError::Truncated { .. } | FetchError::Range)));
        assert!(short || error.to_string().contains(says), "{error}");
    }
}

#[tokio::test]
async fn silent_and_slow_registries_time_out() {
    let registry = Registry::start().await;
    push(&registry, &small());
    (0..9).for_each(|_| registry.script(Kind::Head, Fault::Delay(Duration::from_secs(9))));
    let images = client_with(&registry, |settings| {
        settings.http.read_timeout = Duration::from_millis(100);
        settings.http.retry.attempts = Some(2);
    });
    let (found, text) = fault(images.resolve(&source(&registry)).await);
    assert!(matches!(found, ServerFault::Fetch(FetchError::Timeout(_))), "{text}");
    registry.delay(Kind::Blob, Duration::from_secs(9));
    let images = client_with(&registry, |settings| settings.pull_timeout = Duration::from_millis(200));
    let digest = small().digest.parse().unwrap();
    let result = read(&images, &source(&registry), &digest, Collect::default()).await;
    assert!(matches!(result.err(), Some(Error::Timeout(_))));
}

#[tokio::test]
async fn closed_port_is_a_connection_error() {
    let registry = Registry::start().await;
    let (images, source) = (client(&registry), source(&registry));
    drop(registry);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let (found, text) = fault(images.resolve(&source).await);
    assert!(matches!(found, ServerFault::Fetch(FetchError::Connect(_))), "{text}");
}

#[tokio::test]
async fn manifest_above_limit_is_refused() {
    let registry = Registry::start().await;
    push(&registry, &small());
    registry.script(Kind::Manifest, Fault::Body("x".repeat(5000)));
    let images = client_with(&registry, |settings| settings.limits.manifest_bytes = 4000);
    let error = pull(&images, &registry).await.unwrap_err();
    assert!(matches!(error, Error::Limit(limit) if limit.name == "manifestBytes"));
}

#[tokio::test]
async fn redirects_are_followed_until_limit() {
    let (registry, cdn) = (Registry::start().await, Registry::start().await);
    let image = small();
    push(&registry, &image);
    push(&cdn, &image);
    let to = format!("http://{}/v2/ns/cat/blobs/{}", cdn.host(), image.layers[0]);
    registry.script(Kind::Blob, Fault::Delay(Duration::ZERO));
    registry.script(Kind::Blob, Fault::Redirect(to.clone()));
    let images = client_with(&registry, |settings| settings.http.plain_http = plain(&["127.0.0.1"]));
    pull(&images, &registry).await.unwrap();
    assert_eq!(cdn.count(Kind::Blob), 1);
    (0..9).for_each(|_| registry.script(Kind::Head, Fault::Redirect("/v2/ns/cat/manifests/v1".to_owned())));
    let (_, text) = fault(images.resolve(&source(&registry)).await);
    assert!(text.contains("too many redirects"), "{text}");
}

#[tokio::test]
async fn redirect_to_unlisted_host_or_metadata_service_is_refused() {
    let registry = Registry::start().await;
    push(&registry, &small());
    for (to, why) in [
        ("http://localhost:1/x", "not listed under plainHttp"),
        ("https://169.254.169.254/latest", "link-local"),
        ("ftp://example.com/x", "not http"),
    ] {
        registry.script(Kind::Head, Fault::Redirect(to.to_owned()));
        let (_, text) = fault(client(&registry).resolve(&source(&registry)).await);
        assert!(text.contains(why), "{text}");
    }
}
