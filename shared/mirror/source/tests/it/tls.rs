//! TLS, plain http and proxies.

use source::Proxy;
use testkit::{Fault, Kind, Registry};

use crate::kit::{client_with, failed, plain, push, small, source, tls_client};

#[tokio::test]
async fn trusted_ca_can_be_changed() {
    let registry = Registry::builder().tls().start().await;
    push(&registry, &small());
    let (ca, source) = (tempfile::NamedTempFile::new().unwrap(), source(&registry));
    std::fs::write(ca.path(), registry.ca_pem()).unwrap();
    let images = tls_client(registry.ca_pem(), |_| {});
    images.resolve(&source).await.unwrap();
    images.trust_ca_files(&[]).unwrap();
    // The connection that was trusted before is not used any more.
    failed(images.resolve(&source).await, "tls");
    let copy = images.clone();
    images.trust_ca_files(&[ca.path().to_owned()]).unwrap();
    copy.resolve(&source).await.unwrap();
    assert!(
        images
            .trust_ca_files(&["/nonexistent/ca.pem".into()])
            .is_err()
    );
    copy.resolve(&source).await.unwrap();
}

#[tokio::test]
async fn proxy_receives_requests() {
    let (registry, proxy) = (Registry::start().await, Registry::start().await);
    push(&proxy, &small());
    let url = format!("http://robot:hunter2@{}", proxy.host());
    let images = client_with(registry.host(), |settings| {
        settings.http.proxy = Proxy::of(|name| (name == "ALL_PROXY").then(|| url.clone()));
        settings.http.plain_http = plain(&["registry.example"]);
    });
    let source = "registry.example/ns/cat:v1".parse().unwrap();
    images.resolve(&source).await.unwrap();
    assert_eq!((registry.requests().len(), proxy.count(Kind::Head)), (0, 1));
    let other = "quay.example/ns/cat:none".parse().unwrap();
    let text = failed(images.resolve(&other).await, "connect");
    let place = format!(
        ", at quay.example through the proxy {}: cannot connect",
        proxy.host()
    );
    assert!(text.contains(&place) && !text.contains("hunter2"), "{text}");
    proxy.script(Kind::Head, Fault::Status(407, None));
    let text = failed(images.resolve(&source).await, "status");
    assert!(
        text.contains(&format!("through the proxy {}", proxy.host())),
        "{text}"
    );
    let first = proxy.requests().remove(0);
    assert_eq!(
        first.host, "registry.example",
        "a proxy receives the whole URL"
    );
}
