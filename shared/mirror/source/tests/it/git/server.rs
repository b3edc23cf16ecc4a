//! Servers that refuse, redirect and fail, and their credentials.

use std::fs;

use testkit::{FileAnswer, FileServer, GitRepo, until};

use super::{GitHost, MAIN, PATH, failed};
use crate::kit::{self, password, read, tls_client};

const FILES: &[(&str, &str)] = &[("a/x.yaml", "x")];

const INFO: &str = "/owner/repo.git/info/refs";

const COMMANDS: &str = "/owner/repo.git/git-upload-pack";

#[tokio::test]
async fn busy_server_is_asked_again() {
    let host = GitHost::of(FILES).await;
    host.server.script(INFO, FileAnswer::Status(503));
    assert_eq!(host.files("").await.unwrap(), ["a/x.yaml=x"]);
    assert_eq!(host.server.statuses(), [503, 200, 200, 200, 200, 200, 200]);
}

#[tokio::test]
async fn answer_that_is_not_gits_is_named() {
    let host = GitHost::of(FILES).await;
    host.server
        .script(INFO, FileAnswer::Chunked("no git here".into()));
    let text = failed(host.files("").await, "not git");
    assert!(text.contains("check the URL"), "{text}");
    host.server.script(INFO, FileAnswer::Status(404));
    assert!(!host.images.exists(&host.source("")).await.unwrap());
    assert!(host.images.exists(&host.source("")).await.unwrap());
}

#[tokio::test]
async fn redirect_to_the_name_with_git_at_its_end_is_followed_for_commands_too() {
    let host = GitHost::of(FILES).await;
    let to = FileAnswer::Redirect(host.server.url(INFO));
    host.server.script("/owner/repo/info/refs", to);
    let source = format!("git:{}", host.server.url("/owner/repo"))
        .parse()
        .unwrap();
    host.images.resolve(&source).await.unwrap();
    assert_eq!(host.server.statuses(), [302, 200, 200, 200]);
}

/// The first request is this program's, the others are git's.
#[tokio::test]
async fn redirect_to_another_server_is_refused_and_gets_no_credentials() {
    let other = FileServer::start().await;
    let host =
        GitHost::with(|settings| settings.http.plain_http.push(other.host().to_owned())).await;
    let host = host.with_password("hunter22");
    host.repo.set(MAIN, &host.repo.commit(FILES));
    host.repo.serve(&other, PATH);
    host.server
        .script(INFO, FileAnswer::Redirect(other.url(INFO)));
    let text = failed(host.resolve("#main").await, "redirected");
    assert!(
        text.contains(&format!("redirects to {}", other.host())),
        "{text}"
    );
    let before = other.requests();
    assert!(before.iter().all(|request| request.authorization.is_none()));
    host.server
        .script(COMMANDS, FileAnswer::Redirect(other.url(COMMANDS)));
    failed(host.resolve("#main").await, "git");
    assert_eq!(
        other.requests().len(),
        before.len(),
        "git follows no redirect"
    );
    host.resolve("#main").await.unwrap();
    let mut asked = host.server.requests().into_iter();
    assert!(asked.all(|request| request.authorization.is_some()));
}

/// Other users of a machine can read the arguments of a process.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn git_ends_with_its_poll_and_shows_no_password() {
    let host = GitHost::of(FILES).await.with_password("hunter22");
    host.server.script(COMMANDS, FileAnswer::Stall);
    let (source, images) = (host.source(""), host.images.clone());
    let polling = tokio::spawn(async move { images.resolve(&source).await });
    let processes = || processes_of_git(host.server.host());
    until("git itself and its part for HTTP run", async || {
        processes().len() >= 2
    })
    .await;
    for process in processes() {
        assert!(!process.contains("uthorization") && !process.contains("hunter22"));
    }
    polling.abort();
    until("git has ended", async || processes().is_empty()).await;
}

/// Returns the command lines of processes of git that talk to a server.
#[cfg(target_os = "linux")]
fn processes_of_git(server: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines
        .filter(|line| line.contains("git") && line.contains(server))
        .collect()
}

#[tokio::test]
async fn repository_behind_tls_and_password_is_read() {
    let (server, repo) = (FileServer::tls().await, GitRepo::default());
    repo.serve(&server, PATH);
    repo.set("HEAD", &repo.commit(FILES));
    server.require("robot", "hunter22");
    let source = format!("git:{}", server.url(PATH)).parse().unwrap();
    for (sent, want) in [("hunter22", "read"), ("wrong-one", "unauthorized")] {
        let images = tls_client(server.ca_pem(), |settings| {
            settings.logins = password(server.host(), sent);
        });
        kit::failed(images.resolve(&source).await, want);
    }
}

/// Returns the packet by which a server reports an error.
fn failure(text: &str) -> String {
    format!("{:04x}ERR {text}", text.len() + 8)
}

/// A server can put the password that it was sent into a message.
#[tokio::test]
async fn error_of_repository_repeats_no_password() {
    let host = GitHost::of(FILES).await.with_password("hunter22");
    let digest = host.resolve("").await.unwrap();
    let answer = failure("hunter22 is wrong");
    host.server
        .script(COMMANDS, FileAnswer::Chunked(answer.into()));
    let found = read(&host.images, &host.source(""), &digest).await;
    kit::failed(found, "withheld");
}

/// Git reads the protocol. Its failure is told in its words, and no state is taken from what it
/// read.
#[tokio::test]
async fn answer_that_breaks_the_protocol_is_refused() {
    let host = GitHost::of(FILES).await;
    for (answer, want) in [
        (String::new(), ""),
        ("0001".to_owned(), ""),
        (failure("not\x1b today"), "remote error: not? today"),
    ] {
        host.server
            .script(COMMANDS, FileAnswer::Chunked(answer.into()));
        let text = failed(host.files("").await, "git");
        assert!(text.contains(want), "{text}");
    }
}
