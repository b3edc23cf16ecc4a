//! Answers that operator-registry v1.73.0 gave, recorded by `opm-oracle answers` with
//! `OPM_ORACLE_FULL`, and others.

use base64::{Engine, engine::general_purpose::STANDARD};
use grpc::olm_v0::api::GetReplacementRequest;
use prost::Message;
use rstest::rstest;
use tonic::Code;

use crate::fixture::{CRAFTED, MemoryCatalogs, SentBundle, TestServer, shards};

/// Files of a catalog of the workspace.
const EXAMPLE: [&[u8]; 4] = [
    include_bytes!("../../../../../tests/catalogs/v1/demo-cache/catalog.json"),
    include_bytes!("../../../../../tests/catalogs/v1/demo-database/catalog.yaml"),
    include_bytes!("../../../../../tests/catalogs/v1/demo-queue/catalog.yaml"),
    include_bytes!("../../../../../tests/catalogs/v1/demo-search/catalog.yaml"),
];

#[rstest]
#[case::crafted(&[CRAFTED], include_str!("../recorded/crafted.answers.jsonl"))]
#[case::example(&EXAMPLE, include_str!("../recorded/v1.answers.jsonl"))]
#[tokio::test]
async fn answers_are_those_of_opm(#[case] files: &[&[u8]], #[case] recorded: &str) {
    let lines = files.iter().flat_map(|file| shards(file).into_values());
    let catalogs = MemoryCatalogs::new()
        .with("a", lines.collect::<Vec<_>>().concat())
        .await;
    let (_server, client) = TestServer::connected(&catalogs, "localhost").await;
    for line in recorded.lines() {
        let expected: serde_json::Value = serde_json::from_str(line).unwrap();
        let method = expected["method"].as_str().unwrap();
        let service = match method.starts_with("Experimental") {
            true => "ExperimentalRegistry",
            false => "Registry",
        };
        let request = STANDARD
            .decode(expected["request"].as_str().unwrap())
            .unwrap();
        let (code, text, messages) = match client
            .call(&format!("/api.{service}/{method}"), &request)
            .await
        {
            Ok(messages) => (None, String::new(), messages),
            Err(status) => {
                let (code, text) = (format!("{:?}", status.code()), status.message().to_owned());
                (Some(code), text, Vec::new())
            }
        };
        assert_eq!(code.as_deref(), expected["code"].as_str(), "{line}");
        assert_eq!(text, expected["text"].as_str().unwrap_or_default());
        let mut messages: Vec<String> = messages
            .iter()
            .map(|message| STANDARD.encode(message))
            .collect();
        messages.sort();
        let wanted = expected["messages"].as_array().into_iter().flatten();
        let wanted: Vec<&str> = wanted.filter_map(|text| text.as_str()).collect();
        match expected["anyOf"] == true {
            true => assert!(wanted.contains(&messages[0].as_str()), "{line}"),
            false => assert_eq!(messages, wanted),
        }
    }
}

#[tokio::test]
async fn replacement_is_the_highest_version() {
    let catalogs = MemoryCatalogs::new().with("a", CRAFTED).await;
    let (_server, client) = TestServer::connected(&catalogs, "localhost").await;
    for [pkg_name, channel_name, csv_name, expected] in [
        ["graph", "Alpha", "g.v1.0.0", "g.v4.0.0-rc.10"],
        ["build", "stable", "b1", "b2"],
    ] {
        let request = GetReplacementRequest {
            csv_name: csv_name.to_owned(),
            pkg_name: pkg_name.to_owned(),
            channel_name: channel_name.to_owned(),
        };
        let method = "/api.Registry/GetBundleThatReplaces";
        let messages = client.call(method, &request.encode_to_vec()).await.unwrap();
        assert_eq!(
            SentBundle::decode(messages[0].as_slice()).unwrap().csv_name,
            expected
        );
    }
}

#[tokio::test]
async fn request_without_a_method_or_a_fitting_message_is_refused() {
    let catalogs = MemoryCatalogs::of(&["a"]).await;
    let (_server, client) = TestServer::connected(&catalogs, "localhost").await;
    // A key and a length of two bytes stand before the name.
    let name = |bytes: usize| [&[0x0a, 0xfd, 0x3f][..], &vec![b'a'; bytes - 3]].concat();
    for (path, message, code) in [
        ("/api.Registry/Absent", Vec::new(), Code::Unimplemented),
        ("/api.Absent/GetPackage", Vec::new(), Code::Unimplemented),
        ("/x", Vec::new(), Code::Unimplemented),
        (
            "/api.Registry/GetPackage",
            b"\x0a\xff".to_vec(),
            Code::Internal,
        ),
        ("/api.Registry/GetPackage", name(8 << 10), Code::Unknown),
        (
            "/api.Registry/GetPackage",
            name((8 << 10) + 1),
            Code::OutOfRange,
        ),
    ] {
        assert_eq!(
            client.code(path, &message).await,
            code,
            "{path}, {} bytes",
            message.len()
        );
    }
}

#[tokio::test]
async fn calls_are_counted_by_method_catalog_and_code() {
    let catalogs = MemoryCatalogs::of(&["a"]).await;
    let (server, client) = TestServer::connected(&catalogs, "localhost").await;
    client.call("/api.Registry/ListBundles", b"").await.unwrap();
    assert_eq!(
        client.code("/api.Registry/GetPackage", b"").await,
        Code::Unknown
    );
    catalogs.remove("a").await;
    // Names of catalogs are known for a second.
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    assert_eq!(
        client.code("/api.Registry/GetPackage", b"").await,
        Code::NotFound
    );
    let found = server.metrics();
    for line in [
        r#"calls_total{method="ListBundles",catalog="a",code="OK"} 1"#,
        r#"calls_total{method="GetPackage",catalog="a",code="UNKNOWN"} 1"#,
        r#"calls_total{method="GetPackage",catalog="",code="NOT_FOUND"} 1"#,
        r#"call_duration_seconds_count{method="GetPackage"} 2"#,
        "calls_running 0",
    ] {
        assert!(
            found.lines().any(|known| known == line),
            "{line} in\n{found}"
        );
    }
}
