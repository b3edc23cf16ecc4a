use catalog_mirror_grpc::AnswerError;
use model::{Key, Kind};
use prost::Message;
use rstest::rstest;
use testkit::SnapshotBuilder;
use tonic::{Code, Status};

use crate::client::Client;
use crate::fixture::{MemoryCatalogs, TestServer, package, valid};

/// Returns catalogs with a package of their name each.
async fn catalogs(names: &[&str]) -> MemoryCatalogs {
    let mut catalogs = MemoryCatalogs::new();
    for name in names {
        catalogs = catalogs.with(name, package(name)).await;
    }
    catalogs
}

/// Returns the name of the package, which is that of the catalog.
async fn ask(catalogs: &MemoryCatalogs, default: Option<&str>, host: &str) -> Result<String, Status> {
    let server = TestServer::start(catalogs, default).await;
    let client = Client::connect(server.port, host).await;
    let messages = client.call("/api.Registry/ListPackages", b"").await?;
    Ok(String::decode(messages[0].as_slice()).unwrap())
}

#[rstest]
#[case::first_label(&["a", "b"], None, "b.registry.svc", "b")]
#[case::label_alone(&["a", "b"], None, "a", "a")]
#[case::label_before_default(&["a", "b"], Some("a"), "b.x", "b")]
#[case::dots_are_dashes(&["a", "v4.20"], Some("a"), "v4-20.x", "v4.20")]
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
    assert_eq!(ask(&catalogs(names).await, default, host).await.unwrap(), expected);
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
    let status = ask(&catalogs(names).await, default, "mirror.lab").await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert!(status.message().ends_with(expected), "{status}");
}

#[tokio::test]
async fn catalog_that_opm_would_refuse_says_why() {
    let channel = "{\"schema\":\"olm.channel\",\"package\":\"p\",\"name\":\"c\"}\n";
    let validated = catalogs(&[]).await.with("a", channel).await;
    // Without findings the content is validated: a bundle needs a version.
    let unvalidated = catalogs(&[]).await;
    let lines = package("p");
    unvalidated.publish("a", lines.as_bytes(), SnapshotBuilder::new()).await;
    for (catalogs, expected) in [
        (validated, "package p: line 1: channel \"c\" has not one head"),
        (unvalidated, "package p, bundle b: "),
    ] {
        let status = ask(&catalogs, None, "mirror.lab").await.unwrap_err();
        assert_eq!(status.code(), Code::FailedPrecondition);
        let start = format!("the catalog has errors that keep opm from serving it: {expected}");
        assert!(status.message().starts_with(&start), "{status}");
    }
}

#[tokio::test]
async fn damaged_catalog_is_unavailable_until_it_is_repaired() {
    let catalogs = catalogs(&[]).await;
    let keys = catalogs.publish("a", package("a").as_bytes(), valid()).await;
    let is_shard = |key: &&Key| matches!(key, Key::Object(Kind::Package, _));
    let shard = keys.iter().find(is_shard).unwrap();
    catalogs.put(shard, b"damaged".to_vec()).await;
    let (_server, client) = TestServer::connected(&catalogs, "a.lab").await;
    let method = "/api.Registry/ListPackages";
    let status = client.call(method, b"").await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert!(status.message().ends_with("try again later"), "{status}");
    catalogs.publish("a", package("a").as_bytes(), valid()).await;
    assert_eq!(client.call(method, b"").await.unwrap(), [b"\x0a\x01a"]);
}

#[rstest]
#[case(AnswerError::NotServed, Code::NotFound)]
#[case(AnswerError::TooLarge, Code::ResourceExhausted)]
#[case(AnswerError::Memory, Code::ResourceExhausted)]
fn error_has_the_code_that_clients_expect(#[case] error: AnswerError, #[case] code: Code) {
    let text = error.to_string();
    let status = Status::from(error);
    assert_eq!((status.code(), status.message()), (code, text.as_str()));
}
