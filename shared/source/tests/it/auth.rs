//! Credentials and tokens against a registry that wants them.

use std::fs;
use std::time::Duration;

use catalog_mirror_source::{CredentialsError, Error, Logins, ServerFault, SourceSettings, Sources};
use tempfile::TempDir;
use testkit::{Fault, Kind, Layer, Registry, RegistryBuilder};

use crate::kit::{Collect, catalog, fault, pull, push, read, settings, small, source};

/// A client whose only credentials are in `auth.json`, with HOST for the registry's host.
struct Client {
    images: Sources,
    dir: TempDir,
}

fn client(registry: &Registry, auth: &str) -> Client {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("auth.json");
    fs::write(&file, auth.replace("HOST", registry.host())).unwrap();
    let images = Sources::new(SourceSettings {
        auth_files: vec![file],
        ..settings(registry)
    })
    .unwrap();
    Client { images, dir }
}

const GOOD: &str = r#"{"auths": {"HOST": {"username": "user", "password": "secret"}}}"#;
const BAD: &str = r#"{"auths": {"HOST": {"username": "user", "password": "wrong-secret"}}}"#;
const NONE: &str = r#"{"auths": {"other.example.com": {"username": "user", "password": "secret"}}}"#;

async fn start(builder: RegistryBuilder) -> Registry {
    let registry = builder.start().await;
    push(&registry, &small());
    registry
}

#[tokio::test]
async fn basic_and_bearer_authentication_succeed() {
    for builder in [
        Registry::builder().basic("user", "secret"),
        Registry::builder().bearer("user", "secret"),
        Registry::builder().anonymous_bearer(),
    ] {
        let registry = start(builder).await;
        assert_eq!(
            pull(&client(&registry, GOOD).images, &registry).await.unwrap().0.list(),
            ["a.yaml=a"]
        );
    }
}

#[tokio::test]
async fn token_is_kept_between_polls() {
    let registry = start(Registry::builder().bearer("user", "secret")).await;
    let client = client(&registry, GOOD);
    for _ in 0..3 {
        client.images.resolve(&source(&registry)).await.unwrap();
    }
    assert_eq!(
        (registry.count(Kind::Head), registry.count(Kind::Token)),
        (4, 1),
        "the first HEAD is challenged"
    );
    let token = registry
        .requests()
        .into_iter()
        .find(|request| request.kind == Kind::Token)
        .unwrap();
    assert!(
        token.query.contains("scope=repository%3Ans%2Fcat%3Apull"),
        "{}",
        token.query
    );
}

#[tokio::test]
async fn expired_token_is_renewed_before_request() {
    let registry = start(
        Registry::builder()
            .bearer("user", "secret")
            .token_lifetime(Duration::from_secs(1)),
    )
    .await;
    let client = client(&registry, GOOD);
    client.images.resolve(&source(&registry)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1100)).await;
    client.images.resolve(&source(&registry)).await.unwrap();
    assert_eq!((registry.count(Kind::Head), registry.count(Kind::Token)), (3, 2));
}

#[tokio::test]
async fn expired_token_is_renewed_once_for_all_layers() {
    let registry = start(Registry::builder().bearer("user", "secret")).await;
    push(
        &registry,
        &catalog((0..3).map(|at| Layer::new().file(&format!("configs/{at}"), "x"))),
    );
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
    let bearer = || Registry::builder().bearer("user", "secret");
    let basic = || Registry::builder().basic("user", "secret");
    for (builder, auth, says) in [
        (bearer(), NONE, "it wants credentials and none are configured"),
        (basic(), NONE, "it wants credentials and none are configured"),
        (bearer(), BAD, "auth.json were refused"),
        (basic(), BAD, "auth.json were refused"),
    ] {
        let registry = start(builder).await;
        let (found, text) = fault(client(&registry, auth).images.resolve(&source(&registry)).await);
        assert!(matches!(found, ServerFault::Unauthorized { .. }));
        assert!(text.contains(says) && text.contains("repository ns/cat"), "{text}");
        assert!(text.contains(&format!("`podman login {}`", registry.host())), "{text}");
        assert!(!text.contains("wrong-secret") && !format!("{found:?}").contains("wrong-secret"));
        assert!(registry.requests().len() <= 4, "a 401 is not tried for ever");
    }
}

#[tokio::test]
async fn challenge_of_any_refusal_gets_credentials_once() {
    let (basic, bearer) = (
        || Registry::builder().basic("user", "secret"),
        || Registry::builder().bearer("user", "secret"),
    );
    for status in [403, 404] {
        for builder in [basic(), bearer()] {
            let registry = start(builder.challenging_with(status)).await;
            let files = pull(&client(&registry, GOOD).images, &registry).await.unwrap().0;
            assert_eq!(files.list(), ["a.yaml=a"], "{status}");
        }
        let registry = start(basic().challenging_with(status)).await;
        let (_, text) = fault(client(&registry, BAD).images.resolve(&source(&registry)).await);
        assert_eq!(registry.count(Kind::Head), 2, "{status}: {text}");
        let registry = start(basic().challenging_with(status)).await;
        fault(client(&registry, NONE).images.resolve(&source(&registry)).await);
        assert_eq!(registry.count(Kind::Head), 1, "{status}: there is nothing to send");
    }
}

#[tokio::test]
async fn account_that_was_not_used_is_not_blamed() {
    let registry = start(Registry::builder()).await;
    registry.script(Kind::Head, Fault::Status(403, None));
    let (found, text) = fault(client(&registry, GOOD).images.resolve(&source(&registry)).await);
    assert!(matches!(found, ServerFault::Forbidden { login: None }), "{text}");
    assert!(text.contains("403, anonymous users may not read it"), "{text}");
}

#[tokio::test]
async fn forbidden_error_differs_from_unauthorized() {
    let registry = start(Registry::builder().basic("user", "secret")).await;
    let client = client(&registry, GOOD);
    client.images.resolve(&source(&registry)).await.unwrap();
    registry.script(Kind::Head, Fault::Status(403, None));
    let (found, text) = fault(client.images.resolve(&source(&registry)).await);
    assert!(
        matches!(found, ServerFault::Forbidden { .. }) && text.contains("403, the account from"),
        "{text}"
    );
}

#[tokio::test]
async fn corrected_credentials_are_used_by_next_pull() {
    let registry = start(Registry::builder().bearer("user", "secret")).await;
    let client = client(&registry, BAD);
    assert!(client.images.resolve(&source(&registry)).await.is_err());
    fs::write(
        client.dir.path().join("auth.json"),
        GOOD.replace("HOST", registry.host()),
    )
    .unwrap();
    client.images.resolve(&source(&registry)).await.unwrap();
}

#[tokio::test]
async fn credentials_of_namespace_are_preferred() {
    let registry = start(Registry::builder().basic("user", "secret")).await;
    let auth = r#"{"auths": {"HOST": {"username": "user", "password": "wrong"},
        "HOST/ns": {"username": "user", "password": "secret"}}}"#;
    client(&registry, auth)
        .images
        .resolve(&source(&registry))
        .await
        .unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn failed_credential_helper_is_an_error() {
    let registry = start(Registry::builder().anonymous_bearer()).await;
    let auth = r#"{"credHelpers": {"HOST": "no-such-helper-here"}}"#;
    let error = client(&registry, auth)
        .images
        .resolve(&source(&registry))
        .await
        .unwrap_err();
    assert!(
        matches!(error, Error::Credentials(CredentialsError::Run { .. })),
        "{error}"
    );
    let error = client(&registry, "{ broken")
        .images
        .resolve(&source(&registry))
        .await
        .unwrap_err();
    assert!(
        matches!(error, Error::Credentials(CredentialsError::Format { .. })),
        "{error}"
    );
}

#[tokio::test]
async fn replaced_logins_are_used_by_next_pull() {
    let registry = start(Registry::builder().basic("user", "secret")).await;
    let logins = Logins::default();
    let images = Sources::new(SourceSettings {
        logins: logins.clone(),
        auth_files: Vec::new(),
        ..settings(&registry)
    })
    .unwrap();
    let set = |text: &str| {
        let text = text.replace("HOST", registry.host());
        logins.set([("the vault", text.as_str())]).unwrap();
    };
    set(BAD);
    let Err(Error::Server(error)) = images.resolve(&source(&registry)).await else {
        panic!("the password is wrong");
    };
    assert!(
        matches!(&error.fault, ServerFault::Unauthorized { login: Some(login) } if login == "the vault"),
        "{error:?}"
    );
    set(GOOD);
    images.resolve(&source(&registry)).await.unwrap();
}
