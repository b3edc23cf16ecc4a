use catalog_mirror_grpc::PublishedError;
use prost::Message;
use registry::api::PackageName;
use rstest::rstest;
use tonic::{Code, Status};

use crate::{
    client::Client,
    fixture::{MemoryCatalogs, TestServer, package},
};

fn catalogs(names: &[&str]) -> MemoryCatalogs {
    let with = |catalogs: MemoryCatalogs, name: &&str| catalogs.with(name, Ok(package(name)));
    names.iter().fold(MemoryCatalogs::default(), with)
}

/// Returns the name of the package, which is that of the catalog.
async fn ask(catalogs: &MemoryCatalogs, default: Option<&str>, host: &str) -> Result<String, Status> {
    let server = TestServer::start(catalogs, default).await;
    let client = Client::connect(server.port, host).await;
    let messages = client.call("/api.Registry/ListPackages", b"").await?;
    Ok(PackageName::decode(messages[0].as_slice()).unwrap().name)
}

#[rstest]
#[case::first_label(&["a", "b"], None, "b.registry.svc", "b")]
#[case::label_alone(&["a", "b"], None, "a", "a")]
#[case::label_before_default(&["a", "b"], Some("a"), "b.x", "b")]
#[case::default(&["a", "b"], Some("b"), "mirror.lab", "b")]
#[case::only(&["a"], None, "mirror.lab", "a")]
#[case::address(&["a"], None, "127.0.0.1", "a")]
#[tokio::test]
async fn catalog_is_chosen_by_host_default_or_because_it_is_the_only_one(
    #[case] names: &[&str],
    #[case] default: Option<&str>,
    #[case] host: &str,
    #[case] expected: &str,
) {
    assert_eq!(ask(&catalogs(names), default, host).await.unwrap(), expected);
}

#[rstest]
#[case::several(&["b", "a"], None, "there are: a, b")]
#[case::default_is_gone(&["a"], Some("b"), "there are: a")]
#[case::none(&[], None, "no catalog is published")]
#[tokio::test]
async fn catalog_that_cannot_be_chosen_is_not_found(
    #[case] names: &[&str],
    #[case] default: Option<&str>,
    #[case] expected: &str,
) {
    let status = ask(&catalogs(names), default, "mirror.lab").await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert!(status.message().ends_with(expected), "{status}");
}

#[rstest]
#[case(PublishedError::Refused("channel x has no head".to_owned()), Code::FailedPrecondition, "channel x has no head")]
#[case(PublishedError::TooLarge, Code::ResourceExhausted, "too large for this API")]
#[case(PublishedError::Unavailable("no route".to_owned()), Code::Unavailable, "cannot be read now: no route")]
#[case(PublishedError::NotFound, Code::NotFound, "there is no such catalog")]
#[case(PublishedError::NotServed, Code::NotFound, "the catalog of this host is not served")]
#[tokio::test]
async fn catalog_that_cannot_answer_says_why(
    #[case] error: PublishedError,
    #[case] code: Code,
    #[case] expected: &str,
) {
    let catalogs = MemoryCatalogs::default().with("a", Err(error));
    let status = ask(&catalogs, None, "mirror.lab").await.unwrap_err();
    assert_eq!(status.code(), code);
    assert!(status.message().ends_with(expected), "{status}");
}
