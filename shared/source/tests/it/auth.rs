//! Credentials and tokens against a registry that wants them.

use std::fs;
use std::time::Duration;

use catalog_mirror_source::{CredentialsError, Digest, Error, Logins, ServerFault, Sources};
use tempfile::TempDir;
use testkit::{Fault, Kind, Layer, Registry, RegistryBuilder};

use crate::kit::{Collect, catalog, client_with, fault, pull, push, read, small, source};

/// A client whose only credentials are in `auth.json`, with HOST for the registry's host.
struct Client {
    images: Sources,
    dir: TempDir,
}

fn client(registry: &Registry, auth: &str) -> Client {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("auth.json");
    fs::write(&file, auth.replace("HOST", registry.host())).unwrap();
    let images = client_with(registry.host(), |settings| settings.auth_files = vec![file]);
    Client { images, dir }
}

const GOOD: &str = r#"{"auths": {"HOST": {"username": "user", "password": "secret"}}}"#;
const BAD: &str = r#"{"auths": {"HOST": {"username": "user", "password": "wrong-secret"}}}"#;
const NONE: &str = r#"{"auths": {"other.example.com": {"username": "user", "password": "secret"}}}"#;

fn basic() -> RegistryBuilder {
    Registry::builder().basic("user", "secret")
}

fn bearer() -> RegistryBuilder {
    Registry::builder().bearer("user", "secret")
}

async fn resolve(registry: &Registry, auth: &str) -> Result<Digest, Error> {
    client(registry, auth).images.resolve(&source(registry)).await
}

async fn start(builder: RegistryBuilder) -> Registry {
    let registry = builder.start().await;
    push(&registry, &small());
    registry
}

#[tokio::test]
async fn basic_and_bearer_authentication_succeed() {
    for builder in [basic(), bearer(), Registry::builder().anonymous_bearer()] {
        let registry = start(builder).await;
        let files = pull(&client(&registry, GOOD).images, &registry).await.unwrap().0;
        assert_eq!(files.list(), ["a.yaml=a"]);
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
        client.images.resolve(&source(&registry)).await.unwrap();
        tokio::time::sleep(pause).await;
        client.images.resolve(&source(&registry)).await.unwrap();
        // The first HEAD is challenged.
        assert_eq!((registry.count(Kind::Head), registry.count(Kind::Token)), (3, tokens));
    }
}

#[tokio::test]
async fn expired_token_is_renewed_once_for_all_layers() {
    let registry = start(bearer()).await;
    let layers = (0..3).map(|at| Layer::new().file(&format!("configs/{at}"), "x"));
    push(&registry, &catalog(layers));
    let client = client(&registry, GOOD);
    let digest = client.images.resolve(&source(&registry)).await.unwrap();
    registry.delay(Kind::Blob, Duration::from_millis(50));
    registry.revoke_tokens();
    let source = source(&registry);
    let read = read(&client.images, &source, &digest, Collect::default());
    let revoke = async {
        tokio::time::sleep(Duration::from_millis(75)).await;
        registry.revoke_tokens();
    };
    let (read, ()) = tokio::join!(read, revoke);
    assert_eq!(read.unwrap().0.files.len(), 3);
    assert_eq!(
        registry.count(Kind::Token),
        3,
        "the first, one for the manifest and one for all layers"
    );
}

#[tokio::test]
async fn unauthorized_error_advises_login() {
    for (builder, auth, says) in [
        (bearer(), NONE, "it wants credentials and none are configured"),
        (basic(), NONE, "it wants credentials and none are configured"),
        (bearer(), BAD, "auth.json were refused"),
        (basic(), BAD, "auth.json were refused"),
    ] {
        let registry = start(builder).await;
        let (found, text) = fault(resolve(&registry, auth).await);
        assert!(matches!(found, ServerFault::Unauthorized(_)));
        assert!(text.contains(says) && text.contains("repository ns/cat"), "{text}");
        assert!(text.contains(&format!("`podman login {}`", registry.host())), "{text}");
        assert!(!text.contains("wrong-secret") && !format!("{found:?}").contains("wrong-secret"));
        assert!(registry.requests().len() <= 4, "a 401 is not tried for ever");
    }
}

#[tokio::test]
async fn challenge_of_any_refusal_gets_credentials_once() {
    for status in [403, 404] {
        for builder in [basic(), bearer()] {
            let registry = start(builder.challenging_with(status)).await;
            let files = pull(&client(&registry, GOOD).images, &registry).await.unwrap().0;
            assert_eq!(files.list(), ["a.yaml=a"], "{status}");
        }
        let registry = start(basic().challenging_with(status)).await;
        let (_, text) = fault(resolve(&registry, BAD).await);
        assert_eq!(registry.count(Kind::Head), 2, "{status}: {text}");
        let registry = start(basic().challenging_with(status)).await;
        fault(resolve(&registry, NONE).await);
        assert_eq!(registry.count(Kind::Head), 1, "{status}: there is nothing to send");
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
        client.images.resolve(&source(&registry)).await.unwrap();
        registry.script(Kind::Head, Fault::Status(403, None));
        let (found, text) = fault(client.images.resolve(&source(&registry)).await);
        assert!(
            matches!(found, ServerFault::Forbidden(_)) && text.contains(says),
            "{text}"
        );
    }
}

#[tokio::test]
async fn corrected_credentials_are_used_by_next_pull() {
    let registry = start(bearer()).await;
    let client = client(&registry, BAD);
    assert!(client.images.resolve(&source(&registry)).await.is_err());
    let file = client.dir.path().join("auth.json");
    fs::write(file, GOOD.replace("HOST", registry.host())).unwrap();
    client.images.resolve(&source(&registry)).await.unwrap();
}

#[tokio::test]
async fn credentials_of_namespace_are_preferred() {
    let registry = start(basic()).await;
    let auth = r#"{"auths": {"HOST": {"username": "user", "password": "wrong"},
        "HOST/ns": {"username": "user", "password": "secret"}}}"#;
    resolve(&registry, auth).await.unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn failed_credential_helper_is_an_error() {
    let registry = start(Registry::builder().anonymous_bearer()).await;
    let auth = r#"{"credHelpers": {"HOST": "no-such-helper-here"}}"#;
    let error = resolve(&registry, auth).await.unwrap_err();
    assert!(
        matches!(error, Error::Credentials(CredentialsError::Run { .. })),
        "{error}"
    );
    let error = resolve(&registry, "{ broken").await.unwrap_err();
    assert!(
        matches!(error, Error::Credentials(CredentialsError::Format { .. })),
        "{error}"
    );
}

#[tokio::test]
async fn replaced_logins_are_used_by_next_pull() {
    let registry = start(basic()).await;
    let logins = Logins::default();
    let images = client_with(registry.host(), |settings| {
        settings.logins = logins.clone();
        settings.auth_files = Vec::new();
    });
    let set = |text: &str| {
        let text = text.replace("HOST", registry.host());
        logins.set([("the vault", text.as_str())]).unwrap();
    };
    set(BAD);
    let (found, text) = fault(images.resolve(&source(&registry)).await);
    assert!(
        matches!(found, ServerFault::Unauthorized(Some(login)) if login == "the vault"),
        "{text}"
    );
    set(GOOD);
    images.resolve(&source(&registry)).await.unwrap();
}
