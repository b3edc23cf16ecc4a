//! Servers that refuse, redirect and fail, and their credentials.

use std::fs;

use catalog_mirror_source::{Error, TreeFault};
use tempfile::TempDir;
use testkit::{FileAnswer, FileServer, GitRepo};

use super::{GitHost, MAIN, PATH};
use crate::kit::{Collect, auth_file, chain, client_with, plain, read, tls_client};

const FILES: &[(&str, &str)] = &[("a/x.yaml", "x")];

const INFO: &str = "/owner/repo.git/info/refs";

const COMMANDS: &str = "/owner/repo.git/git-upload-pack";

#[tokio::test]
async fn busy_server_is_asked_again() {
    let host = GitHost::start().await;
    host.commit(FILES);
    host.server.script(INFO, FileAnswer::Status(503));
    assert_eq!(host.files("").await.unwrap(), ["a/x.yaml=x"]);
    assert_eq!(host.server.statuses(), [503, 200, 200, 200, 200, 200, 200]);
}

#[tokio::test]
async fn answer_that_is_not_gits_is_named() {
    let host = GitHost::start().await;
    host.commit(FILES);
    host.server.script(INFO, FileAnswer::Chunked("no git here".into()));
    let (fault, text) = host.fault(host.files("").await);
    assert!(
        matches!(fault, TreeFault::NotGit) && text.contains("check the URL"),
        "{text}"
    );
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
    assert_eq!(host.server.statuses(), [302, 200, 200, 200]);
}

/// The first request is this program's, the others are git's.
#[tokio::test]
async fn redirect_to_another_server_is_refused_and_gets_no_credentials() {
    let (host, other) = (GitHost::start().await, FileServer::start().await);
    let dir = TempDir::new().unwrap();
    let images = client_with(host.server.host(), |settings| {
        settings.http.plain_http = plain(&[host.server.host(), other.host()]);
        settings.auth_files = vec![auth_file(&dir, &host.server, "hunter22")];
    });
    host.server.require("robot", "hunter22");
    host.repo.set(MAIN, &host.repo.commit(FILES));
    host.repo.serve(&other, PATH);
    let source = host.source("#main");
    host.server.script(INFO, FileAnswer::Redirect(other.url(INFO)));
    let error = images.resolve(&source).await.unwrap_err();
    assert!(
        matches!(&error, Error::Tree { source: TreeFault::Redirected(to), .. } if to == other.host()),
        "{error}"
    );
    let before = other.requests();
    assert!(before.iter().all(|request| request.authorization.is_none()));
    host.server.script(COMMANDS, FileAnswer::Redirect(other.url(COMMANDS)));
    let error = images.resolve(&source).await.unwrap_err();
    let by_git = matches!(&error, Error::Tree { source, .. } if matches!(source, TreeFault::Git(_)));
    assert!(by_git, "{error}");
    assert_eq!(other.requests().len(), before.len(), "git follows no redirect");
    images.resolve(&source).await.unwrap();
    assert!(
        host.server
            .requests()
            .iter()
            .all(|request| request.authorization.is_some())
    );
}

/// Other users of a machine can read the arguments of a process.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn git_ends_with_its_poll_and_shows_no_password() {
    let host = GitHost::start().await;
    host.commit(FILES);
    let dir = TempDir::new().unwrap();
    let images = host.with_password(&dir);
    host.server.script(COMMANDS, FileAnswer::Stall);
    let source = host.source("");
    let polling = tokio::spawn(async move { images.resolve(&source).await });
    // git itself and its part for HTTP.
    let processes = wait_for_git(host.server.host(), 2).await;
    assert!(
        processes
            .iter()
            .all(|process| !process.contains("uthorization") && !process.contains("hunter22"))
    );
    polling.abort();
    wait_for_git(host.server.host(), 0).await;
}

/// Waits for this number of processes of git that talk to a server. Returns their command lines.
#[cfg(target_os = "linux")]
async fn wait_for_git(server: &str, count: usize) -> Vec<String> {
    for _ in 0..500 {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
        let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
        let found: Vec<_> = lines
            .filter(|line| line.contains("git") && line.contains(server))
            .collect();
        if count.min(1) == found.len().min(1) && found.len() >= count {
            return found;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("there are not {count} processes of git");
}

#[tokio::test]
async fn repository_behind_tls_and_password_is_read() {
    let (server, repo) = (FileServer::tls().await, GitRepo::default());
    repo.serve(&server, PATH);
    repo.set("HEAD", &repo.commit(FILES));
    server.require("robot", "hunter22");
    let dir = TempDir::new().unwrap();
    let source = format!("git:{}", server.url(PATH)).parse().unwrap();
    tls_client(&dir, &server, "hunter22").resolve(&source).await.unwrap();
    let bad = tls_client(&dir, &server, "wrong-one");
    let error = bad.resolve(&source).await.unwrap_err();
    assert!(chain(&error).contains("auth.json were refused"), "{}", chain(&error));
}

/// Returns the packet by which a server reports an error.
fn failure(text: &str) -> String {
    format!("{:04x}ERR {text}", text.len() + 8)
}

/// A server can put the password that it was sent into a message.
#[tokio::test]
async fn error_of_repository_repeats_no_password() {
    let host = GitHost::start().await;
    host.commit(FILES);
    let dir = TempDir::new().unwrap();
    let images = host.with_password(&dir);
    let source = host.source("");
    let digest = images.resolve(&source).await.unwrap();
    let answer = failure("hunter22 is wrong");
    host.server.script(COMMANDS, FileAnswer::Chunked(answer.into()));
    let found = read(&images, &source, &digest, Collect::default()).await;
    assert!(matches!(found.unwrap_err(), Error::Withheld));
}

/// Git reads the protocol. Its failure is told in its words, and no state is taken from what it read.
#[tokio::test]
async fn answer_that_breaks_the_protocol_is_refused() {
    let host = GitHost::start().await;
    host.commit(FILES);
    for (answer, want) in [
        (String::new(), ""),
        ("0001".to_owned(), ""),
        (failure("not\x1b today"), "remote error: not? today"),
    ] {
        host.server.script(COMMANDS, FileAnswer::Chunked(answer.into()));
        let (fault, text) = host.fault(host.files("").await);
        assert!(matches!(fault, TreeFault::Git(_)) && !fault.is_of_content(), "{text}");
        assert!(text.contains(want), "{text}");
    }
}
