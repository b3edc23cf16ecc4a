use std::sync::OnceLock;

use reqwest::{Client, Method, Response};

fn client() -> &'static Client {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    CLIENT.get_or_init(|| {
        // reqwest asks for a provider although nothing here speaks TLS; somebody else may have set one.
        rustls::crypto::ring::default_provider().install_default().ok();
        Client::builder()
            .no_proxy()
            .pool_max_idle_per_host(0)
            .build()
            .expect("a plain client can be made")
    })
}

/// A request with these header fields.
pub(crate) async fn request(method: Method, url: &str, fields: &[(&str, &str)]) -> Response {
    let request = client().request(method, url);
    let request = fields
        .iter()
        .fold(request, |request, (name, value)| request.header(*name, *value));
    request.send().await.expect("the server answers")
}

/// A GET.
pub(crate) async fn get(url: &str, fields: &[(&str, &str)]) -> Response {
    request(Method::GET, url, fields).await
}

/// The body of a GET that must answer 200.
pub(crate) async fn body(url: &str) -> Vec<u8> {
    let response = get(url, &[]).await;
    assert_eq!(response.status(), 200, "{url}");
    response.bytes().await.expect("the body is whole").to_vec()
}

/// The same as text.
pub(crate) async fn text(url: &str) -> String {
    String::from_utf8(body(url).await).expect("the body is text")
}

/// A header field of a response.
pub(crate) fn field(response: &Response, name: &str) -> String {
    let value = response
        .headers()
        .get(name)
        .unwrap_or_else(|| panic!("{name} is missing: {:?}", response.headers()));
    value.to_str().expect("the field is text").to_owned()
}
