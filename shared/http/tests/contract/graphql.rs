//! Queries of GraphQL.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::body::Body;
use catalog_mirror_http::{BaseUrl, CONTENT_MAX, HttpSettings, Large};
use futures_util::stream;
use http::{Method, StatusCode};
use model::Key;
use reader::ReaderSettings;
use rstest::rstest;
use serde_json::{Value, json};
use store::memory::{Answer as Action, Moment};
use testkit::Answer;

use crate::{
    fixture::{LINES, Publication, publish},
    world::{World, cached},
};

const PATH: &str = "/catalogs/demo/api/v1/graphql";
const GRAPHQL_JSON: &str = "application/graphql-response+json";

fn body(query: &str) -> String {
    json!({ "query": query }).to_string()
}

fn path(query: &str) -> String {
    let escaped: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
    format!("{PATH}?query={escaped}")
}

fn parsed(answer: &Answer) -> Value {
    serde_json::from_slice(answer.bytes()).unwrap()
}

#[rstest]
#[case::summary("{summary{totalSchemas schemas{name totalObjects}}}", json!({"summary": {"totalSchemas": 4, "schemas": [
    {"name": "olm.bundle", "totalObjects": 3}, {"name": "olm.channel", "totalObjects": 2},
    {"name": "olm.note", "totalObjects": 1}, {"name": "olm.package", "totalObjects": 3}]}}))]
#[case::page("{olmbundles(limit: 2, offset: 1){name package}}", json!({"olmbundles": [
    {"name": "alpha.v2", "package": "alpha"}, {"name": "beta.v1", "package": "beta"}]}))]
#[case::package(r#"{olmpackages(package: "alpha"){name defaultChannel} olmchannels(package: "beta"){name}}"#,
    json!({"olmpackages": [{"name": "alpha", "defaultChannel": "stable"}], "olmchannels": [{"name": "stable"}]}))]
#[case::no_package(r#"{olmnotes{text} olmbundles(package: "gamma"){name}}"#,
    json!({"olmnotes": [{"text": "of no package"}], "olmbundles": []}))]
#[tokio::test]
async fn get_and_post_answer_the_same(#[case] query: &str, #[case] data: Value) {
    for cache_bytes in [0, 64 << 20] {
        let world = World::with(cached(cache_bytes), Publication::default(), LINES).await;
        let posted = world.post(PATH, &[], body(query)).await;
        assert_eq!(posted.status, StatusCode::OK, "{}", posted.text());
        assert_eq!(parsed(&posted), json!({ "data": data }));
        assert_eq!(posted.header("content-type"), "application/json");
        assert_eq!(posted.header("cache-control"), "no-store");
        assert!(posted.headers.get("etag").is_none());
        let got = world.get(&path(query), &[]).await;
        assert_eq!(got.bytes(), posted.bytes());
        assert_eq!(got.header("vary"), "Accept, Accept-Encoding");
        assert!(got.header("cache-control").starts_with("public, "));
        let head = world.ask(Method::HEAD, &path(query), &[]).await;
        assert_eq!(head.header("content-length"), got.header("content-length"));
        assert!(head.bytes().is_empty());
    }
}

#[tokio::test]
async fn get_is_answered_304_without_execution_until_the_content_changes() {
    let world = World::new().await;
    let query = path("{olmbundles{name}}");
    let tag = world.get(&query, &[]).await.header("etag").to_owned();
    let known = [("if-none-match", tag.as_str())];
    assert_eq!(world.get(&query, &known).await.status, StatusCode::NOT_MODIFIED);
    for other in [
        path("{olmbundles{package}}"),
        format!("{query}&variables=%7B%22a%22:1%7D"),
        format!("{query}&operationName=a"),
    ] {
        assert_ne!(
            world.get(&other, &known).await.status,
            StatusCode::NOT_MODIFIED,
            "{other}"
        );
    }
    let spec = [("if-none-match", tag.as_str()), ("accept", GRAPHQL_JSON)];
    assert_eq!(world.get(&query, &spec).await.status, StatusCode::OK);
    // A POST has no conditions.
    let posted = world.post(PATH, &known, body("{olmbundles{name}}")).await;
    assert_eq!(posted.status, StatusCode::OK);
    publish(
        &world.store,
        Publication::default(),
        &LINES.replace("alpha", "alphabet"),
    )
    .await;
    let changed = world.get(&query, &known).await;
    assert_eq!(changed.status, StatusCode::OK);
    assert!(changed.text().contains("alphabet.v1"));
}

#[tokio::test]
async fn answers_are_compressed_as_the_client_accepts() {
    let world = World::new().await;
    let query = "{olmbundles{name package schema}}";
    let plain = world.get(&path(query), &[]).await;
    let mut tags = vec![plain.header("etag").to_owned()];
    for coding in ["zstd", "gzip"] {
        let accept = [("accept-encoding", coding)];
        for answer in [
            world.get(&path(query), &accept).await,
            world.post(PATH, &accept, body(query)).await,
        ] {
            assert_eq!(answer.header("content-encoding"), coding);
            assert_eq!(answer.decoded(), plain.bytes());
        }
        tags.push(world.get(&path(query), &accept).await.header("etag").to_owned());
    }
    tags.sort_unstable();
    tags.dedup();
    assert_eq!(tags.len(), 3, "{tags:?}");
    let fields = [("accept", GRAPHQL_JSON), ("accept-encoding", "gzip")];
    let refused = world.get(&path("{"), &fields).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert!(refused.decoded().starts_with(b"{\"errors\""));
    let none = world.get(&path(query), &[("accept-encoding", "*;q=0")]).await;
    assert_eq!(none.status, StatusCode::NOT_ACCEPTABLE);
}

#[rstest]
#[case::data("{__typename}", 200, 200)]
#[case::syntax("{", 200, 400)]
#[case::unknown_field("{nothing}", 200, 400)]
#[case::mutation("mutation{a}", 200, 400)]
#[tokio::test]
async fn status_of_errors_depends_on_the_media_type(#[case] query: &str, #[case] json: u16, #[case] graphql: u16) {
    let world = World::new().await;
    for (accept, status) in [("application/json", json), (GRAPHQL_JSON, graphql)] {
        let fields = [("accept", accept)];
        let posted = world.post(PATH, &fields, body(query)).await;
        let got = world.get(&path(query), &fields).await;
        for answer in [posted, got] {
            assert_eq!(answer.status, status, "{accept}: {}", answer.text());
            assert_eq!(answer.header("content-type"), accept);
            let has_data = parsed(&answer).get("data").is_some();
            assert_eq!(has_data, status == 200, "{}", answer.text());
        }
    }
}

#[rstest]
#[case::no_json("{", 400, "bad-graphql-request")]
#[case::empty("", 400, "bad-graphql-request")]
#[case::no_query("{}", 400, "bad-graphql-request")]
#[case::empty_query(r#"{"query":""}"#, 400, "bad-graphql-request")]
#[case::variables(r#"{"query":"{a}","variables":1}"#, 400, "bad-graphql-request")]
#[tokio::test]
async fn malformed_bodies_are_refused(#[case] content: &'static str, #[case] status: u16, #[case] problem: &str) {
    let world = World::new().await;
    let answer = world.post(PATH, &[], content).await;
    assert_eq!(answer.status, status);
    assert!(answer.text().contains(problem), "{}", answer.text());
    assert_eq!(answer.header("cache-control"), "no-store");
}

#[tokio::test]
async fn content_type_does_not_matter() {
    let world = World::new().await;
    for content_type in ["application/json; charset=utf-8", "text/plain", ""] {
        let answer = world
            .post(PATH, &[("content-type", content_type)], body("{__typename}"))
            .await;
        assert_eq!(answer.status, StatusCode::OK, "{content_type}");
    }
}

#[tokio::test]
async fn content_is_taken_up_to_its_limit() {
    let world = World::new().await;
    let padded = |length: usize| {
        let body = body("{__typename}");
        format!("{body}{}", " ".repeat(length - body.len()))
    };
    let longest = world.post(PATH, &[], padded(CONTENT_MAX)).await;
    assert_eq!(longest.status, StatusCode::OK);
    let longer = world.post(PATH, &[], padded(CONTENT_MAX + 1)).await;
    assert_eq!(longer.status, StatusCode::PAYLOAD_TOO_LARGE);
    // Without an announced length.
    let chunks = (0..CONTENT_MAX / 1024 + 1).map(|_| Ok::<_, std::io::Error>(vec![b' '; 1024]));
    let streamed = world.post(PATH, &[], Body::from_stream(stream::iter(chunks))).await;
    assert_eq!(streamed.status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test(start_paused = true)]
async fn content_that_does_not_arrive_is_refused() {
    let world = World::new().await;
    let pending = stream::pending::<Result<Vec<u8>, std::io::Error>>();
    let answer = world.post(PATH, &[], Body::from_stream(pending)).await;
    assert_eq!(answer.status, StatusCode::REQUEST_TIMEOUT);
    let broken = stream::iter([Err::<Vec<u8>, _>(std::io::Error::other("gone"))]);
    let answer = world.post(PATH, &[], Body::from_stream(broken)).await;
    assert_eq!(answer.status, StatusCode::REQUEST_TIMEOUT);
}

#[tokio::test]
async fn methods_are_listed_by_route() {
    let world = World::new().await;
    for (method, path, allowed) in [
        (Method::PUT, PATH, "GET, HEAD, POST"),
        (Method::POST, "/catalogs/demo/api/v1/metas", "GET, HEAD"),
    ] {
        let answer = world.ask(method, path, &[]).await;
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(answer.header("allow"), allowed);
    }
}

#[tokio::test]
async fn catalogs_without_types_say_so() {
    let world = World::new().await;
    let unknown = world
        .post("/catalogs/other/api/v1/graphql", &[], body("{__typename}"))
        .await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    let old = Publication {
        search: false,
        ..Publication::default()
    };
    publish(&world.store, old, LINES).await;
    let answer = world.post(PATH, &[], body("{__typename}")).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert!(answer.text().contains("publish it again"), "{}", answer.text());
    let lines = "{\"name\":\"x\",\"schema\":\"a.b\"}\n{\"name\":\"x\",\"schema\":\"a-b\"}\n";
    publish(&world.store, Publication::default(), lines).await;
    let answer = world.get(&path("{__typename}"), &[]).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert!(
        answer.text().contains("a.b") && answer.text().contains("a-b"),
        "{}",
        answer.text()
    );
    // Everything else stays served.
    let metas = world.get("/catalogs/demo/api/v1/metas?schema=a.b", &[]).await;
    assert_eq!(metas.status, StatusCode::OK);
}

#[tokio::test]
async fn answers_that_a_function_cannot_send_are_errors_that_say_so() {
    let settings = HttpSettings {
        large: Large::Redirect {
            above: 700,
            to: Arc::new(BaseUrl::new("/")),
        },
        ..HttpSettings::default()
    };
    let world = World::with(settings, Publication::default(), LINES).await;
    let small = world.post(PATH, &[], body("{olmpackages(limit: 1){name}}")).await;
    assert_eq!(parsed(&small)["data"]["olmpackages"], json!([{"name": "alpha"}]));
    for answer in [
        world.post(PATH, &[], body("{olmbundles{name package schema}}")).await,
        world.get(&path("{olmbundles{name package schema}}"), &[]).await,
    ] {
        assert_eq!(answer.status, StatusCode::OK);
        assert!(answer.text().contains("ask for less"), "{}", answer.text());
    }
}

fn uncached() -> ReaderSettings {
    cached(0)
}

#[tokio::test]
async fn failing_store_is_answered_with_503_and_not_remembered() {
    let world = World::new().await;
    world.store.set_hook(|call, moment| match moment {
        Moment::Before if call.key.as_ref().is_some_and(Key::is_immutable) => Action::Fail,
        _ => Action::GoOn,
    });
    for answer in [
        world.post(PATH, &[], body("{olmbundles{name}}")).await,
        world.get(&path("{olmbundles{name}}"), &[]).await,
    ] {
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{}", answer.text());
    }
    world.store.clear_hook();
    let answer = world.get(&path("{olmbundles{name}}"), &[]).await;
    assert_eq!(answer.status, StatusCode::OK);
}

#[tokio::test]
async fn query_ends_with_its_time() {
    let world = World::with(uncached(), Publication::default(), LINES).await;
    let reads = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&reads);
    world.store.set_hook(move |call, moment| {
        if moment == Moment::Before
            && call
                .key
                .as_ref()
                .is_some_and(|key| key.to_string().starts_with("packages/"))
        {
            count.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(150));
        }
        Action::GoOn
    });
    let lists = (0..50).map(|at| format!("a{at}: olmbundles(package: \"alpha\"){{name}} "));
    let query = format!("{{{}}}", lists.collect::<String>());
    let answer = world.post(PATH, &[], body(&query)).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", answer.text());
    assert!(answer.text().contains("slow-query"), "{}", answer.text());
    tokio::time::sleep(Duration::from_millis(500)).await;
    let before = reads.load(Ordering::Relaxed);
    assert!(before < 50, "all {before} lists were read");
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(reads.load(Ordering::Relaxed), before, "the query goes on");
}

#[tokio::test]
async fn unknown_parameters_are_refused() {
    let world = World::new().await;
    let answer = world.get(&format!("{PATH}?query=a&limit=1"), &[]).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert!(answer.text().contains("unknown-parameter"), "{}", answer.text());
    let missing = world.get(PATH, &[]).await;
    assert_eq!(missing.status, StatusCode::BAD_REQUEST);
    assert!(missing.text().contains("bad-graphql-request"), "{}", missing.text());
}
