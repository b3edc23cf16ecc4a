//! Servers that refuse, redirect and fail, and their credentials.

use std::fs;

use testkit::{FileAnswer, FileServer, Layer};

use super::{PATH, host, host_but, two_folders};
use crate::kit::{failed, password};

#[tokio::test]
async fn broken_and_busy_server_is_asked_again() {
    let host = host(&two_folders()).await;
    host.server.script(PATH, FileAnswer::Status(503));
    host.server.script(PATH, FileAnswer::Cut(20));
    let (sink, pull) = host.pull("").await.unwrap();
    assert_eq!((sink.files.len(), pull.traffic.requests), (2, 3));
}

#[tokio::test]
async fn answer_that_is_no_archive_is_named_with_advice() {
    use FileAnswer::Status;
    let host = host(&two_folders()).await;
    let to = |url: &str| FileAnswer::Redirect(url.to_owned());
    let (metadata, near) = ("https://169.254.169.254/latest", "http://10.0.0.1:1/c.tar");
    for (answer, want, says) in [
        (
            Status(404),
            "not found",
            "404, there is no such file; check the URL",
        ),
        (
            Status(403),
            "forbidden",
            "403, anonymous users may not read it; ask",
        ),
        (
            Status(401),
            "unauthorized",
            "401, it wants credentials and none are",
        ),
        (
            Status(401),
            "unauthorized",
            "; add a user and a password for ",
        ),
        (Status(418), "status", "unexpected answer 418"),
        (Status(206), "status", "unexpected answer 206"),
        (Status(304), "status", "unexpected answer 304"),
        (
            FileAnswer::Page("<html>".to_owned()),
            "web page",
            "web page",
        ),
        (
            to(metadata),
            "refused: link local",
            "leads to 169.254.169.254, which",
        ),
        (
            to(near),
            "refused: plain http",
            "not listed under plainHttp",
        ),
        (
            to("file:///etc/passwd"),
            "refused: scheme",
            "it is not http",
        ),
    ] {
        host.server.script(PATH, answer);
        let text = failed(host.resolve("").await, want);
        assert!(text.contains(says) && text.contains(PATH), "{text}");
    }
    host.server.script(PATH, Status(404));
    assert!(!host.images.exists(&host.source("")).await.unwrap());
    assert!(host.images.exists(&host.source("")).await.unwrap());
}

#[tokio::test]
async fn plain_http_needs_a_listed_host() {
    let unlisted = host_but(&two_folders(), |settings| {
        settings.http.plain_http = Vec::new();
    })
    .await;
    let text = failed(unlisted.resolve("").await, "plain http");
    let advice = format!(
        "list {} under plainHttp (--plain-http)",
        unlisted.server.host()
    );
    assert!(text.contains(&advice), "{text}");
    assert!(
        unlisted.server.requests().is_empty(),
        "a password could have been sent"
    );
    // The list alone does not help, because the URL has the scheme.
    let host = host(&two_folders()).await;
    let secure = host
        .server
        .url(PATH)
        .replace("http:", "https:")
        .parse()
        .unwrap();
    let text = failed(host.images.resolve(&secure).await, "not tls");
    assert!(text.contains("write http:// in its URL"), "{text}");
}

#[tokio::test]
async fn password_is_sent_and_not_repeated() {
    // A server can put the password that it was sent into the paths of its archive.
    let twice = Layer::new().file("hunter22", "").file("hunter22", "");
    for (archive, sent, want) in [
        (two_folders(), "hunter22", "read"),
        (two_folders(), "wrong-one", "unauthorized"),
        (twice, "hunter22", "withheld"),
    ] {
        let text = failed(
            host(&archive).await.with_password(sent).pull("").await,
            want,
        );
        assert!(!text.contains(sent), "{text}");
        assert_eq!(
            text.contains("from the vault were refused"),
            sent == "wrong-one"
        );
    }
}

#[tokio::test]
async fn fields_of_header_file_replace_credentials_and_go_to_their_host_alone() {
    let (fields, other) = (
        tempfile::NamedTempFile::new().unwrap(),
        FileServer::start().await,
    );
    fs::write(&fields, "Authorization: Bearer hunter22\n").unwrap();
    let host = host_but(&two_folders(), |settings| {
        settings.http.plain_http.push(other.host().to_owned());
    })
    .await;
    let images = host.images.clone().with_settings(|settings| {
        settings.logins = password(host.server.host(), "replaced");
        settings
            .header_files
            .insert(host.server.host(), fields.path().to_owned());
    });
    let resolve = async || images.resolve(&host.source("")).await;
    resolve().await.unwrap();
    other.put("/new", two_folders().file("c", "c").archive());
    host.server
        .script(PATH, FileAnswer::Redirect(other.url("/new")));
    resolve().await.unwrap();
    let sent = host
        .server
        .requests()
        .into_iter()
        .map(|request| request.authorization);
    assert!(
        sent.into_iter()
            .all(|sent| sent.as_deref() == Some("Bearer hunter22"))
    );
    assert_eq!(other.requests()[0].authorization, None);
    // A server can repeat the token that it was sent.
    let to = "http://hunter22.example/".to_owned();
    host.server.script(PATH, FileAnswer::Redirect(to));
    let text = failed(resolve().await, "refused: plain http");
    assert!(!text.contains("hunter22"), "{text}");
    fs::write(&fields, "hunter22").unwrap();
    let text = failed(resolve().await, "header file");
    assert!(!text.contains("hunter22"), "{text}");
}
