//! Redirects: where they may lead, and what goes with them.

use testkit::{Fault, Kind, Registry};

use super::{Lab, wanting};

fn to(status: u16, location: &str) -> Fault {
    Fault::Answer(
        status,
        vec![("location", location.to_owned())],
        String::new(),
    )
}

#[tokio::test]
async fn redirect_to_cdn_carries_no_credentials() {
    for status in [301, 302, 303, 307, 308] {
        let lab = Lab::new().await;
        let path = format!("/v2/ns/cat/blobs/{}", lab.image.layers[0]);
        let cdn = format!("http://{}{path}?X-Amz-Signature=1", lab.other.host());
        lab.script([(Kind::Blob, Fault::Pass), (Kind::Blob, to(status, &cdn))]);
        lab.expect("a CDN on another port", "read").await;
        assert_eq!(lab.other.requests()[0].query, "X-Amz-Signature=1");
    }
}

#[tokio::test]
async fn five_redirects_are_followed_and_sixth_is_refused() {
    let home = "/v2/ns/cat/manifests/v1";
    for (count, want) in [
        (5, "read"),
        (6, "refused: too many"),
        (1000, "refused: too many"),
    ] {
        let lab = Lab::new().await;
        lab.script((0..count).map(|_| (Kind::Head, to(307, home))));
        lab.expect("to itself", want).await;
        assert!(lab.registry.count(Kind::Head) <= 6);
    }
}

#[tokio::test]
async fn redirect_back_to_registry_carries_no_credentials() {
    let lab = Lab::new().await;
    let path = format!("/v2/ns/cat/blobs/{}", lab.image.layers[0]);
    let there = format!("http://{}{path}", lab.other.host());
    let back = format!("http://{}{path}", lab.registry.host());
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
        (
            401,
            r#"Bearer realm="http://HOST/token",service="x""#.to_owned(),
        ),
        (403, String::new()),
    ] {
        let lab = Lab::new().await;
        let challenge = challenge.replace("HOST", lab.other.host());
        let answer = Fault::Answer(status, vec![("www-authenticate", challenge)], String::new());
        let cdn = format!("http://{}/v2/ns/cat/blobs/x", lab.other.host());
        lab.script([(Kind::Blob, to(307, &cdn))]);
        lab.other.script(Kind::Blob, answer);
        let text = lab.expect("a CDN that wants a password", "status").await;
        let place = format!(", at {}: unexpected answer {status}", lab.other.host());
        assert!(text.contains(&place), "{text}");
        assert_eq!(lab.other.requests().len(), 1, "nothing was tried again");
    }
}

/// `fetch` has the rules and the spellings of addresses, `network` the names.
#[tokio::test]
async fn redirect_to_metadata_service_or_near_address_is_refused() {
    let long = format!("http://{}.example.com/", "a".repeat(3000));
    for (location, want) in [
        ("file:///etc/passwd", "refused: scheme"),
        (
            "https://169.254.169.254/latest/meta-data/",
            "refused: link local",
        ),
        ("//169.254.169.254/latest/meta-data/", "refused: plain http"),
        (&long, "refused: plain http"),
        ("https://127.0.0.1/x", "refused: private"),
        ("http://cdn.example.com/v2/ns/cat/manifests/v1", "status"),
    ] {
        let lab = Lab::public().await;
        lab.warm().await;
        lab.script([(Kind::Head, to(302, location))]);
        let text = lab.expect(location, want).await;
        assert!(text.len() < 1000, "{text}");
        let has_advice = text.contains("under internalHosts");
        assert_eq!(has_advice, want == "refused: private", "{text}");
        // Nothing is tried again. The CDN is behind the same proxy.
        let requests = if want == "status" { 2 } else { 1 };
        assert_eq!(lab.registry.requests().len(), requests, "{location}");
    }
    let none = Lab::new().await;
    none.script([(Kind::Head, Fault::Answer(302, vec![], String::new()))]);
    none.expect("no location", "refused: not url").await;
}

#[tokio::test]
async fn redirect_from_https_to_unlisted_http_is_refused() {
    for (is_listed, want) in [(false, "refused: downgrade"), (true, "read")] {
        let other = Registry::start().await;
        let plain = other.host().to_owned();
        let lab = Lab::tls(wanting().tls(), other, |settings| {
            settings
                .http
                .plain_http
                .extend(is_listed.then(|| plain.clone()));
        })
        .await;
        lab.warm().await;
        let cdn = format!("http://{plain}/v2/ns/cat/blobs/{}", lab.image.layers[0]);
        lab.script([(Kind::Blob, Fault::Pass), (Kind::Blob, to(307, &cdn))]);
        lab.expect("https to http", want).await;
    }
}
