//! Pushing an image to a registry that takes nothing out of order.

use model::{ObjectDigest, Sha256};
use oci::Documents;
use oci_client::Reference;
use source::{Error, Pushed, Sources};
use testkit::{Fault, Kind, Registry};

use crate::kit::{client, failed};

const LAYER: &[u8] = b"a layer";

async fn push(images: &Sources, registry: &Registry, tag: &str) -> Result<Pushed, Error> {
    let reference: Reference = registry.reference("new/repository", tag).parse().unwrap();
    let documents = Documents::new(ObjectDigest::of(LAYER), Sha256::of(b"its tar"));
    images.push(&reference, documents, LAYER.into()).await
}

#[tokio::test]
async fn push_sends_what_is_missing_and_the_tag_last() {
    let registry = Registry::start().await;
    let images = client(registry.host());
    let pushed = push(&images, &registry, "v1").await.unwrap();
    assert!(!pushed.was_there);
    let last = registry.requests().last().unwrap().path.clone();
    assert_eq!(last, "/v2/new/repository/manifests/v1");

    registry.reset();
    let again = push(&images, &registry, "v1").await.unwrap();
    assert_eq!(
        (again.digest, again.was_there),
        (pushed.digest.clone(), true)
    );
    assert_eq!(registry.requests().len(), 1, "one HEAD of the tag");

    // Another tag: the registry has all blobs, so only manifests are sent.
    registry.reset();
    let other = push(&images, &registry, "v2").await.unwrap();
    assert_eq!(other.digest, pushed.digest);
    let mut requests = registry.requests().into_iter();
    assert!(requests.all(|request| !request.path.contains("/uploads/")));
}

#[tokio::test]
async fn failed_upload_begins_anew() {
    let registry = Registry::start().await;
    // The HEAD of the first blob, the begin of its upload, and the upload itself.
    for status in [503, 502, 500] {
        registry.script(Kind::Blob, Fault::Status(status, None));
    }
    registry.script(Kind::Blob, Fault::Pass);
    push(&client(registry.host()), &registry, "v1")
        .await
        .unwrap();
}

#[tokio::test]
async fn upload_to_another_server_is_refused() {
    let registry = Registry::start().await;
    registry.script(Kind::Blob, Fault::Pass);
    let elsewhere = vec![("location", "http://127.0.0.1:1/steal".to_owned())];
    registry.script(Kind::Blob, Fault::Answer(202, elsewhere, String::new()));
    let pushed = push(&client(registry.host()), &registry, "v1").await;
    failed(pushed, "upload location");
}
