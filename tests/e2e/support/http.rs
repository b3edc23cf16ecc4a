use std::sync::LazyLock;

use reqwest::{Client, ClientBuilder, Method, Response};
use serde_json::Value;

use super::binary::Server;

/// Returns a client that opens a connection for each request.
pub(crate) fn client() -> ClientBuilder {
    // reqwest needs a provider; another test may have installed one.
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
    Client::builder().no_proxy().pool_max_idle_per_host(0)
}

/// Sends a request with these header fields.
pub(crate) async fn request(method: Method, url: &str, fields: &[(&str, &str)]) -> Response {
    static CLIENT: LazyLock<Client> =
        LazyLock::new(|| client().build().expect("a plain client can be made"));
    let request = fields
        .iter()
        .fold(CLIENT.request(method, url), |request, (name, value)| {
            request.header(*name, *value)
        });
    request.send().await.expect("the server answers")
}

/// Sends a GET request with these header fields.
pub(crate) async fn get(url: &str, fields: &[(&str, &str)]) -> Response {
    request(Method::GET, url, fields).await
}

impl Server {
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        get(&self.url(path), &[]).await
    }

    pub(crate) async fn status(&self, path: &str) -> u16 {
        self.get(path).await.status().as_u16()
    }

    /// Returns the body of a GET request, whose status must be 200.
    pub(crate) async fn body(&self, path: &str) -> Vec<u8> {
        let response = self.get(path).await;
        assert_eq!(response.status(), 200, "{path}");
        response.bytes().await.expect("the body is whole").to_vec()
    }

    /// Returns the body of a GET request as text; the status must be 200.
    pub(crate) async fn text(&self, path: &str) -> String {
        String::from_utf8(self.body(path).await).expect("the body is text")
    }

    /// Returns the body of a GET request as JSON; the status must be 200.
    pub(crate) async fn json(&self, path: &str) -> Value {
        serde_json::from_slice(&self.body(path).await).expect("the body is JSON")
    }
}

/// Returns a header field, which must be present.
pub(crate) fn field(response: &Response, name: &str) -> String {
    let value = response
        .headers()
        .get(name)
        .unwrap_or_else(|| panic!("{name} is missing: {:?}", response.headers()));
    value.to_str().expect("the field is text").to_owned()
}
