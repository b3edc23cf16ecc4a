//! Token services: where they may be, and what they may answer.

use std::time::Duration;

use catalog_mirror_source::SourceSettings;
use testkit::{Fault, Kind, Registry, RegistryBuilder};
use tokio::time::sleep;

use super::{Lab, PASSWORD, login, secrets, verdict};

fn bearer() -> RegistryBuilder {
    Registry::builder().bearer(super::USER, PASSWORD)
}

fn challenge(text: &str) -> Fault {
    Fault::Answer(401, vec![("www-authenticate", text.to_owned())], String::new())
}

fn realm(url: &str) -> Fault {
    challenge(&format!(
        r#"Bearer realm="{url}",service="x",scope="repository:ns/cat:pull""#
    ))
}

#[tokio::test]
async fn realm_at_refused_address_gets_no_credentials() {
    let rows = [
        ("https://169.254.169.254/token", "refused: link local"),
        ("https://metadata.google.internal/token", "refused: link local"),
        ("http://auth.example.com/token", "refused: plain http"),
        ("https://user:password@auth.example.com/token", "refused: userinfo"),
        ("file:///etc/passwd", "refused: scheme"),
        ("/token", "challenge"),
        ("", "challenge"),
    ];
    for (url, want) in rows {
        let lab = Lab::with(bearer(), |_| {}).await;
        lab.script([(Kind::Head, realm(url))]);
        lab.expect(url, want).await;
        assert_eq!(lab.registry.requests().len(), 1, "{url}");
    }
    for (url, want) in [
        ("https://127.0.0.1/token", "refused: private"),
        ("https://10.0.0.1/token", "refused: private"),
        ("https://localhost/token", "refused: private"),
    ] {
        let lab = Lab::public().await;
        lab.script([(Kind::Head, realm(url))]);
        lab.expect(url, want).await;
    }
}

#[tokio::test]
async fn realm_that_failed_is_not_asked_for_ever() {
    let lab = Lab::with(bearer(), |_| {}).await;
    lab.script([(Kind::Head, realm("http://auth.example.com/token"))]);
    lab.expect("another realm", "refused: plain http").await;
    lab.expect("corrected", "read").await;

    let lifetime = Duration::from_secs(1);
    let lab = Lab::with(bearer().token_lifetime(lifetime), |_| {}).await;
    lab.expect("a first token", "read").await;
    sleep(lifetime).await;
    lab.script([(Kind::Token, Fault::Status(204, None))]);
    lab.expect("no second one", "token service").await;
    lab.expect("a third one", "read").await;
}

#[tokio::test]
async fn unknown_challenge_differs_from_refusal() {
    for text in [
        "",
        "Negotiate",
        "Digest realm=x, nonce=y",
        r#"Bearer realm="http://127.0.0.1:1/token"#,
        "Bearer",
        "Bearer realm=\"not a url\"",
        "\u{1}",
    ] {
        let lab = Lab::with(bearer(), |_| {}).await;
        let text = text.replace('\u{1}', "%01");
        lab.script([(Kind::Head, challenge(&text))]);
        lab.expect(&text, "challenge").await;
    }
}

#[tokio::test]
async fn malformed_token_answer_is_refused() {
    let token = |text: &str| Fault::Body(serde_json::json!({ "token": text }).to_string());
    let body = |text: &str| Fault::Body(text.to_owned());
    let redirect = Fault::Redirect("http://127.0.0.1:1/token".to_owned());
    let rows = vec![
        ("a line end", token("a\r\nx-evil: 1"), "token service"),
        ("a NUL", token("a\0"), "token service"),
        ("a space", token("a b"), "token service"),
        ("colours", token("\u{1b}[31m"), "token service"),
        ("not ASCII", token("töken"), "token service"),
        ("an empty one", token(""), "token service"),
        ("a number", body(r#"{"token": 5}"#), "token service"),
        (
            "a token of 64 KiB and one byte",
            token(&"t".repeat((64 << 10) + 1)),
            "token service",
        ),
        ("an answer of 5 MB", token(&"t".repeat(5 << 20)), "limit manifestBytes"),
        ("a deep answer", body(&"[".repeat(100_000)), "token service"),
        ("a page", body("<html>"), "token service"),
        ("a redirect", redirect, "token service"),
        ("nothing", Fault::Status(204, None), "token service"),
        ("no", Fault::Status(401, None), "unauthorized"),
        ("never", Fault::Status(403, None), "forbidden"),
        ("not here", Fault::Status(404, None), "token service"),
        ("overload", Fault::Status(429, Some("100".to_owned())), "rate limited"),
    ];
    for (name, answer, want) in rows {
        let lab = Lab::with(bearer(), |_| {}).await;
        lab.script([(Kind::Token, answer)]);
        lab.expect(name, want).await;
    }
    for lifetime in ["0", "18446744073709551615"] {
        let lab = Lab::with(bearer(), |_| {}).await;
        let answer = format!(r#"{{"token": "not-good", "expires_in": {lifetime}}}"#);
        lab.script([(Kind::Token, body(&answer))]);
        lab.expect(lifetime, "unauthorized").await;
        lab.expect("corrected", "read").await;
    }
}

#[tokio::test]
async fn missing_token_service_is_not_a_missing_image() {
    let lab = Lab::with(bearer(), |_| {}).await;
    lab.script([(Kind::Token, Fault::Status(404, None))]);
    let asked = lab.client().exists(&lab.source()).await;
    assert_eq!(verdict(&asked), "token service");
    assert!(lab.client().exists(&lab.source()).await.unwrap());
}

#[tokio::test]
async fn repeated_challenge_ends_attempts() {
    let lab = Lab::with(bearer(), |_| {}).await;
    let url = format!("http://{}/token", lab.registry.host());
    (0..50).for_each(|_| lab.registry.script(Kind::Head, realm(&url)));
    lab.expect("401 for ever", "unauthorized").await;
    assert_eq!(
        (lab.registry.count(Kind::Head), lab.registry.count(Kind::Token)),
        (2, 1)
    );
}

#[tokio::test]
async fn token_request_asks_for_pull_only() {
    let lab = Lab::with(bearer(), |_| {}).await;
    let greedy = r#"Bearer realm="http://HOST/token?keep=1",service="a b&c=d",scope="repository:ns/cat:pull,push,delete registry:catalog:*""#;
    lab.script([(Kind::Head, challenge(&greedy.replace("HOST", lab.registry.host())))]);
    lab.expect("a greedy challenge", "read").await;
    let mut asked = lab
        .registry
        .requests()
        .into_iter()
        .filter(|request| request.kind == Kind::Token);
    let query = asked.next().unwrap().query;
    assert_eq!(
        query,
        "keep=1&scope=repository%3Ans%2Fcat%3Apull&service=a+b%26c%3Dd&account=robot"
    );
}

#[tokio::test]
async fn identity_token_is_sent_to_realm_only() {
    let identity = |host: &str| {
        login(
            host,
            &format!(r#""auth": "PHRva2VuPjo=", "identitytoken": "{PASSWORD}""#),
        )
    };
    let registry = bearer().start().await;
    let (host, other) = (registry.host().to_owned(), Registry::start().await);
    let lab = Lab::of(registry, other, &host, |settings: &mut SourceSettings| {
        settings.logins = identity(&host);
    });
    lab.expect("an identity token", "read").await;
    for request in lab.registry.requests() {
        let has_password = request.body.contains(PASSWORD);
        assert_eq!(has_password, request.kind == Kind::Token, "{request:?}");
        assert!(!request.query.contains(PASSWORD) && !request.path.contains(PASSWORD));
        assert!(request.authorization.is_none_or(|value| value.starts_with("Bearer ")));
    }
}

#[tokio::test]
async fn credentials_match_host_and_port() {
    let lab = Lab::with(bearer(), |_| {}).await;
    lab.warm().await;
    let images = lab.client();
    let neighbour = format!("{}/ns/cat:v1", lab.other.host()).parse().unwrap();
    for wants in [
        r#"Basic realm="x""#.to_owned(),
        format!(r#"Bearer realm="http://{}/token""#, lab.other.host()),
    ] {
        lab.other.script(Kind::Head, challenge(&wants));
        images.resolve(&neighbour).await.err();
        lab.other.script(Kind::Head, Fault::Pass);
        images.resolve(&neighbour).await.unwrap();
    }
    assert_eq!(
        lab.other.requests()[0].authorization,
        None,
        "a token is not for the neighbour either"
    );
    for request in lab.other.requests() {
        let text = format!("{request:?}");
        assert!(secrets().iter().all(|secret| !text.contains(secret)), "{text}");
    }
}

#[tokio::test]
async fn error_withholds_secret_in_header() {
    let [password, basic] = secrets();
    let letters = basic.trim_end_matches('=').to_owned();
    for host in [
        format!("{password}.example.com"),
        format!("x.{}.example.com", password.to_uppercase()),
    ] {
        let lab = Lab::new().await;
        lab.script([(Kind::Head, Fault::Redirect(format!("http://{host}/")))]);
        let text = lab.expect(&host, "refused: plain http").await;
        assert!(
            !text.to_lowercase().contains(&password) && text.contains("withheld"),
            "{text}"
        );
    }
    let lab = Lab::new().await;
    lab.script([(Kind::Head, Fault::Digest(format!("sha256:{basic}")))]);
    let text = lab.expect("in a digest", "malformed digest").await;
    assert!(!text.contains(&letters) && text.contains("withheld"), "{text}");
}
