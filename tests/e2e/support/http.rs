use std::sync::OnceLock;

use reqwest::{Client, Method, Response};

fn client() -> &'static Client {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    CLIENT.get_or_init(|| {
        // reqwest needs a provider although these tests use no TLS; another test may have installed one.
        rustls::crypto::ring::default_provider().install_default().ok();
        Client::builder()
            .no_proxy()
            .pool_max_idle_per_host(0)
            .build()
            .expect("a plain client can be made")
    })
}

/// Sends a request with these header fields.
pub(crate) async fn request(method: Method, url: &str, fields: &[(&str, &str)]) -> Response {
    let request = client().request(method, url);
    let request = fields
        .iter()
        .fold(request, |request, (name, value)| request.header(*name, *value));
    request.send().await.expect("the server answers")
}

/// Sends a GET request with these header fields.
pub(crate) async fn get(url: &str, fields: &[(&str, &str)]) -> Response {
    request(Method::GET, url, fields).await
}

/// Returns the body of a GET request, whose status must be 200.
pub(crate) async fn body(url: &str) -> Vec<u8> {
    let response = get(url, &[]).await;
    assert_eq!(response.status(), 200, "{url}");
    response.bytes().await.expect("the body is whole").to_vec()
}

/// Returns the body of a GET request as text; the status must be 200.
pub(crate) async fn text(url: &str) -> String {
    String::from_utf8(body(url).await).expect("the body is text")
}

/// Returns a header field, which must be present.
pub(crate) fn field(response: &Response, name: &str) -> String {
    let value = response
        .headers()
        .get(name)
        .unwrap_or_else(|| panic!("{name} is missing: {:?}", response.headers()));
    value.to_str().expect("the field is text").to_owned()
}
