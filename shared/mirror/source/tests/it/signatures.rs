//! Signatures beside a registry, and those who hand them out badly.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use source::{Digest, Error, Lookaside, Source, SourceSettings, Sources};
use testkit::{FileAnswer, FileServer, Registry};

use crate::kit::{client_with, exceeded, failed, password, source, verdict};

const HEX: &str = "00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff";

/// Path of a signature on a server.
fn path(number: u64) -> String {
    format!("/sigstore/ns/cat@sha256={HEX}/signature-{number}")
}

/// Starts a server with so many signatures of this content.
async fn beside(count: u64, content: &str) -> (FileServer, Lookaside) {
    let server = FileServer::start().await;
    (1..=count).for_each(|number| server.put(&path(number), content.to_owned()));
    let lookaside = server.url("/sigstore/").parse().unwrap();
    (server, lookaside)
}

/// A client with credentials for every server on this machine, and small limits.
fn client(change: impl FnOnce(&mut SourceSettings)) -> Sources {
    client_with("127.0.0.1", |settings| {
        settings.auth_files = Vec::new();
        settings.logins = password("127.0.0.1", "hunter22");
        settings.limits.signatures = 3;
        settings.limits.signature_bytes = 10;
        change(settings);
    })
}

async fn look(images: &Sources, lookaside: &Lookaside) -> Result<Vec<Vec<u8>>, Error> {
    let source: Source = "127.0.0.1:1/ns/cat:v1".parse().unwrap();
    let digest: Digest = format!("sha256:{HEX}").parse().unwrap();
    images.simple_signatures(&source, &digest, lookaside).await
}

#[tokio::test]
async fn lookaside_is_read_without_credentials_to_first_missing_file_within_limits() {
    for (count, content, want) in [
        (0, "x", "read"),
        (1, "x", "read"),
        (3, "x", "read"),
        (4, "x", "limit signatures"),
        (1, "0123456789", "read"),
        (1, "0123456789a", "limit signatureBytes"),
    ] {
        let (server, lookaside) = beside(count, content).await;
        let found = look(&client(|_| {}), &lookaside).await;
        assert_eq!(verdict(&found), want, "{count} of {content}");
        let seen = server.requests();
        assert!(
            seen.iter().all(|request| request.authorization.is_none()),
            "{seen:?}"
        );
        if let Ok(found) = found {
            assert_eq!((found.len() as u64, seen.len() as u64), (count, count + 1));
        }
    }
}

#[tokio::test]
async fn lookaside_answer_other_than_404_is_an_error() {
    use FileAnswer::{Cut, Redirect, Status};
    let (server, lookaside) = beside(1, "0123456789").await;
    let images = client(|settings| settings.http.retry.attempts = Some(1));
    let metadata = "https://169.254.169.254/latest/meta-data/".to_owned();
    for (answer, want) in [
        (Status(401), "status"),
        (Status(403), "status"),
        (Status(410), "status"),
        (Status(204), "status"),
        (Status(400), "plain http refused"),
        (Cut(3), "broken"),
        (Redirect(metadata), "refused: link local"),
    ] {
        server.script(&path(1), answer);
        failed(look(&images, &lookaside).await, want);
    }
}

/// Each of many requests may take its time, but not all of them together.
#[tokio::test]
async fn endless_lookaside_files_end_at_timeout() {
    let (slow, lookaside) = beside(0, "").await;
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
    failed(look(&images, &lookaside).await, "took too long");
    let registry = Registry::start().await;
    let images = client_with(registry.host(), |settings| {
        settings.resolve_timeout = Duration::ZERO;
    });
    let digest: Digest = format!("sha256:{HEX}").parse().unwrap();
    failed(
        images.signatures(&source(&registry), &digest).await,
        "took too long",
    );
}

#[tokio::test]
async fn lookaside_folder_is_read_with_limits() {
    let folder = tempfile::TempDir::new().unwrap();
    let lookaside: Lookaside = format!("file://{}", folder.path().display())
        .parse()
        .unwrap();
    let images = client(|_| {});
    assert!(look(&images, &lookaside).await.unwrap().is_empty());
    let place = folder.path().join(format!("ns/cat@sha256={HEX}"));
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("signature-1"), "0123456789").unwrap();
    assert_eq!(look(&images, &lookaside).await.unwrap(), [b"0123456789"]);
    let second = place.join("signature-2");
    symlink("/dev/zero", &second).unwrap();
    let text = failed(look(&images, &lookaside).await, "io");
    assert!(
        text.contains("not a regular file"),
        "a device is no signature: {text}"
    );
    fs::remove_file(&second).unwrap();
    fs::write(&second, "0123456789a").unwrap();
    exceeded(look(&images, &lookaside).await, "signatureBytes", 10);
}
