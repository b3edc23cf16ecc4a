//! Registries that refuse, fail, break and lie.

use testkit::{Fault, Kind, Layer, Registry};

use crate::kit::{catalog, client, failed, pull, push, pushed, source};

#[tokio::test]
async fn error_names_missing_tag() {
    let registry = Registry::start().await;
    let text = failed(
        client(registry.host()).resolve(&source(&registry)).await,
        "not found",
    );
    let place = format!("registry {}, repository ns/cat: ", registry.host());
    let want = format!("{place}404, there is no tag v1; check the name");
    assert!(text.starts_with(&want), "{text}");
    assert_eq!(registry.requests().len(), 1, "a 404 is not tried again");
}

/// An image whose layer is large on the wire too.
fn big() -> testkit::Image {
    catalog([Layer::new().plain().file("configs/a", [b'x'; 400_000])])
}

#[tokio::test]
async fn layer_cut_by_server_is_resumed_at_position_or_sent_whole() {
    let whole = Registry::builder().without_ranges();
    for (builder, want, most) in [
        (
            Registry::builder(),
            ["bytes=100000-", "bytes=250000-"],
            410_000,
        ),
        (whole, ["bytes=100000-", "bytes=150000-"], 660_000),
    ] {
        let registry = builder.start().await;
        push(&registry, &big());
        // The config is cut and comes whole the second time, then the layer is cut twice.
        let cuts = [
            Fault::Cut(10),
            Fault::Pass,
            Fault::Cut(100_000),
            Fault::Cut(150_000),
        ];
        cuts.into_iter()
            .for_each(|fault| registry.script(Kind::Blob, fault));
        let (sink, pull) = pull(&client(registry.host()), &registry).await.unwrap();
        assert_eq!(sink.files["a"].len(), 400_000);
        let requests = registry.requests().into_iter();
        let ranges: Vec<_> = requests.filter_map(|request| request.range).collect();
        assert_eq!(ranges, want);
        assert!(pull.traffic.bytes < most, "{pull:?}");
    }
}

#[tokio::test]
async fn layer_that_always_breaks_ends_attempts() {
    let (registry, images) = pushed(&big()).await;
    registry.script(Kind::Blob, Fault::Pass);
    (0..20).for_each(|_| registry.script(Kind::Blob, Fault::Cut(100)));
    let text = failed(pull(&images, &registry).await, "broken");
    assert!(text.contains(" (5 attempts)"), "{text}");
    assert_eq!(registry.count(Kind::Blob), 6);
}
