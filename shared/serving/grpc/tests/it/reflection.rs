use std::path::Path;

use prost::Message;
use testkit::until;
use tonic::Code;
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, ServerReflectionResponse, server_reflection_request::MessageRequest,
    server_reflection_response::MessageResponse,
};

use crate::client::Client;
use crate::fixture::{MemoryCatalogs, TestServer};

#[test]
fn descriptors_are_those_of_the_proto_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    let mut compiler = protox::Compiler::new([folder]).unwrap();
    compiler
        .include_imports(true)
        .open_file("registry.proto")
        .unwrap();
    let compiled = compiler.encode_file_descriptor_set();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/registry.binpb");
    if std::env::var_os("UPDATE_DESCRIPTORS").is_some() {
        std::fs::write(&path, &compiled).unwrap();
    }
    let is_same = std::fs::read(path).unwrap() == compiled;
    assert!(
        is_same,
        "registry.proto has changed: run this test with UPDATE_DESCRIPTORS=1"
    );
}

#[tokio::test]
async fn both_versions_list_the_services_and_describe_the_api() {
    let (_server, client) = TestServer::connected(&MemoryCatalogs::new(), "lab").await;
    for version in ["v1", "v1alpha"] {
        let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
        let ask = async |request: MessageRequest| {
            let request = ServerReflectionRequest {
                host: String::new(),
                message_request: Some(request),
            };
            let messages = client.call(&path, &request.encode_to_vec()).await.unwrap();
            let answer = ServerReflectionResponse::decode(messages[0].as_slice()).unwrap();
            answer.message_response.unwrap()
        };
        let MessageResponse::ListServicesResponse(listed) =
            ask(MessageRequest::ListServices(String::new())).await
        else {
            panic!("no list of services");
        };
        let mut names: Vec<String> = listed
            .service
            .into_iter()
            .map(|service| service.name)
            .collect();
        names.sort();
        let reflection = format!("grpc.reflection.{version}.ServerReflection");
        let expected = [
            "api.ExperimentalRegistry",
            "api.Registry",
            "grpc.health.v1.Health",
            &reflection,
        ];
        assert_eq!(names, expected);
        for symbol in ["api.Registry", "api.Bundle", "google.protobuf.Struct"] {
            let described = ask(MessageRequest::FileContainingSymbol(symbol.to_owned())).await;
            let MessageResponse::FileDescriptorResponse(_) = described else {
                panic!("{symbol}")
            };
        }
    }
}

#[tokio::test]
async fn reflection_has_a_fixed_number_of_places() {
    let (server, client) = TestServer::connected(&MemoryCatalogs::new(), "lab").await;
    let path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    // They begin, and no request of theirs ends.
    let mut held = Vec::new();
    for _ in 0..64 {
        held.push(client.hold(path).await);
    }
    let other = Client::connect(server.port, "lab").await;
    assert_eq!(other.code(path, b"").await, Code::ResourceExhausted);
    held.pop();
    until("a place is free", async || {
        other.code(path, b"").await != Code::ResourceExhausted
    })
    .await;
}
