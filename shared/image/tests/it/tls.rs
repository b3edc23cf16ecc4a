//! TLS, plain http and proxies.

use std::fs;

use image::{Error, Fault, Images, Proxy, Settings, SettingsError};
use tempfile::TempDir;
use testkit::{Kind, Registry};

use crate::kit::{client, fault, pull, push, settings, small, source};

fn with_ca(registry: &Registry, pem: &str) -> (Result<Images, Error>, TempDir) {
    let dir = TempDir::new().unwrap();
    let ca = dir.path().join("ca.pem");
    fs::write(&ca, pem).unwrap();
    let settings = Settings {
        ca_files: vec![ca],
        plain_http: Vec::new(),
        ..settings(registry)
    };
    (Images::new(settings), dir)
}

#[tokio::test]
async fn an_own_ca_is_trusted_and_others_are_not() {
    let registry = Registry::builder().tls().start().await;
    push(&registry, &small());
    let (images, _dir) = with_ca(&registry, registry.ca_pem());
    assert_eq!(pull(&images.unwrap(), &registry).await.unwrap().0.list(), ["a.yaml=a"]);
    let untrusting = Images::new(Settings {
        plain_http: Vec::new(),
        ..settings(&registry)
    })
    .unwrap();
    let (told, text) = fault(untrusting.resolve(&source(&registry)).await);
    assert!(matches!(told, Fault::Tls(_)), "{told:?}");
    assert!(
        text.contains("add that with --ca-file") && text.contains(registry.host()),
        "{text}"
    );
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let registry = Registry::builder().tls_for(&["example.com"]).start().await;
    let (images, _dir) = with_ca(&registry, registry.ca_pem());
    let (told, _) = fault(images.unwrap().resolve(&source(&registry)).await);
    assert!(matches!(told, Fault::Tls(_)), "{told:?}");
}

#[tokio::test]
async fn a_bundle_without_certificates_is_refused_at_once() {
    let registry = Registry::start().await;
    let error = with_ca(&registry, "nothing here").0.err().unwrap();
    assert!(
        matches!(error, Error::Settings(SettingsError::NoCertificate(_))),
        "{error}"
    );
    let ca_files = vec!["/nonexistent/ca.pem".into()];
    let error = Images::new(Settings {
        ca_files,
        ..Settings::default()
    })
    .err()
    .unwrap();
    assert!(
        matches!(error, Error::Settings(SettingsError::CaFile { .. })),
        "{error}"
    );
}

#[tokio::test]
async fn plain_http_is_refused_unless_listed() {
    let registry = Registry::start().await;
    push(&registry, &small());
    let strict = Images::new(Settings {
        plain_http: Vec::new(),
        ..settings(&registry)
    })
    .unwrap();
    let (told, text) = fault(strict.resolve(&source(&registry)).await);
    assert!(matches!(told, Fault::PlainHttp), "{told:?}");
    assert!(text.contains("under plainHttp"), "{text}");
    assert_eq!(registry.requests().len(), 0);
    client(&registry).resolve(&source(&registry)).await.unwrap();
}

#[tokio::test]
async fn a_proxy_is_gone_through() {
    let (registry, proxy) = (Registry::start().await, Registry::start().await);
    push(&proxy, &small());
    let through = Proxy::Url(format!("http://{}", proxy.host()));
    let images = Images::new(Settings {
        proxy: through,
        ..settings(&registry)
    })
    .unwrap();
    images.resolve(&source(&registry)).await.unwrap();
    assert_eq!((registry.requests().len(), proxy.count(Kind::Head)), (0, 1));
    assert_eq!(
        proxy.requests()[0].host,
        registry.host(),
        "a proxy is told the whole URL"
    );
}
