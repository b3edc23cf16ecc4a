//! Servers that refuse, redirect and fail, and their credentials.

use std::fs;

use catalog_mirror_source::{Error, FetchError, ServerFault};
use tempfile::TempDir;
use testkit::{FileAnswer, FileServer, Layer};

use super::{PATH, pull, source, two_folders};
use crate::kit::{auth_file, chain, client, client_with, plain, tls_client};

#[tokio::test]
async fn broken_and_busy_server_is_asked_again() {
    let server = FileServer::start().await;
    server.put(PATH, two_folders().archive());
    server.script(PATH, FileAnswer::Status(503));
    server.script(PATH, FileAnswer::Cut(20));
    let (sink, pull) = pull(&client(server.host()), &source(&server, "")).await.unwrap();
    assert_eq!((sink.files.len(), pull.traffic.requests), (2, 3));
}

#[tokio::test]
async fn answer_that_is_no_archive_is_named_with_advice() {
    use FileAnswer::Status;
    let server = FileServer::start().await;
    server.put(PATH, two_folders().archive());
    let images = client(server.host());
    let to = |url: &str| FileAnswer::Redirect(url.to_owned());
    let metadata = to("http://169.254.169.254/latest");
    for (answer, want) in [
        (Status(404), "404, there is no such file; check the URL"),
        (Status(403), "403, anonymous users may not read it; ask"),
        (Status(401), "401, it wants credentials and none are configured; add"),
        (Status(418), "unexpected answer 418"),
        (Status(206), "unexpected answer 206"),
        (Status(304), "unexpected answer 304"),
        (FileAnswer::Page("<html>".to_owned()), "web page"),
        (metadata, "leads to 169.254.169.254, which is refused"),
        (to("http://10.0.0.1:1/c.tar"), "not listed under plainHttp"),
        (to("file:///etc/passwd"), "it is not http"),
    ] {
        server.script(PATH, answer.clone());
        let error = images.resolve(&source(&server, "")).await.unwrap_err();
        assert!(matches!(error, Error::Server(_)), "{answer:?}: {error}");
        let text = chain(&error);
        assert!(text.contains(want) && text.contains(PATH), "{answer:?}: {text}");
    }
    server.script(PATH, FileAnswer::Status(404));
    assert!(!images.exists(&source(&server, "")).await.unwrap());
    assert!(images.exists(&source(&server, "")).await.unwrap());
}

#[tokio::test]
async fn plain_http_needs_a_listed_host() {
    let server = FileServer::start().await;
    server.put(PATH, two_folders().archive());
    let images = client_with(server.host(), |settings| {
        settings.http.plain_http = Vec::new();
    });
    let error = images.resolve(&source(&server, "")).await.unwrap_err();
    assert!(matches!(&error, Error::Server(failure) if matches!(failure.fault, ServerFault::PlainHttp)));
    assert!(error.to_string().contains("--plain-http"), "{error}");
    assert!(server.requests().is_empty(), "a password could have been sent");
    // The list alone does not help, because the URL has the scheme.
    let images = client_with(server.host(), |_| {});
    let secure = server.url(PATH).replace("http:", "https:");
    let error = images.resolve(&secure.parse().unwrap()).await.unwrap_err();
    assert!(error.to_string().contains("write http:// in its URL"), "{error}");
}

#[tokio::test]
async fn redirect_is_followed_without_the_credentials() {
    let (server, other) = (FileServer::start().await, FileServer::start().await);
    server.require("robot", "hunter22");
    server.script(PATH, FileAnswer::Redirect(other.url("/blob")));
    other.put("/blob", two_folders().archive());
    let dir = TempDir::new().unwrap();
    let images = client_with(server.host(), |settings| {
        settings.http.plain_http = plain(&[server.host(), other.host()]);
        settings.auth_files = vec![auth_file(&dir, &server, "hunter22")];
    });
    images.resolve(&source(&server, "")).await.unwrap();
    assert!(server.requests()[0].authorization.is_some());
    assert_eq!(other.requests()[0].authorization, None);
}

#[tokio::test]
async fn archive_behind_tls_and_password_is_read() {
    let server = FileServer::tls().await;
    server.put(PATH, two_folders().archive());
    server.require("robot", "hunter22");
    let dir = TempDir::new().unwrap();
    let good = tls_client(&dir, &server, "hunter22");
    assert_eq!(pull(&good, &source(&server, "")).await.unwrap().0.files.len(), 2);
    let bad = tls_client(&dir, &server, "wrong-one");
    let error = bad.resolve(&source(&server, "")).await.unwrap_err();
    let text = chain(&error);
    assert!(
        text.contains("auth.json were refused") && !text.contains("wrong-one"),
        "{text}"
    );
    let untrusting = client(server.host());
    let error = untrusting.resolve(&source(&server, "")).await.unwrap_err();
    let is_tls =
        matches!(&error, Error::Server(failure) if matches!(failure.fault, ServerFault::Fetch(FetchError::Tls(_))));
    assert!(is_tls, "{}", chain(&error));
}

#[tokio::test]
async fn fields_of_header_file_go_to_their_host_alone() {
    let (server, other) = (FileServer::start().await, FileServer::start().await);
    server.put(PATH, two_folders().archive());
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("fields");
    fs::write(&path, "Authorization: Bearer hunter22\n").unwrap();
    let images = client_with(server.host(), |settings| {
        settings.http.plain_http = plain(&[server.host(), other.host()]);
        settings.auth_files = vec![auth_file(&dir, &server, "replaced")];
        settings.header_files.insert(server.host(), path.clone());
    });
    pull(&images, &source(&server, "")).await.unwrap();
    assert_eq!(server.requests()[0].authorization.as_deref(), Some("Bearer hunter22"));
    server.script(PATH, FileAnswer::Redirect(other.url("/none")));
    images.resolve(&source(&server, "")).await.unwrap_err();
    assert_eq!(other.requests()[0].authorization, None);
    // A server can repeat the token that it was sent.
    server.script(PATH, FileAnswer::Redirect("http://hunter22.example/".to_owned()));
    let error = images.resolve(&source(&server, "")).await.unwrap_err();
    assert!(!chain(&error).contains("hunter22"), "{}", chain(&error));
    fs::write(&path, "hunter22").unwrap();
    let error = images.resolve(&source(&server, "")).await.unwrap_err();
    assert!(matches!(error, Error::HeaderFile(_)), "{}", chain(&error));
    assert!(!chain(&error).contains("hunter22"), "{}", chain(&error));
}

/// A server can put the password that it was sent into the paths of its archive.
#[tokio::test]
async fn error_of_archive_repeats_no_password() {
    let server = FileServer::start().await;
    let twice = Layer::new().file("hunter22", "").file("hunter22", "");
    server.put(PATH, twice.archive());
    server.require("robot", "hunter22");
    let dir = TempDir::new().unwrap();
    let images = client_with(server.host(), |settings| {
        settings.auth_files = vec![auth_file(&dir, &server, "hunter22")];
    });
    let error = pull(&images, &source(&server, "")).await.unwrap_err();
    assert!(matches!(error, Error::Withheld), "{}", chain(&error));
    server.script(PATH, FileAnswer::Redirect("http://hunter22.example/".to_owned()));
    let error = images.resolve(&source(&server, "")).await.unwrap_err();
    assert!(!chain(&error).contains("hunter22"), "{}", chain(&error));
}
