//! Signatures beside a registry, and those who hand them out badly.

use std::time::Duration;

use catalog_mirror_source::{
    Digest, Error, FetchError, Logins, Lookaside, RedirectRefusal, ServerFault, Source, SourceSettings, Sources,
};
use testkit::{FileAnswer, FileServer, Registry};

use crate::kit::{client_with, exceeded, fault, plain, source};

const HEX: &str = "00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff";

/// Path of a signature on a server.
fn path(number: u64) -> String {
    format!("/sigstore/ns/cat@sha256={HEX}/signature-{number}")
}

fn lookaside(server: &FileServer) -> Lookaside {
    server.url("/sigstore/").parse().unwrap()
}

/// Starts a server with so many signatures of this content.
async fn beside(count: u64, content: &str) -> FileServer {
    let server = FileServer::start().await;
    (1..=count).for_each(|number| server.put(&path(number), content.to_owned()));
    server
}

/// A client with credentials for every server on this machine, and small limits.
fn client(change: impl FnOnce(&mut SourceSettings)) -> Sources {
    let logins = Logins::default();
    let auth = r#"{"auths": {"127.0.0.1": {"auth": "cm9ib3Q6aHVudGVyMg=="}}}"#;
    logins.set([("the test", auth)]).unwrap();
    client_with("127.0.0.1", |settings| {
        settings.auth_files = Vec::new();
        settings.logins = logins;
        settings.limits.signatures = 3;
        settings.limits.signature_bytes = 10;
        change(settings);
    })
}

async fn look(images: &Sources, lookaside: &Lookaside) -> Result<Vec<String>, Error> {
    let source: Source = "127.0.0.1:1/ns/cat:v1".parse().unwrap();
    let digest: Digest = format!("sha256:{HEX}").parse().unwrap();
    let found = images.simple_signatures(&source, &digest, lookaside).await?;
    Ok(found
        .iter()
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .collect())
}

fn refusal(error: Error) -> Option<RedirectRefusal> {
    match error {
        Error::Server(error) => match error.fault {
            ServerFault::Fetch(FetchError::Redirect { reason, .. }) => Some(reason),
            _ => None,
        },
        _ => None,
    }
}

#[tokio::test]
async fn lookaside_is_read_without_credentials_to_first_missing_file() {
    for count in [0, 1, 3] {
        let server = beside(count, "x").await;
        let found = look(&client(|_| {}), &lookaside(&server)).await.unwrap();
        assert_eq!(found.len() as u64, count);
        let seen = server.requests();
        assert_eq!(seen.len() as u64, count + 1);
        assert!(seen.iter().all(|request| request.authorization.is_none()), "{seen:?}");
    }
}

#[tokio::test]
async fn signatures_at_exact_limits_are_read() {
    for (count, content, exceeded) in [
        (4, "x", Some("signatures")),
        (1, "0123456789", None),
        (1, "0123456789a", Some("signatureBytes")),
    ] {
        let server = beside(count, content).await;
        match (look(&client(|_| {}), &lookaside(&server)).await, exceeded) {
            (Ok(_), None) => {}
            (Err(Error::Limit(limit)), Some(name)) => assert_eq!(limit.name, name),
            (other, _) => panic!("{count} of {content}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn lookaside_status_other_than_404_is_an_error() {
    use FileAnswer::{Cut, Status};
    let server = beside(1, "0123456789").await;
    let images = client(|settings| settings.http.retry.attempts = Some(1));
    for answer in [Status(401), Status(403), Status(410), Status(204), Status(400), Cut(3)] {
        server.script(&path(1), answer.clone());
        assert!(look(&images, &lookaside(&server)).await.is_err(), "{answer:?}");
    }
}

#[tokio::test]
async fn lookaside_redirect_to_near_address_is_refused() {
    for (location, why) in [
        ("https://169.254.169.254/latest/meta-data/", RedirectRefusal::LinkLocal),
        ("https://robot:hunter2@example.com/x", RedirectRefusal::Userinfo),
        ("/again", RedirectRefusal::TooMany),
    ] {
        let server = FileServer::start().await;
        server.script(&path(1), FileAnswer::Redirect(location.to_owned()));
        (0..9).for_each(|_| server.script("/again", FileAnswer::Redirect("/again".to_owned())));
        let error = look(&client(|_| {}), &lookaside(&server)).await.unwrap_err();
        assert_eq!(refusal(error), Some(why), "{location}");
    }
    let server = beside(1, "x").await;
    let images = client(|settings| settings.http.plain_http = plain(&[]));
    let (found, text) = fault(look(&images, &lookaside(&server)).await);
    assert!(matches!(found, ServerFault::PlainHttp), "{text}");
    assert!(
        text.contains(&format!("list {} under plainHttp", server.host())),
        "{text}"
    );
    assert!(server.requests().is_empty());
}

/// Each of many requests may take its time, but not all of them together.
#[tokio::test]
async fn endless_lookaside_files_end_at_timeout() {
    let slow = FileServer::start().await;
    for number in 1..20 {
        slow.handle(&path(number), |_| {
            std::thread::sleep(Duration::from_millis(60));
            b"x".to_vec()
        });
    }
    let images = client(|settings| {
        settings.resolve_timeout = Duration::from_millis(200);
        settings.limits.signatures = 1000;
    });
    let error = look(&images, &lookaside(&slow)).await.unwrap_err();
    assert!(matches!(error, Error::Timeout(_)), "{error}");
    let registry = Registry::start().await;
    let images = client_with(registry.host(), |settings| settings.resolve_timeout = Duration::ZERO);
    let digest: Digest = format!("sha256:{HEX}").parse().unwrap();
    let error = images.signatures(&source(&registry), &digest).await.unwrap_err();
    assert!(matches!(error, Error::Timeout(_)), "{error}");
}

#[tokio::test]
async fn lookaside_folder_is_read_with_limits() {
    let folder = tempfile::TempDir::new().unwrap();
    let lookaside: Lookaside = format!("file://{}", folder.path().display()).parse().unwrap();
    assert!(look(&client(|_| {}), &lookaside).await.unwrap().is_empty());
    let place = folder.path().join(format!("ns/cat@sha256={HEX}"));
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("signature-1"), "0123456789").unwrap();
    assert_eq!(look(&client(|_| {}), &lookaside).await.unwrap(), ["0123456789"]);
    std::os::unix::fs::symlink("/dev/zero", place.join("signature-2")).unwrap();
    let error = look(&client(|_| {}), &lookaside).await.unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "a device is no signature: {error}");
    std::fs::remove_file(place.join("signature-2")).unwrap();
    std::fs::write(place.join("signature-2"), "0123456789a").unwrap();
    exceeded(look(&client(|_| {}), &lookaside).await, "signatureBytes", 10);
}
