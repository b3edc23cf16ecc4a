use prost::Message;
use tonic::Code;
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus,
};

use crate::client::Client;
use crate::fixture::{MemoryCatalogs, TestServer};

async fn check(client: &Client, service: &str) -> Result<ServingStatus, Code> {
    let service = service.to_owned();
    let request = HealthCheckRequest { service }.encode_to_vec();
    let messages = client.call("/grpc.health.v1.Health/Check", &request).await;
    let messages = messages.map_err(|status| status.code())?;
    Ok(HealthCheckResponse::decode(messages[0].as_slice())
        .unwrap()
        .status())
}

#[tokio::test]
async fn check_knows_the_server_the_api_and_each_catalog() {
    // opm would serve none of it.
    let broken = "{\"schema\":\"olm.channel\",\"name\":\"c\"}\n";
    let catalogs = MemoryCatalogs::of(&["a"]).await.with("b", broken).await;
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
async fn check_follows_the_catalog() {
    let catalogs = MemoryCatalogs::of(&["a"]).await;
    let (_server, client) = TestServer::connected(&catalogs, "lab").await;
    assert_eq!(check(&client, "a").await, Ok(ServingStatus::Serving));
    catalogs.remove("a").await;
    assert_ne!(check(&client, "a").await, Ok(ServingStatus::Serving));
    assert_eq!(check(&client, "").await, Ok(ServingStatus::NotServing));
}
