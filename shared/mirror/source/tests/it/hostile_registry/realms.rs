//! Token services: where they may be, and what they may answer.

use testkit::{Fault, Kind, Registry, RegistryBuilder};

use super::{Lab, PASSWORD, secrets};
use crate::kit::{failed, login};

fn bearer() -> RegistryBuilder {
    Registry::builder().bearer(super::USER, PASSWORD)
}

async fn lab() -> Lab {
    Lab::with(bearer(), |_| {}).await
}

fn challenge(text: &str) -> Fault {
    Fault::Answer(
        401,
        vec![("www-authenticate", text.to_owned())],
        String::new(),
    )
}

fn realm(url: &str) -> Fault {
    challenge(&format!(
        r#"Bearer realm="{url}",service="x",scope="repository:ns/cat:pull""#
    ))
}

#[tokio::test]
async fn realm_at_refused_address_gets_no_credentials() {
    for (url, want) in [
        ("http://auth.example.com/token", "refused: plain http"),
        ("/token", "challenge"),
        ("", "challenge"),
        // Seen from the internet. `network` has the other addresses.
        ("https://127.0.0.1/token", "refused: private"),
    ] {
        let is_near = want == "refused: private";
        let lab = if is_near {
            Lab::public().await
        } else {
            lab().await
        };
        lab.script([(Kind::Head, realm(url))]);
        lab.expect(url, want).await;
        assert_eq!(lab.registry.requests().len(), 1, "{url}");
        // The realm is not asked for ever.
        lab.expect("corrected", "read").await;
    }
}

#[tokio::test]
async fn malformed_token_answer_is_refused() {
    let token = |text: &str| Fault::Body(serde_json::json!({ "token": text }).to_string());
    let body = |text: &str| Fault::Body(text.to_owned());
    let status = |code| Fault::Status(code, None);
    let redirect = Fault::Redirect("http://127.0.0.1:1/token".to_owned());
    let long = |bytes| token(&"t".repeat(bytes));
    let no_life = body(r#"{"token": "not-good", "expires_in": 0}"#);
    let long_life = body(r#"{"token": "not-good", "expires_in": 18446744073709551615}"#);
    let overload = Fault::Status(429, Some("100".to_owned()));
    for (name, answer, want) in [
        ("a line end", token("a\r\nx-evil: 1"), "token service"),
        ("a number", body(r#"{"token": 5}"#), "token service"),
        ("64 KiB", long(64 << 10), "unauthorized"),
        ("64 KiB and one byte", long((64 << 10) + 1), "token service"),
        ("an answer of 5 MB", long(5 << 20), "limit manifestBytes"),
        ("a deep answer", body(&"[".repeat(100_000)), "token service"),
        ("a page", body("<html>"), "token service"),
        ("a redirect", redirect, "token service"),
        ("nothing", status(204), "token service"),
        ("no", status(401), "unauthorized"),
        ("never", status(403), "forbidden"),
        ("not here", status(404), "token service"),
        ("overload", overload, "rate limited"),
        ("no lifetime", no_life, "unauthorized"),
        ("a lifetime beyond clocks", long_life, "unauthorized"),
    ] {
        let lab = lab().await;
        lab.script([(Kind::Token, answer)]);
        lab.expect(name, want).await;
        lab.expect("corrected", "read").await;
    }
    // Not as if there were no such image.
    let lab = lab().await;
    lab.script([(Kind::Token, status(404))]);
    failed(lab.images.exists(&lab.source()).await, "token service");
}

#[tokio::test]
async fn repeated_challenge_ends_attempts() {
    let lab = lab().await;
    let url = format!("http://{}/token", lab.registry.host());
    lab.script((0..50).map(|_| (Kind::Head, realm(&url))));
    lab.expect("401 for ever", "unauthorized").await;
    let asked = [Kind::Head, Kind::Token].map(|kind| lab.registry.count(kind));
    assert_eq!(asked, [2, 1]);
}

#[tokio::test]
async fn token_request_asks_for_pull_only() {
    let lab = lab().await;
    let greedy = r#"Bearer realm="http://HOST/token?keep=1",service="a b&c=d",scope="repository:ns/cat:pull,push,delete registry:catalog:*""#;
    lab.script([(
        Kind::Head,
        challenge(&greedy.replace("HOST", lab.registry.host())),
    )]);
    lab.expect("a greedy challenge", "read").await;
    let mut asked = lab.registry.requests();
    asked.retain(|request| request.kind == Kind::Token);
    let want = "keep=1&scope=repository%3Ans%2Fcat%3Apull&service=a+b%26c%3Dd&account=robot";
    assert_eq!(asked[0].query, want);
}

#[tokio::test]
async fn identity_token_is_sent_to_realm_only() {
    let registry = bearer().start().await;
    let (host, other) = (registry.host().to_owned(), Registry::start().await);
    let identity = format!(r#""auth": "PHRva2VuPjo=", "identitytoken": "{PASSWORD}""#);
    let lab = Lab::of(registry, other, &host, |settings| {
        settings.logins = login(&host, &identity);
    });
    lab.expect("an identity token", "read").await;
    for request in lab.registry.requests() {
        let has_password = request.body.contains(PASSWORD);
        assert_eq!(has_password, request.kind == Kind::Token, "{request:?}");
        assert!(!request.query.contains(PASSWORD) && !request.path.contains(PASSWORD));
        assert!(
            request
                .authorization
                .is_none_or(|value| value.starts_with("Bearer "))
        );
    }
}

#[tokio::test]
async fn credentials_match_host_and_port() {
    let lab = lab().await;
    lab.warm().await;
    let images = &lab.images;
    let neighbour = format!("{}/ns/cat:v1", lab.other.host()).parse().unwrap();
    let token = format!(r#"Bearer realm="http://{}/token""#, lab.other.host());
    for wants in [r#"Basic realm="x""#, &token] {
        lab.other.script(Kind::Head, challenge(wants));
        images.resolve(&neighbour).await.err();
        lab.other.script(Kind::Head, Fault::Pass);
        images.resolve(&neighbour).await.unwrap();
    }
    let asked = lab.other.requests();
    assert_eq!(
        asked[0].authorization, None,
        "a token is not for the neighbour either"
    );
    let text = format!("{asked:?}");
    assert!(
        secrets().iter().all(|secret| !text.contains(secret)),
        "{text}"
    );
}

#[tokio::test]
async fn error_withholds_secret_in_header() {
    let [password, basic] = secrets();
    let to = format!("http://x.{}.example.com/", password.to_uppercase());
    for (fault, want) in [
        (Fault::Redirect(to), "refused: plain http"),
        (Fault::Digest(format!("sha256:{basic}")), "malformed digest"),
    ] {
        let lab = Lab::new().await;
        lab.script([(Kind::Head, fault)]);
        let text = lab.expect("a secret", want).await;
        let letters = basic.trim_end_matches('=');
        assert!(
            text.contains("withheld") && !text.contains(letters),
            "{text}"
        );
        assert!(!text.to_lowercase().contains(&password), "{text}");
    }
}
