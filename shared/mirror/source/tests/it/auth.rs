//! Credentials and tokens against a registry that wants them.

use std::fs;
use std::time::Duration;

use source::{Logins, Sources};
use tempfile::NamedTempFile;
use testkit::{Fault, Kind, Layer, Registry, RegistryBuilder, until};

use crate::kit::{catalog, client_with, failed, pull, push, read, small, source};

/// A client with the credentials of this file, in memory.
fn client(registry: &Registry, auth: &str) -> Sources {
    let (logins, text) = (Logins::default(), auth.replace("HOST", registry.host()));
    logins.set([("the vault", text.as_str())]).unwrap();
    client_with(registry.host(), |settings| {
        settings.auth_files = Vec::new();
        settings.logins = logins;
    })
}

/// The right credentials, which those of the namespace are.
const GOOD: &str = r#"{"auths": {"HOST": {"username": "user", "password": "wrong"},
    "HOST/ns": {"username": "user", "password": "secret"}}}"#;
const BAD: &str = r#"{"auths": {"HOST": {"username": "user", "password": "wrong-secret"}}}"#;
const NONE: &str =
    r#"{"auths": {"other.example.com": {"username": "user", "password": "secret"}}}"#;

fn basic() -> RegistryBuilder {
    Registry::builder().basic("user", "secret")
}

fn bearer() -> RegistryBuilder {
    Registry::builder().bearer("user", "secret")
}

async fn start(builder: RegistryBuilder) -> Registry {
    let registry = builder.start().await;
    push(&registry, &small());
    registry
}

#[tokio::test]
async fn challenge_of_any_refusal_gets_credentials_once() {
    for status in [401, 403, 404] {
        for builder in [basic(), bearer(), Registry::builder().anonymous_bearer()] {
            let registry = start(builder.challenging_with(status)).await;
            let files = pull(&client(&registry, GOOD), &registry).await.unwrap().0;
            assert_eq!(files.list(), ["a.yaml=a"], "{status}");
        }
        for (auth, requests) in [(BAD, 2), (NONE, 1)] {
            let registry = start(basic().challenging_with(status)).await;
            let resolved = client(&registry, auth).resolve(&source(&registry)).await;
            assert!(resolved.is_err());
            assert_eq!(registry.count(Kind::Head), requests, "{status}: {auth}");
        }
    }
}

#[tokio::test]
async fn token_is_kept_between_polls_and_renewed_before_it_expires() {
    let second = Duration::from_secs(1);
    for (builder, pause, tokens) in [
        (bearer(), Duration::ZERO, 1),
        (bearer().token_lifetime(second), second + second / 10, 2),
    ] {
        let registry = start(builder).await;
        let client = client(&registry, GOOD);
        client.resolve(&source(&registry)).await.unwrap();
        tokio::time::sleep(pause).await;
        client.resolve(&source(&registry)).await.unwrap();
        // The first HEAD is challenged.
        assert_eq!(
            (registry.count(Kind::Head), registry.count(Kind::Token)),
            (3, tokens)
        );
    }
}

#[tokio::test]
async fn expired_token_is_renewed_once_for_all_layers() {
    let registry = start(bearer()).await;
    let layers = (0..3).map(|at| Layer::new().file(&format!("configs/{at}"), "x"));
    push(&registry, &catalog(layers));
    let (client, source) = (client(&registry, GOOD), source(&registry));
    let digest = client.resolve(&source).await.unwrap();
    registry.delay(Kind::Blob, Duration::from_millis(300));
    registry.revoke_tokens();
    let read = read(&client, &source, &digest);
    let revoke = async {
        until("a request for a layer waits", async || {
            registry.count(Kind::Blob) > 1
        })
        .await;
        registry.revoke_tokens();
    };
    let (read, ()) = tokio::join!(read, revoke);
    assert_eq!(read.unwrap().0.files.len(), 3);
    // The first, one for the manifest and one for all layers.
    assert_eq!(registry.count(Kind::Token), 3);
}

#[tokio::test]
async fn unauthorized_error_advises_login() {
    for builder in [basic, bearer] {
        for (auth, says) in [
            (NONE, "it wants credentials and none are configured"),
            (BAD, "the vault were refused"),
        ] {
            let registry = start(builder()).await;
            let text = failed(
                client(&registry, auth).resolve(&source(&registry)).await,
                "unauthorized",
            );
            let advice = format!("`podman login {}`", registry.host());
            for part in [says, "repository ns/cat", &advice] {
                assert!(
                    text.contains(part) && !text.contains("wrong-secret"),
                    "{text}"
                );
            }
            assert!(
                registry.requests().len() <= 4,
                "a 401 is not tried for ever"
            );
        }
    }
}

#[tokio::test]
async fn account_is_named_in_a_refusal_only_if_it_was_used() {
    for (builder, says) in [
        (Registry::builder(), "403, anonymous users may not read it"),
        (basic(), "403, the account from"),
    ] {
        let registry = start(builder).await;
        let client = client(&registry, GOOD);
        client.resolve(&source(&registry)).await.unwrap();
        registry.script(Kind::Head, Fault::Status(403, None));
        let text = failed(client.resolve(&source(&registry)).await, "forbidden");
        assert!(text.contains(says), "{text}");
    }
}

#[tokio::test]
async fn corrected_credentials_are_used_by_next_pull() {
    let (registry, file) = (start(bearer()).await, NamedTempFile::new().unwrap());
    let client = client_with(registry.host(), |settings| {
        settings.auth_files = vec![file.path().to_owned()];
    });
    let no_helper = r#"{"credHelpers": {"HOST": "no-such-helper-here"}}"#;
    for (auth, want) in [
        (BAD, "unauthorized"),
        (no_helper, "credentials: run"),
        ("{ broken", "credentials: format"),
        (GOOD, "read"),
    ] {
        fs::write(&file, auth.replace("HOST", registry.host())).unwrap();
        failed(client.resolve(&source(&registry)).await, want);
    }
}
