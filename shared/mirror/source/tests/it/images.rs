//! Resolving, manifests, indexes and configs.

use source::ImageContent;
use testkit::{ImageBuilder, Kind, Layer, Registry, index};

use crate::kit::{catalog, client, failed, pull, push, pushed, read_image, small, source};

#[tokio::test]
async fn exists_sends_one_head_and_a_get_only_without_head() {
    let image = small();
    for (builder, gets) in [
        (Registry::builder(), 0),
        (Registry::builder().without_head(), 4),
    ] {
        let registry = builder.start().await;
        push(&registry, &image);
        let images = client(registry.host());
        let (present, absent) = (
            format!("@{}", image.digest),
            format!("@{}", testkit::digest(b"none")),
        );
        for (version, is_there) in [
            (&*present, true),
            (":v1", true),
            (&*absent, false),
            (":v9", false),
        ] {
            let source = format!("{}/ns/cat{version}", registry.host())
                .parse()
                .unwrap();
            assert_eq!(images.exists(&source).await.unwrap(), is_there, "{version}");
        }
        assert_eq!(
            (registry.count(Kind::Head), registry.count(Kind::Manifest)),
            (4, gets)
        );
    }
}

#[tokio::test]
async fn index_gives_image_of_platform() {
    let (amd, arm) = (small(), catalog([Layer::new().file("configs/arm", "arm")]));
    let both = index(&[("linux/arm64", &arm), ("linux/amd64", &amd)]);
    let nested = index(&[("linux/amd64", &both), ("linux/arm64", &both)]);
    let (registry, images) = pushed(&nested).await;
    for (architecture, want) in [("amd64", "a.yaml=a"), ("arm64", "arm=arm")] {
        let images = images.clone().with_settings(|settings| {
            settings.platform.architecture = architecture.to_owned();
        });
        assert_eq!(pull(&images, &registry).await.unwrap().0.list(), [want]);
    }
    let too_deep = (0..5).fold(amd, |inner, _| index(&[("linux/amd64", &inner)]));
    failed(read_image(&too_deep).await, "image: nested");
}

#[tokio::test]
async fn content_coding_of_documents_is_decoded_or_named_and_of_layers_named() {
    for (coding, is_resolved) in [("gzip", true), ("br", false)] {
        let registry = Registry::builder()
            .coded_as(coding)
            .without_head()
            .start()
            .await;
        push(&registry, &small());
        let client = client(registry.host());
        let resolved = client.resolve(&source(&registry)).await;
        assert_eq!(resolved.is_ok(), is_resolved, "{resolved:?}");
        let text = failed(pull(&client, &registry).await, "coding");
        assert!(
            text.contains(&format!("the content coding {coding}")),
            "{text}"
        );
    }
}

#[tokio::test]
async fn bundle_is_read_where_its_labels_say() {
    let label = |folder: &str| format!("operators.operatorframework.io.bundle.{folder}.v1");
    let bundle = ImageBuilder::new()
        .layer(
            Layer::new()
                .file("operator/a.yaml", "a")
                .file("other/b.yaml", "b"),
        )
        .layer(Layer::new().file("metadata/c.yaml", "c"))
        .label(&label("manifests"), "operator/")
        .label(&label("metadata"), "metadata/");
    let registry = Registry::start().await;
    push(&registry, &bundle.build());
    let images =
        client(registry.host()).with_settings(|settings| settings.content = ImageContent::Bundle);
    let (files, read) = pull(&images, &registry).await.unwrap();
    assert_eq!(files.list(), ["metadata/c.yaml=c", "operator/a.yaml=a"]);
    assert_eq!(read.folders, ["operator", "metadata"]);
    // Each layer is read once.
    assert_eq!(read.layers_fetched, 2);
}
