//! TLS, plain http and proxies.

use catalog_mirror_source::{FetchError, Proxy, ServerFault};
use tempfile::TempDir;
use testkit::{Fault, Kind, Registry};

use crate::kit::{ca_file, client_with, fault, plain, push, small, source};

#[tokio::test]
async fn trusted_ca_can_be_changed() {
    let registry = Registry::builder().tls().start().await;
    push(&registry, &small());
    let dir = TempDir::new().unwrap();
    let ca = ca_file(&dir, registry.ca_pem());
    let images = client_with(registry.host(), |settings| {
        settings.http.ca_files = vec![ca.clone()];
        settings.http.plain_http = plain(&[]);
    });
    images.resolve(&source(&registry)).await.unwrap();
    images.trust_ca_files(&[]).unwrap();
    // The connection that was trusted before is not used any more.
    let (found, _) = fault(images.resolve(&source(&registry)).await);
    assert!(matches!(found, ServerFault::Fetch(FetchError::Tls(_))), "{found:?}");
    let copy = images.clone();
    images.trust_ca_files(std::slice::from_ref(&ca)).unwrap();
    copy.resolve(&source(&registry)).await.unwrap();
    assert!(images.trust_ca_files(&["/nonexistent/ca.pem".into()]).is_err());
    copy.resolve(&source(&registry)).await.unwrap();
}

#[tokio::test]
async fn proxy_receives_requests() {
    let (registry, proxy) = (Registry::start().await, Registry::start().await);
    push(&proxy, &small());
    let url = format!("http://robot:hunter2@{}", proxy.host());
    let through = Proxy::of(|name| (name == "ALL_PROXY").then(|| url.clone()));
    let images = client_with(registry.host(), |settings| {
        settings.http.proxy = through.clone();
        settings.http.plain_http = plain(&["registry.example"]);
    });
    let source = "registry.example/ns/cat:v1".parse().unwrap();
    images.resolve(&source).await.unwrap();
    assert_eq!((registry.requests().len(), proxy.count(Kind::Head)), (0, 1));
    let (found, text) = fault(images.resolve(&"quay.example/ns/cat:none".parse().unwrap()).await);
    assert!(matches!(found, ServerFault::Fetch(FetchError::Connect(_))), "{found:?}");
    let place = format!(", at quay.example through the proxy {}: cannot connect", proxy.host());
    assert!(text.contains(&place) && !text.contains("hunter2"), "{text}");
    proxy.script(Kind::Head, Fault::Status(407, None));
    let (_, text) = fault(images.resolve(&source).await);
    assert!(text.contains(&format!("through the proxy {}", proxy.host())), "{text}");
    assert_eq!(
        proxy.requests()[0].host,
        "registry.example",
        "a proxy receives the whole URL"
    );
}
