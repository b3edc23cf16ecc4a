use std::time::Duration;

use prost::Message;
use tokio::time::timeout;
use tonic::{Code, Streaming};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus};

use crate::{
    client::Client,
    fixture::{MemoryCatalogs, TestServer, package},
};

fn request(service: &str) -> Vec<u8> {
    let service = service.to_owned();
    HealthCheckRequest { service }.encode_to_vec()
}

fn status(message: &[u8]) -> ServingStatus {
    HealthCheckResponse::decode(message).unwrap().status()
}

async fn check(client: &Client, service: &str) -> Result<ServingStatus, Code> {
    let messages = client.call("/grpc.health.v1.Health/Check", &request(service)).await;
    messages
        .map(|messages| status(&messages[0]))
        .map_err(|status| status.code())
}

async fn watch(client: &Client, service: &str) -> Streaming<Vec<u8>> {
    let stream = client.start("/grpc.health.v1.Health/Watch", &request(service)).await;
    stream.unwrap()
}

async fn next(stream: &mut Streaming<Vec<u8>>) -> ServingStatus {
    status(&stream.message().await.unwrap().unwrap())
}

#[tokio::test]
async fn check_knows_the_server_the_api_and_each_catalog() {
    let catalogs = MemoryCatalogs::of("a").await;
    // opm would serve none of it.
    let catalogs = catalogs
        .with("b", "{\"schema\":\"olm.channel\",\"name\":\"c\"}\n")
        .await;
    let (server, client) = TestServer::connected(&catalogs, "a.lab").await;
    for (service, expected) in [
        ("", Ok(ServingStatus::Serving)),
        ("api.Registry", Ok(ServingStatus::Serving)),
        // As operator-registry's own client asks.
        ("Registry", Ok(ServingStatus::Serving)),
        ("a", Ok(ServingStatus::Serving)),
        ("b", Ok(ServingStatus::NotServing)),
        ("absent", Err(Code::NotFound)),
    ] {
        assert_eq!(check(&client, service).await, expected, "{service}");
    }
    // A client of a broken catalog learns of it, and one that names none sees a server that serves.
    let client = Client::connect(server.port, "b.lab").await;
    assert_eq!(check(&client, "").await, Ok(ServingStatus::NotServing));
    let client = Client::connect(server.port, "mirror.lab").await;
    assert_eq!(check(&client, "").await, Ok(ServingStatus::Serving));
    // Without any catalog there is nothing to serve.
    let (_server, client) = TestServer::connected(&MemoryCatalogs::new(), "mirror.lab").await;
    assert_eq!(check(&client, "").await, Ok(ServingStatus::NotServing));
}

#[tokio::test]
async fn watch_reports_the_status_and_each_change() {
    let catalogs = MemoryCatalogs::of("a").await;
    let (_server, client) = TestServer::connected(&catalogs, "lab").await;
    let mut stream = watch(&client, "a").await;
    assert_eq!(next(&mut stream).await, ServingStatus::Serving);
    // Nothing comes while nothing changes.
    assert!(timeout(Duration::from_millis(200), stream.message()).await.is_err());
    // A catalog that goes no longer serves, for whatever reason.
    catalogs.remove("a").await;
    assert_eq!(next(&mut stream).await, ServingStatus::NotServing);
    catalogs.clone().with("a", package("a")).await;
    assert_eq!(next(&mut stream).await, ServingStatus::Serving);
    let mut unknown = watch(&client, "absent").await;
    assert_eq!(next(&mut unknown).await, ServingStatus::ServiceUnknown);
}

#[tokio::test]
async fn watch_ends_when_the_server_stops() {
    let catalogs = MemoryCatalogs::of("a").await;
    let (server, client) = TestServer::connected(&catalogs, "lab").await;
    let mut stream = watch(&client, "a").await;
    assert_eq!(next(&mut stream).await, ServingStatus::Serving);
    drop(server.stop);
    assert_eq!(next(&mut stream).await, ServingStatus::NotServing);
    assert_eq!(stream.message().await.unwrap_err().code(), Code::Unavailable);
}
