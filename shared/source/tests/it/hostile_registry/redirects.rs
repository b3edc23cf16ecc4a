//! Redirects: where they may lead, and what goes with them.

use testkit::{Fault, Kind, Registry};

use super::{Lab, wanting};

fn to(status: u16, location: &str) -> Fault {
    Fault::Answer(status, vec![("location", location.to_owned())], String::new())
}

#[tokio::test]
async fn redirect_to_cdn_carries_no_credentials() {
    for status in [301, 302, 303, 307, 308] {
        let lab = Lab::new().await;
        let layer = &lab.image.layers[0];
        let cdn = format!(
            "http://{}/v2/ns/cat/blobs/{layer}?X-Amz-Signature=1&x={status}",
            lab.other.host()
        );
        lab.script([(Kind::Blob, Fault::Pass), (Kind::Blob, to(status, &cdn))]);
        lab.expect("a CDN on another port", "read").await;
        assert_eq!(lab.other.requests()[0].query, format!("X-Amz-Signature=1&x={status}"));
    }
}

#[tokio::test]
async fn five_redirects_are_followed_and_sixth_is_refused() {
    let home = "/v2/ns/cat/manifests/v1";
    for (count, want) in [(5, "read"), (6, "refused: too many"), (1000, "refused: too many")] {
        let lab = Lab::new().await;
        (0..count).for_each(|_| lab.registry.script(Kind::Head, to(307, home)));
        lab.expect("to itself", want).await;
        assert!(lab.registry.count(Kind::Head) <= 6);
    }
}

#[tokio::test]
async fn redirect_back_to_registry_carries_no_credentials() {
    let lab = Lab::new().await;
    let path = format!("/v2/ns/cat/blobs/{}", lab.image.layers[0]);
    let (there, back) = (
        format!("http://{}{path}", lab.other.host()),
        format!("http://{}{path}", lab.registry.host()),
    );
    lab.script([(Kind::Blob, Fault::Pass), (Kind::Blob, to(307, &there))]);
    lab.other.script(Kind::Blob, to(307, &back));
    lab.expect("there and back", "status").await;
    let last = lab.registry.requests().pop().unwrap();
    assert_eq!((last.kind, last.authorization), (Kind::Blob, None));
}

#[tokio::test]
async fn challenge_of_other_host_gets_no_credentials() {
    for (status, challenge) in [
        (401, r#"Basic realm="x""#.to_owned()),
        (401, r#"Bearer realm="http://HOST/token",service="x""#.to_owned()),
        (403, String::new()),
    ] {
        let lab = Lab::new().await;
        let challenge = challenge.replace("HOST", lab.other.host());
        let cdn = format!("http://{}/v2/ns/cat/blobs/x", lab.other.host());
        lab.script([(Kind::Blob, to(307, &cdn))]);
        lab.other.script(
            Kind::Blob,
            Fault::Answer(status, vec![("www-authenticate", challenge)], String::new()),
        );
        let text = lab.expect("a CDN that wants a password", "status").await;
        assert!(
            text.contains(&format!(", at {}: unexpected answer {status}", lab.other.host())),
            "{text}"
        );
        assert_eq!(lab.other.requests().len(), 1, "nothing was tried again");
    }
}

/// One row for each rule. `fetch` has the spellings of addresses.
#[tokio::test]
async fn redirect_to_metadata_service_is_refused() {
    let long = format!("http://{}.example.com/", "a".repeat(3000));
    let rows = [
        ("file:///etc/passwd", "refused: scheme"),
        ("http://registry.example.com/x", "refused: plain http"),
        ("http://user:password@127.0.0.1/x", "refused: userinfo"),
        ("http://127.0.0.1:99999/x", "refused: not url"),
        ("https://169.254.169.254/latest/meta-data/", "refused: link local"),
        ("//169.254.169.254/latest/meta-data/", "refused: plain http"),
        ("https://metadata.google.internal/x", "refused: link local"),
        (&long, "refused: plain http"),
    ];
    for (location, want) in rows {
        let lab = Lab::new().await;
        lab.script([(Kind::Head, to(302, location))]);
        let text = lab.expect(location, want).await;
        assert!(text.len() < 1000, "{text}");
        assert_eq!(lab.registry.requests().len(), 1, "{location}: it is not tried again");
    }
    let none = Lab::new().await;
    none.script([(Kind::Head, Fault::Answer(302, vec![], String::new()))]);
    none.expect("no location", "refused: not url").await;
}

#[tokio::test]
async fn redirect_from_internet_to_near_address_is_refused() {
    let rows = [
        ("https://127.0.0.1/x", "refused: private"),
        ("https://[::1]/x", "refused: private"),
        ("https://localhost/x", "refused: private"),
        ("https://10.1.2.3/x", "refused: private"),
        ("https://169.254.169.254/x", "refused: link local"),
        ("http://cdn.example.com/v2/ns/cat/manifests/v1", "status"),
    ];
    for (location, want) in rows {
        let lab = Lab::public().await;
        lab.warm().await;
        lab.script([(Kind::Head, to(302, location))]);
        let text = lab.expect(location, want).await;
        let has_advice = text.contains("under internalHosts");
        assert_eq!(has_advice, want == "refused: private", "{text}");
    }
}

#[tokio::test]
async fn redirect_from_https_to_unlisted_http_is_refused() {
    for (is_listed, want) in [(false, "refused: downgrade"), (true, "read")] {
        let (registry, other) = (wanting().tls().start().await, Registry::start().await);
        let ca = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(ca.path(), registry.ca_pem()).unwrap();
        let (host, plain) = (registry.host().to_owned(), other.host().to_owned());
        let lab = Lab::of(registry, other, &host, |settings| {
            settings.http.ca_files = vec![ca.path().to_owned()];
            let listed = if is_listed { vec![plain.clone()] } else { Vec::new() };
            settings.http.plain_http = listed;
        });
        lab.warm().await;
        let cdn = format!("http://{plain}/v2/ns/cat/blobs/{}", lab.image.layers[0]);
        lab.script([(Kind::Blob, Fault::Pass), (Kind::Blob, to(307, &cdn))]);
        lab.expect("https to http", want).await;
    }
}
