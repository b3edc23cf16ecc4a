//! Memory of answers, which the server in front bounds.

use std::future::{pending, ready};
use std::time::Duration;

use axum::body::Body;
use futures_util::{FutureExt, StreamExt};
use http::{Method, Request, Response, StatusCode};
use testkit::Answer;
use tower::ServiceExt;
use work::{AnswerMemory, ClientMemory, HeldMemory};

use crate::world::{World, problem};

/// All answers that have content, with and without codings.
const ANSWERED: [&str; 12] = [
    "/",
    "/catalogs",
    "/catalogs/demo/current.json",
    "/catalogs/demo/content-hash",
    "/catalogs/demo/changes",
    "/catalogs/demo/all.json",
    "/catalogs/demo/api/v1/metas?schema=olm.bundle",
    "/catalogs/demo/packages",
    "/catalogs/demo/packages/alpha",
    "/catalogs/demo/search.json",
    "/catalogs/demo/search?q=a",
    "/v2/demo/manifests/latest",
];

/// Memory for answers in this file, in bytes.
const BYTES: u64 = 64 << 20;

/// Returns memory for which no answer waits.
fn memory() -> AnswerMemory {
    AnswerMemory::new(BYTES, Duration::ZERO, |_| Box::pin(ready(())))
}

/// Takes all memory but a little.
async fn fill(memory: &AnswerMemory) -> Vec<HeldMemory> {
    let mut held = Vec::new();
    while memory.taken() < memory.capacity() - (8 << 10) {
        let client = memory.client();
        client.trust();
        let rest = memory.capacity() - memory.taken();
        held.push(client.take(rest.min(BYTES / 4)).await.unwrap());
    }
    held
}

fn request(client: &ClientMemory, method: Method, path: &str, field: [&str; 2]) -> Request<Body> {
    let [name, value] = field;
    let request = Request::builder().method(method).uri(path);
    let request = request.header(name, value).extension(client.clone());
    request.body(Body::empty()).unwrap()
}

impl World {
    async fn begin(&self, request: Request<Body>) -> Response<Body> {
        self.router.clone().oneshot(request).await.unwrap()
    }
}

#[tokio::test]
async fn answer_holds_memory_until_its_last_byte_is_dropped() {
    let memory = memory();
    for cache_bytes in [0, 64 << 20] {
        let world = World::new().await.caching(cache_bytes);
        for path in ANSWERED {
            for coding in ["identity", "gzip", "zstd"] {
                let client = memory.client();
                let field = ["accept-encoding", coding];
                let response = world
                    .begin(request(&client, Method::GET, path, field))
                    .await;
                assert_eq!(response.status(), StatusCode::OK, "{path}");
                let held = memory.taken();
                assert!(held > 0, "{path} {coding}");
                let mut body = response.into_body().into_data_stream();
                let piece = body.next().await.unwrap().unwrap();
                assert!(memory.taken() > 0, "{path} {coding}");
                drop(body);
                assert!(memory.taken() > 0, "{path} {coding}");
                drop(piece);
                assert_eq!(memory.taken(), 0, "{path} {coding}");
            }
        }
    }
    assert_eq!(memory.refused(), 0);
}

#[tokio::test]
async fn answer_without_content_holds_no_memory() {
    let memory = memory();
    let client = memory.client();
    for cache_bytes in [0, 64 << 20] {
        let world = World::new().await.caching(cache_bytes);
        for (method, path, field, status) in [
            (Method::HEAD, "all.json", ["accept", "*/*"], 200),
            (
                Method::HEAD,
                "packages/alpha",
                ["accept-encoding", "gzip"],
                200,
            ),
            (Method::GET, "all.json", ["if-none-match", "*"], 304),
            (Method::GET, "packages", ["if-none-match", "*"], 304),
            (Method::GET, "all.json", ["if-match", "\"other\""], 412),
            (Method::GET, "all.json", ["range", "bytes=9999999-"], 416),
            (Method::GET, "packages/other", ["accept", "*/*"], 404),
        ] {
            let path = format!("/catalogs/demo/{path}");
            let response = world
                .begin(request(&client, method.clone(), &path, field))
                .await;
            assert_eq!(response.status(), status, "{method} {path}");
            assert_eq!(memory.taken(), 0, "{method} {path} {field:?}");
        }
    }
}

#[tokio::test]
async fn answer_without_memory_is_refused_before_its_work() {
    let world = World::new().await;
    let memory = memory();
    let held = fill(&memory).await;
    let client = memory.client();
    // It holds what clients get without waiting.
    let _first = client.take(1).await.unwrap();
    let asked = |path| request(&client, Method::GET, path, ["accept", "*/*"]);
    let detail = "too many answers are being made and sent at the moment; try again later";
    for path in ANSWERED {
        let refused = Answer::to(asked(path), &world.router).await;
        assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE, "{path}");
        assert_eq!(refused.header("retry-after"), "5", "{path}");
    }
    let mut refused = Answer::to(asked("/catalogs/demo/all.json"), &world.router).await;
    refused.headers.remove("access-control-allow-origin");
    refused.headers.remove("access-control-expose-headers");
    let expected = problem(503, "too-many-answers", detail, "retry-after: 5");
    assert_eq!(refused.show(), expected);
    let refused = Answer::to(asked("/v2/demo/manifests/latest"), &world.router).await;
    assert!(
        refused.text().contains("\"code\":\"UNAVAILABLE\""),
        "{}",
        refused.text()
    );
    assert_eq!(memory.refused(), ANSWERED.len() as u64 + 2);
    drop(held);
    let answer = Answer::to(asked("/catalogs/demo/all.json"), &world.router).await;
    assert_eq!(answer.bytes(), world.demo.all);
}

#[tokio::test]
async fn answer_waits_for_memory() {
    let world = World::new().await;
    let memory = AnswerMemory::new(BYTES, Duration::ZERO, |_| Box::pin(pending()));
    let held = fill(&memory).await;
    let client = memory.client();
    let _first = client.take(1).await.unwrap();
    let path = "/catalogs/demo/packages/alpha";
    let asked = request(&client, Method::GET, path, ["accept", "*/*"]);
    let mut answer = Box::pin(world.begin(asked));
    assert!((&mut answer).now_or_never().is_none());
    drop(held);
    assert_eq!(answer.await.status(), StatusCode::OK);
    assert_eq!(memory.refused(), 0);
}

#[tokio::test]
async fn kept_bytes_count_once_for_all_answers_that_send_them() {
    let long = format!(
        "{{\"name\":\"alpha\",\"schema\":\"olm.package\",\"text\":\"{}\"}}\n",
        "x".repeat(1 << 20)
    );
    let world = World::of(crate::fixture::Publication::default(), &long).await;
    let memory = memory();
    let path = "/catalogs/demo/packages/alpha";
    let mut responses = Vec::new();
    for _ in 0..64 {
        let asked = request(
            &memory.client(),
            Method::GET,
            path,
            ["accept-encoding", "identity"],
        );
        responses.push(world.begin(asked).await);
    }
    let once = long.len() as u64;
    assert!(
        (once..2 * once).contains(&memory.taken()),
        "{}",
        memory.taken()
    );
    drop(responses);
    assert_eq!(memory.taken(), 0);
}
