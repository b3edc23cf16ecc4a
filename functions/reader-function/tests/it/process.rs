//! The program itself, between a fake of the service and a small S3.

use std::collections::VecDeque;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_s3::config::{Credentials, SharedCredentialsProvider};
use axum::Router;
use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::routing::{get, post};
use lambda_http::http::Method;
use serde_json::Value;
use testkit::{S3, S3Call};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;

use crate::mirror::{Answer, event, example, publish, recorded};

/// The runtime API (AWS Lambda Developer Guide, "Using the Lambda runtime API").
async fn serve_runtime_api(events: Vec<Value>, answers: mpsc::UnboundedSender<Vec<u8>>) -> String {
    let events = Arc::new(Mutex::new(VecDeque::from(events)));
    let next = get(move || {
        let events = Arc::clone(&events);
        async move {
            let Some(event) = events.lock().await.pop_front() else {
                return std::future::pending().await;
            };
            let mut headers = HeaderMap::new();
            headers.insert(
                "lambda-runtime-aws-request-id",
                "a-request".parse().unwrap(),
            );
            headers.insert(
                "lambda-runtime-deadline-ms",
                "9999999999999".parse().unwrap(),
            );
            (headers, event.to_string())
        }
    });
    let answer = post(move |body: Bytes| async move {
        answers.send(body.into()).unwrap();
    });
    let api = Router::new().route("/2018-06-01/runtime/invocation/next", next);
    let api = api.route("/2018-06-01/runtime/invocation/a-request/response", answer);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, api).await });
    address
}

fn function(api: &str, variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reader"));
    command
        .env_clear()
        .kill_on_drop(true)
        .envs(variables.iter().copied());
    command
        .env("AWS_LAMBDA_RUNTIME_API", api)
        .env("AWS_LAMBDA_FUNCTION_NAME", "reader")
        .env("AWS_LAMBDA_FUNCTION_VERSION", "1")
        .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128");
    command
}

async fn s3_with(folder: &Path) -> S3 {
    let server = S3::start().await;
    let settings = store::s3::S3Settings {
        endpoint: Some(server.url().into()),
        region: Some("us-east-1".into()),
        path_style: true,
        ..store::s3::S3Settings::default()
    };
    let config = store::s3::sdk_config(&settings).await.unwrap();
    let credentials = Credentials::new("key", "secret", None, None, "test");
    let provider = SharedCredentialsProvider::new(credentials);
    let config = config.into_builder().credentials_provider(provider).build();
    let place = "s3://bucket/mirror".parse().unwrap();
    let store = store::s3::S3Store::new(&config, place, &settings);
    publish(Arc::new(store), folder).await;
    server
}

/// The answers of a fresh process, and what it asked S3 for meanwhile.
async fn answers(events: Vec<Value>, variables: &[(&str, &str)]) -> (Vec<Answer>, Vec<S3Call>, S3) {
    let s3 = s3_with(example()).await;
    let before = s3.requests().len();
    let count = events.len();
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let api = serve_runtime_api(events, sender).await;
    let mut environment = vec![
        ("STORE", "s3://bucket/mirror"),
        ("AWS_ENDPOINT_URL_S3", s3.url()),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
    ];
    environment.extend_from_slice(variables);
    let _running = function(&api, &environment).spawn().unwrap();
    let mut answers = Vec::new();
    for _ in 0..count {
        answers.push(Answer::read(&receiver.recv().await.unwrap()));
    }
    let asked = s3
        .requests()
        .into_iter()
        .skip(before)
        .map(|request| request.call);
    (answers, asked.collect(), s3)
}

#[tokio::test]
async fn warm_pointer_is_only_revalidated() {
    let event = recorded("url-not-modified");
    let (answers, asked, s3) = answers(vec![event.clone(), event], &[]).await;
    assert!(
        answers.iter().all(|answer| answer.status == 304),
        "{answers:?}"
    );
    // A 304 needs the pointer only, each time under the condition of the last one.
    assert_eq!(asked, [S3Call::Get, S3Call::Get]);
    let requests = s3.requests();
    assert!(requests.last().unwrap().header("if-none-match").is_some());
}

#[tokio::test]
async fn large_bodies_are_redirected_to_presigned_or_public_urls() {
    let gzip = [("accept-encoding", "gzip")];
    let event = event(&Method::GET, "/catalogs/demo/api/v1/all", &gzip);
    let presigned = "/bucket/mirror/all/sha256/ .json.gz? X-Amz-Signature= X-Amz-Expires=900";
    for (variables, parts) in [
        (&[("INLINE_MAX", "1000")][..], presigned),
        (
            &[
                ("INLINE_MAX", "1000"),
                ("PUBLIC_URL", "https://cdn.example/m/"),
            ],
            "https://cdn.example/m/all/sha256/",
        ),
    ] {
        let (answers, ..) = answers(vec![event.clone()], variables).await;
        assert_eq!(answers[0].status, 307);
        assert_eq!(answers[0].headers["cache-control"], "public, max-age=60");
        let location = &answers[0].headers["location"];
        for part in parts.split(' ') {
            assert!(location.contains(part), "{location}");
        }
    }
}

/// Returns what the function logs when it cannot start.
async fn log_of_failure(variables: &[(&str, &str)]) -> String {
    let Output { status, stderr, .. } = function("127.0.0.1:1", variables).output().await.unwrap();
    assert!(!status.success());
    String::from_utf8(stderr).unwrap()
}

#[tokio::test]
async fn bad_environment_ends_the_function_with_all_problems() {
    let variables = [
        ("STORE", "/var/lib/store"),
        ("PUBLIC_URL", "https://user@cdn.example"),
        ("CACHE_MIB", "much"),
        ("FRESHNESS", "soon"),
        ("INLINE_MAX", "7000000"),
    ];
    let log = log_of_failure(&variables).await;
    assert_eq!(log.lines().count(), 1, "{log}");
    for (name, _) in variables {
        assert!(log.contains(name), "{name}: {log}");
    }
}

/// Certificates that cannot be used are reported as soon as they are read.
#[tokio::test]
async fn system_certificates_are_not_read_before_s3_is_asked() {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let health = event(&Method::GET, "/healthz", &[]);
    let api = serve_runtime_api(vec![health], sender).await;
    let variables = [
        ("STORE", "s3://bucket"),
        ("AWS_REGION", "us-east-1"),
        ("SSL_CERT_FILE", "/nonexistent"),
    ];
    let mut running = function(&api, &variables)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let answer = timeout(Duration::from_secs(30), receiver.recv())
        .await
        .unwrap();
    assert_eq!(Answer::read(&answer.unwrap()).status, 200);
    running.start_kill().unwrap();
    let log = running.wait_with_output().await.unwrap().stderr;
    let log = String::from_utf8(log).unwrap();
    assert!(!log.contains("certificate"), "{log}");
}

#[tokio::test]
async fn unusable_own_certificates_end_the_function_at_once() {
    let log = log_of_failure(&[
        ("STORE", "s3://bucket"),
        ("AWS_CA_BUNDLE", "/nonexistent/ca.pem"),
    ])
    .await;
    assert!(log.contains("/nonexistent/ca.pem"), "{log}");
}
