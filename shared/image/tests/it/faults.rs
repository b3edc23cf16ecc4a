//! Registries that refuse, fail, break and lie.

use std::time::{Duration, Instant};

use image::{Error, Fault as Told, Images, Limits, Retry, Settings};
use testkit::{Fault, Kind, Layer, Registry};

use crate::kit::{catalog, client, fault, pull, push, settings, small, source};

#[tokio::test]
async fn what_does_not_exist_is_named() {
    let registry = Registry::start().await;
    let (told, text) = fault(client(&registry).resolve(&source(&registry)).await);
    assert!(matches!(told, Told::NotFound { .. }));
    let want = format!(
        "registry {}, repository ns/cat: 404, there is no tag v1; check the name",
        registry.host()
    );
    assert!(text.starts_with(&want), "{text}");
    assert_eq!(registry.requests().len(), 1, "a 404 is not tried again");
}

#[tokio::test]
async fn a_passing_failure_passes() {
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
async fn a_lasting_failure_ends_the_attempts() {
    let registry = Registry::start().await;
    push(&registry, &small());
    (0..9).for_each(|_| registry.script(Kind::Head, Fault::Status(503, None)));
    let (told, text) = fault(client(&registry).resolve(&source(&registry)).await);
    assert!(
        matches!(told, Told::Unavailable { .. }) && text.contains("503"),
        "{text}"
    );
    assert_eq!(registry.requests().len(), 5);
}

#[tokio::test]
async fn retry_after_is_honoured() {
    let registry = Registry::start().await;
    push(&registry, &small());
    registry.script(Kind::Head, Fault::Status(429, Some("1".to_owned())));
    let started = Instant::now();
    client(&registry).resolve(&source(&registry)).await.unwrap();
    assert!(started.elapsed() >= Duration::from_secs(1));
    assert_eq!(registry.requests().len(), 2);
}

#[tokio::test]
async fn a_long_retry_after_is_reported_not_waited_for() {
    let registry = Registry::start().await;
    push(&registry, &small());
    registry.script(Kind::Head, Fault::Status(429, Some("3600".to_owned())));
    let (told, text) = fault(client(&registry).resolve(&source(&registry)).await);
    assert_eq!(told.retry_after(), Some(Duration::from_secs(3600)));
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
async fn a_cut_layer_is_resumed_where_it_broke() {
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
async fn a_registry_without_ranges_sends_it_all_again() {
    let registry = Registry::builder().without_ranges().start().await;
    push(&registry, &big());
    registry.script(Kind::Blob, Fault::Delay(Duration::ZERO));
    registry.script(Kind::Blob, Fault::Cut(100_000));
    let (sink, _) = pull(&client(&registry), &registry).await.unwrap();
    assert_eq!(sink.files["a"].len(), 400_000);
}

#[tokio::test]
async fn a_layer_that_always_breaks_is_given_up() {
    let registry = Registry::start().await;
    push(&registry, &big());
    registry.script(Kind::Blob, Fault::Delay(Duration::ZERO));
    (0..20).for_each(|_| registry.script(Kind::Blob, Fault::Cut(100)));
    let (told, _) = fault(pull(&client(&registry), &registry).await);
    assert!(matches!(told, Told::Broken(_)), "{told:?}");
    assert_eq!(registry.count(Kind::Blob), 6);
}

#[tokio::test]
async fn bodies_of_another_length_are_refused() {
    for (change, says) in [(-1i64, "has"), (1, "has")] {
        let registry = Registry::start().await;
        let image = small();
        push(&registry, &image);
        let layer = &image.layers[0];
        let mut bytes = image.blobs[layer].to_vec();
        bytes.resize((bytes.len() as i64 + change) as usize, 0);
        registry.replace_blob(layer, bytes);
        let retry = Retry {
            attempts: 2,
            ..settings(&registry).retry
        };
        let images = Images::new(Settings {
            retry,
            ..settings(&registry)
        })
        .unwrap();
        let error = pull(&images, &registry).await.unwrap_err();
        let short = matches!(&error, Error::Registry(error) if matches!(error.fault, Told::Cut { .. } | Told::Range));
        assert!(short || error.to_string().contains(says), "{error}");
    }
}

#[tokio::test]
async fn silence_and_slowness_end() {
    let registry = Registry::start().await;
    push(&registry, &small());
    (0..9).for_each(|_| registry.script(Kind::Head, Fault::Delay(Duration::from_secs(9))));
    let retry = Retry {
        attempts: 2,
        ..settings(&registry).retry
    };
    let read_timeout = Duration::from_millis(100);
    let images = Images::new(Settings {
        read_timeout,
        retry,
        ..settings(&registry)
    })
    .unwrap();
    let (told, text) = fault(images.resolve(&source(&registry)).await);
    assert!(matches!(told, Told::Timeout(_)), "{text}");
    registry.delay(Kind::Blob, Duration::from_secs(9));
    let pull_timeout = Duration::from_millis(200);
    let images = Images::new(Settings {
        pull_timeout,
        ..settings(&registry)
    })
    .unwrap();
    let digest = small().digest.parse().unwrap();
    let sink = crate::kit::Collect::default();
    let result = images
        .read(&source(&registry), &digest, &image::EmptyLayers::default(), sink)
        .await;
    assert!(matches!(result.err(), Some(Error::Timeout(_))));
}

#[tokio::test]
async fn nobody_there_is_a_connection_failure() {
    let registry = Registry::start().await;
    let (images, source) = (client(&registry), source(&registry));
    drop(registry);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let (told, text) = fault(images.resolve(&source).await);
    assert!(matches!(told, Told::Connect(_)), "{text}");
}

#[tokio::test]
async fn a_manifest_beyond_the_limit_is_not_read_to_its_end() {
    let registry = Registry::start().await;
    push(&registry, &small());
    registry.script(Kind::Manifest, Fault::Body("x".repeat(5000)));
    let limits = Limits {
        manifest_bytes: 4000,
        ..Limits::default()
    };
    let images = Images::new(Settings {
        limits,
        ..settings(&registry)
    })
    .unwrap();
    let error = pull(&images, &registry).await.unwrap_err();
    assert!(matches!(error, Error::Limit(limit) if limit.name == "manifestBytes"));
}

#[tokio::test]
async fn redirects_are_followed_but_not_in_circles() {
    let (registry, cdn) = (Registry::start().await, Registry::start().await);
    let image = small();
    push(&registry, &image);
    push(&cdn, &image);
    let to = format!("http://{}/v2/ns/cat/blobs/{}", cdn.host(), image.layers[0]);
    registry.script(Kind::Blob, Fault::Delay(Duration::ZERO));
    registry.script(Kind::Blob, Fault::Redirect(to.clone()));
    let plain_http = vec!["127.0.0.1".to_owned()];
    let images = Images::new(Settings {
        plain_http,
        ..settings(&registry)
    })
    .unwrap();
    pull(&images, &registry).await.unwrap();
    assert_eq!(cdn.count(Kind::Blob), 1);
    (0..9).for_each(|_| registry.script(Kind::Head, Fault::Redirect("/v2/ns/cat/manifests/v1".to_owned())));
    let (_, text) = fault(images.resolve(&source(&registry)).await);
    assert!(text.contains("too many redirects"), "{text}");
}

#[tokio::test]
async fn redirects_to_unlisted_hosts_and_metadata_services_are_refused() {
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
