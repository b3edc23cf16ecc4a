//! Servers that refuse, redirect and fail, and their credentials.

use std::fs;

use catalog_mirror_source::{Error, PlainHttp, Proxy, SourceSettings, Sources, WebFault};
use tempfile::TempDir;
use testkit::{FileAnswer, FileServer, GitRepo, packet};

use super::{GitHost, MAIN, PATH};
use crate::kit::{auth_file, chain, plain};

const FILES: &[(&str, &str)] = &[("a/x.yaml", "x")];

const INFO: &str = "/owner/repo.git/info/refs";

const COMMANDS: &str = "/owner/repo.git/git-upload-pack";

fn info(lines: &[&str]) -> Vec<u8> {
    let lines = lines.iter().flat_map(|line| packet(line.as_bytes()));
    lines.chain(*b"0000").collect()
}

#[tokio::test]
async fn broken_and_busy_server_is_asked_again() {
    let host = GitHost::start().await;
    host.commit(FILES);
    host.server.script(INFO, FileAnswer::Status(503));
    host.server.script(COMMANDS, FileAnswer::Cut(10));
    assert_eq!(host.files("").await.unwrap(), ["a/x.yaml=x"]);
    assert_eq!(host.server.statuses(), [503, 200, 200, 200, 200, 200]);
    let source = host.source("");
    let digest = host.images.resolve(&source).await.unwrap();
    host.server.script(COMMANDS, FileAnswer::Cut(300));
    let none = catalog_mirror_source::SkippableLayers::default();
    let (sink, pull) = host
        .images
        .read(&source, &digest, &none, crate::kit::Collect::default())
        .await
        .unwrap();
    assert_eq!(
        (sink.files.len(), pull.requests),
        (1, 3),
        "a pack is fetched again from its start"
    );
}

#[tokio::test]
async fn answer_that_is_not_gits_is_named() {
    let host = GitHost::start().await;
    host.commit(FILES);
    let old = ["# service=git-upload-pack\n", "0123 refs/heads/main\0ofs-delta\n"];
    let sha256 = ["version 2\n", "object-format=sha256\n"];
    for (answer, want) in [
        (FileAnswer::Chunked(info(&old).into()), "version 2 of git's protocol"),
        (FileAnswer::Chunked(info(&sha256).into()), "sha256"),
        (FileAnswer::Chunked(info(&["hello\n"]).into()), "check the URL"),
        (FileAnswer::Chunked("001e# service".into()), "middle of a packet"),
        (FileAnswer::Chunked("no git here".into()), "check the URL"),
        (
            FileAnswer::Chunked(info(&["ERR no such repository\n"]).into()),
            "no such repository",
        ),
    ] {
        host.server.script(INFO, answer);
        let (_, text) = host.fault(host.files("").await);
        assert!(text.contains(want), "{text}");
    }
    for (answer, want) in [
        (FileAnswer::Status(404), "404, it is not there"),
        (FileAnswer::Status(403), "403, anonymous users"),
        (FileAnswer::Status(401), "401, it wants credentials"),
        (FileAnswer::Page("<html>".to_owned()), "web page"),
        (
            FileAnswer::Redirect("http://169.254.169.254/".to_owned()),
            "169.254.169.254, which is refused",
        ),
    ] {
        host.server.script(INFO, answer);
        let error = host.files("").await.unwrap_err();
        assert!(matches!(error, Error::Web(_)), "{}", chain(&error));
        assert!(chain(&error).contains(want), "{}", chain(&error));
    }
    host.server.script(INFO, FileAnswer::Status(404));
    assert!(!host.images.exists(&host.source("")).await.unwrap());
    assert!(host.images.exists(&host.source("")).await.unwrap());
}

#[tokio::test]
async fn redirect_to_the_name_with_git_at_its_end_is_followed_for_commands_too() {
    let host = GitHost::start().await;
    host.commit(FILES);
    let short = "/owner/repo";
    host.server.script(
        &format!("{short}/info/refs"),
        FileAnswer::Redirect(host.server.url(INFO)),
    );
    let source = format!("git:{}", host.server.url(short)).parse().unwrap();
    host.images.resolve(&source).await.unwrap();
    assert_eq!(host.server.statuses(), [302, 200, 200]);
}

#[tokio::test]
async fn redirect_to_another_server_is_followed_without_the_credentials() {
    let (host, other) = (GitHost::start().await, FileServer::start().await);
    let dir = TempDir::new().unwrap();
    let mut settings = host.images.settings().clone();
    settings.http.plain_http = plain(&[host.server.host(), other.host()]);
    settings.auth_files = vec![auth_file(&dir, &host.server, "hunter22")];
    host.server.require("robot", "hunter22");
    host.repo.set(MAIN, &host.repo.commit(FILES));
    host.repo.serve(&other, PATH);
    host.server.script(INFO, FileAnswer::Redirect(other.url(INFO)));
    host.server.script(COMMANDS, FileAnswer::Redirect(other.url(COMMANDS)));
    Sources::new(settings)
        .unwrap()
        .resolve(&host.source("#main"))
        .await
        .unwrap();
    assert!(
        host.server
            .requests()
            .iter()
            .all(|request| request.authorization.is_some())
    );
    assert!(other.requests().iter().all(|request| request.authorization.is_none()));
    assert_eq!(
        (host.server.statuses(), other.statuses()),
        (vec![302, 302], vec![200, 200])
    );
}

#[tokio::test]
async fn plain_http_needs_a_listed_host() {
    let host = GitHost::with(|settings| settings.http.plain_http = PlainHttp::Hosts(Vec::new())).await;
    let error = host.files("").await.unwrap_err();
    assert!(matches!(&error, Error::Web(failure) if matches!(failure.fault, WebFault::PlainHttp { .. })));
    assert!(host.server.requests().is_empty(), "a password could have been sent");
}

#[tokio::test]
async fn repository_behind_tls_and_password_is_read() {
    let (server, repo) = (FileServer::tls().await, GitRepo::default());
    repo.serve(&server, PATH);
    repo.set("HEAD", &repo.commit(FILES));
    server.require("robot", "hunter22");
    let dir = TempDir::new().unwrap();
    let ca = dir.path().join("ca.pem");
    fs::write(&ca, server.ca_pem()).unwrap();
    let with = |password| {
        let mut settings = SourceSettings::default();
        settings.http.ca_files = vec![ca.clone()];
        settings.http.proxy = Proxy::Off;
        settings.auth_files = vec![auth_file(&dir, &server, password)];
        Sources::new(settings).unwrap()
    };
    let source = format!("git:{}", server.url(PATH)).parse().unwrap();
    with("hunter22").resolve(&source).await.unwrap();
    let error = with("wrong-one").resolve(&source).await.unwrap_err();
    assert!(chain(&error).contains("auth.json were refused"), "{}", chain(&error));
}

/// A server can put the password that it was sent into a message.
#[tokio::test]
async fn error_of_repository_repeats_no_password() {
    let host = GitHost::start().await;
    host.commit(FILES);
    host.server.require("robot", "hunter22");
    let dir = TempDir::new().unwrap();
    let mut settings = host.images.settings().clone();
    settings.auth_files = vec![auth_file(&dir, &host.server, "hunter22")];
    let images = Sources::new(settings).unwrap();
    host.repo.send_answer(packet(b"ERR hunter22 is wrong"));
    let source = host.source("");
    let digest = images.resolve(&source).await.unwrap();
    let none = catalog_mirror_source::SkippableLayers::default();
    let read = images
        .read(&source, &digest, &none, crate::kit::Collect::default())
        .await;
    assert!(matches!(read.unwrap_err(), Error::Withheld));
    host.server
        .script(INFO, FileAnswer::Chunked(info(&["ERR hunter22"]).into()));
    assert!(matches!(images.resolve(&source).await.unwrap_err(), Error::Withheld));
}

#[tokio::test]
async fn answer_to_fetch_that_breaks_the_protocol_is_refused() {
    let host = GitHost::start().await;
    host.commit(FILES);
    let start = packet(b"packfile\n");
    let with = |rest: &[u8]| [start.as_slice(), rest].concat();
    let rows = [
        (Vec::new(), "ended early"),
        (start.clone(), "ended early"),
        (with(&packet(b"\x01PACK")), "ended early"),
        (with(b"00"), "ended early"),
        (b"0000".to_vec(), "no pack"),
        (with(b"0001"), "no pack"),
        (with(b"0004"), "unknown band"),
        (with(&packet(b"\x04x")), "unknown band"),
        (with(b"00000008more"), "more than that"),
        (with(b"0003"), "impossible length"),
        (with(b"zzzz"), "no packet lines"),
        (
            with(&packet(b"\x03out of\x1b memory\n")),
            "refuses: out of\\u{1b} memory",
        ),
        (packet(b"ERR not today"), "refuses: not today"),
        (packet(b"\xff\xff"), "not UTF-8"),
        (with(b"0000"), "too small"),
    ];
    for (answer, want) in rows {
        host.repo.send_answer(answer);
        let (fault, text) = host.fault(host.files("").await);
        assert!(text.contains(want), "{want}: {text}");
        assert!(!fault.is_of_content(), "{text}");
    }
}
