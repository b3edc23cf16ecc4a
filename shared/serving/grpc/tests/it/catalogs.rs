use grpc::AnswerError;
use model::{Key, Kind};
use prost::Message;
use rstest::rstest;
use server::ServerLimits;
use testkit::SnapshotBuilder;
use tonic::{Code, Status};

use crate::client::Client;
use crate::fixture::{MemoryCatalogs, TestServer, package};

/// Returns the name of the package, which is that of the catalog.
async fn ask(
    catalogs: &MemoryCatalogs,
    default: Option<&str>,
    host: &str,
) -> Result<String, Status> {
    let server = TestServer::start(catalogs, default, ServerLimits::grpc()).await;
    let client = Client::connect(server.port, host).await;
    let messages = client.call("/api.Registry/ListPackages", b"").await?;
    Ok(String::decode(messages[0].as_slice()).unwrap())
}

#[rstest]
#[case::first_label(&["a", "b"], None, "b.registry.svc", Ok("b"))]
#[case::label_alone(&["a", "b"], None, "a", Ok("a"))]
#[case::label_before_default(&["a", "b"], Some("a"), "b.x", Ok("b"))]
#[case::dots_are_dashes(&["a", "v4.20"], Some("a"), "v4-20.x", Ok("v4.20"))]
#[case::default(&["a", "b"], Some("b"), "mirror.lab", Ok("b"))]
#[case::only(&["a"], None, "mirror.lab", Ok("a"))]
#[case::address(&["a"], None, "127.0.0.1", Ok("a"))]
#[case::several(&["b", "a"], None, "mirror.lab", Err("there are: a, b"))]
#[case::default_is_gone(&["a"], Some("b"), "mirror.lab", Err("there are: a"))]
#[case::none(&[], None, "mirror.lab", Err("no catalog is published"))]
#[tokio::test]
async fn catalog_is_chosen_by_host_default_or_because_it_is_the_only_one(
    #[case] names: &[&str],
    #[case] default: Option<&str>,
    #[case] host: &str,
    #[case] expected: Result<&str, &str>,
) {
    let answer = ask(&MemoryCatalogs::of(names).await, default, host).await;
    match (&answer, expected) {
        (Err(status), Err(end)) if status.code() == Code::NotFound => {
            assert!(status.message().ends_with(end), "{status}");
        }
        _ => assert_eq!(answer.as_deref().ok(), expected.ok(), "{answer:?}"),
    }
}

#[tokio::test]
async fn catalog_that_opm_would_refuse_says_why() {
    let channel = "{\"schema\":\"olm.channel\",\"package\":\"p\",\"name\":\"c\"}\n";
    let validated = MemoryCatalogs::new().with("a", channel).await;
    // Without findings the content is validated: a bundle needs a version.
    let lines = package("p");
    let unvalidated = MemoryCatalogs::new().publish("a", lines.as_bytes(), SnapshotBuilder::new());
    for (catalogs, expected) in [
        (
            validated,
            "package p: line 1: channel \"c\" has not one head",
        ),
        (unvalidated.await, "package p, bundle b: "),
    ] {
        let status = ask(&catalogs, None, "mirror.lab").await.unwrap_err();
        assert_eq!(status.code(), Code::FailedPrecondition);
        let start = format!("the catalog has errors that keep opm from serving it: {expected}");
        assert!(status.message().starts_with(&start), "{status}");
    }
}

#[tokio::test]
async fn damaged_catalog_is_unavailable_until_it_is_repaired() {
    let catalogs = MemoryCatalogs::of(&["a"]).await;
    let mut keys = catalogs.0.objects().into_keys();
    let shard = keys
        .find(|key| matches!(key, Key::Object(Kind::Package, _)))
        .unwrap();
    catalogs.0.corrupt(&shard, "damaged");
    let (_server, client) = TestServer::connected(&catalogs, "a.lab").await;
    let method = "/api.Registry/ListPackages";
    let status = client.call(method, b"").await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert!(status.message().ends_with("try again later"), "{status}");
    catalogs.with("a", package("a")).await;
    assert_eq!(client.call(method, b"").await.unwrap(), [b"\x0a\x01a"]);
}

#[test]
fn error_has_the_code_that_clients_expect() {
    for (error, code) in [
        (AnswerError::NotServed, Code::NotFound),
        (AnswerError::TooLarge, Code::ResourceExhausted),
        (AnswerError::Memory, Code::ResourceExhausted),
    ] {
        let text = error.to_string();
        let status = Status::from(error);
        assert_eq!((status.code(), status.message()), (code, text.as_str()));
    }
}
