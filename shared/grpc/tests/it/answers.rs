//! Answers that operator-registry v1.73.0 gave, recorded by `opm-oracle answers` with `OPM_ORACLE_FULL`, and others.

use std::{fs, path::Path};

use base64::{Engine, engine::general_purpose::STANDARD};
use catalog_mirror_grpc::olm_v0::api::GetReplacementRequest;
use fbc::{Chunks, FbcLimits};
use prost::Message;
use rstest::rstest;
use tonic::Code;

use crate::client::Client;
use crate::fixture::{CRAFTED, MemoryCatalogs, SentBundle, TestServer, shown};

/// Returns the canonical lines of a catalog of the workspace.
fn lines_of(name: &str) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/catalogs")
        .join(name);
    let mut lines = Vec::new();
    let packages = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    for file in packages
        .filter(|path| path.is_dir())
        .flat_map(|path| fs::read_dir(path).unwrap())
    {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        for chunk in Chunks::new(bytes.as_slice(), FbcLimits::default(), 1 << 20) {
            let sink = &mut |meta: fbc::Meta<'_>| lines.extend_from_slice(meta.line);
            chunk.unwrap().metas(&FbcLimits::default(), sink).unwrap();
        }
    }
    lines
}

#[rstest]
#[case::crafted(CRAFTED.to_vec(), include_str!("../recorded/crafted.answers.jsonl"))]
#[case::example(lines_of("v1"), include_str!("../recorded/v1.answers.jsonl"))]
#[tokio::test]
async fn answers_are_those_of_opm(#[case] lines: Vec<u8>, #[case] recorded: &str) {
    let catalogs = MemoryCatalogs::new().with("crafted", lines).await;
    let (_server, client) = TestServer::connected(&catalogs, "localhost").await;
    for line in recorded.lines() {
        let expected: serde_json::Value = serde_json::from_str(line).unwrap();
        let method = expected["method"].as_str().unwrap();
        let service = match method.starts_with("Experimental") {
            true => "ExperimentalRegistry",
            false => "Registry",
        };
        let request = STANDARD.decode(expected["request"].as_str().unwrap()).unwrap();
        let (code, text, messages) = match client.call(&format!("/api.{service}/{method}"), &request).await {
            Ok(messages) => (None, String::new(), messages),
            Err(status) => {
                let (code, text) = (format!("{:?}", status.code()), status.message().to_owned());
                (Some(code), text, Vec::new())
            }
        };
        assert_eq!(code.as_deref(), expected["code"].as_str(), "{line}");
        assert_eq!(text, expected["text"].as_str().unwrap_or_default());
        let mut messages: Vec<String> = messages.iter().map(|message| STANDARD.encode(message)).collect();
        messages.sort();
        let wanted = expected["messages"].as_array().into_iter().flatten();
        let wanted: Vec<&str> = wanted.filter_map(|text| text.as_str()).collect();
        match expected["anyOf"] == true {
            true => assert!(wanted.contains(&messages[0].as_str()), "{line}"),
            false => assert_eq!(messages, wanted),
        }
    }
}

#[rstest]
#[case("graph", "Alpha", "g.v1.0.0", "g.v4.0.0-rc.10")]
#[case("build", "stable", "b1", "b2")]
#[tokio::test]
async fn replacement_is_the_highest_version(
    #[case] package: &str,
    #[case] channel: &str,
    #[case] replaced: &str,
    #[case] expected: &str,
) {
    let catalogs = MemoryCatalogs::new().with("crafted", CRAFTED).await;
    let (_server, client) = TestServer::connected(&catalogs, "localhost").await;
    let request = GetReplacementRequest {
        csv_name: replaced.to_owned(),
        pkg_name: package.to_owned(),
        channel_name: channel.to_owned(),
    };
    let method = "/api.Registry/GetBundleThatReplaces";
    let messages = client.call(method, &request.encode_to_vec()).await.unwrap();
    assert_eq!(SentBundle::decode(messages[0].as_slice()).unwrap().csv_name, expected);
}

#[tokio::test]
async fn unknown_method_and_service_are_unimplemented() {
    let catalogs = MemoryCatalogs::of("a").await;
    let (_server, client) = TestServer::connected(&catalogs, "localhost").await;
    for path in ["/api.Registry/Absent", "/api.Absent/GetPackage", "/x"] {
        assert_eq!(client.code(path, b"").await, Code::Unimplemented, "{path}");
    }
}

#[tokio::test]
async fn request_that_is_no_message_or_too_large_is_refused() {
    let catalogs = MemoryCatalogs::of("a").await;
    let server = TestServer::start(&catalogs, None).await;
    // A refusal must leave the connection usable.
    let client = Client::connect_once(server.port).await;
    // A key and a length of three bytes stand before the name.
    let name = |bytes: usize| [&[0x0a, 0xfc, 0xff, 0x03][..], &vec![b'a'; bytes - 4]].concat();
    for (message, code) in [
        (b"\x0a\xff".to_vec(), Code::Internal),
        (name(64 << 10), Code::Unknown),
        (name((64 << 10) + 1), Code::OutOfRange),
    ] {
        assert_eq!(client.code("/api.Registry/GetPackage", &message).await, code);
    }
}

#[tokio::test]
async fn calls_are_counted_by_method_catalog_and_code() {
    let catalogs = MemoryCatalogs::of("a").await;
    let (_server, client, registry) = TestServer::counted(&catalogs).await;
    client.call("/api.Registry/ListBundles", b"").await.unwrap();
    assert_eq!(client.code("/api.Registry/GetPackage", b"").await, Code::Unknown);
    catalogs.remove("a").await;
    // Names of catalogs are known for a second.
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    assert_eq!(client.code("/api.Registry/GetPackage", b"").await, Code::NotFound);
    let found = shown(&registry);
    for line in [
        r#"calls_total{method="ListBundles",catalog="a",code="OK"} 1"#,
        r#"calls_total{method="GetPackage",catalog="a",code="UNKNOWN"} 1"#,
        r#"calls_total{method="GetPackage",catalog="",code="NOT_FOUND"} 1"#,
        r#"call_duration_seconds_count{method="GetPackage"} 2"#,
        "calls_running 0",
    ] {
        assert!(found.lines().any(|known| known == line), "{line} in\n{found}");
    }
}
