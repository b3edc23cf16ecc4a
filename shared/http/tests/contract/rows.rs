//! Status and headers of successful answers. The tests of each route compare the bodies.

use std::fmt::Write;

use http::{Method, StatusCode};
use model::Encoding;
use storekit::Action;
use testkit::Answer;

use crate::world::World;

const ALL: &str = "/catalogs/demo/api/v1/all";

/// Fields that all answers with the same caching have.
type Caching = &'static [&'static str];

/// Answer about the published state.
const STATE: Caching = &[
    "200 OK",
    "accept-ranges: bytes",
    "cache-control: public, max-age=60, stale-while-revalidate=60, stale-if-error=86400",
    "last-modified: Mon, 21 Sep 2026 14:13:20 GMT",
];
/// Document that has no date of its own.
const POINTER: Caching = STATE.split_at(3).0;
const FOREVER: Caching = &[
    "200 OK",
    "accept-ranges: bytes",
    "cache-control: public, max-age=31536000, immutable",
];
const NEVER: Caching = &["200 OK", "accept-ranges: bytes", "cache-control: no-store"];
const NOT_MODIFIED: Caching = &["304 Not Modified", STATE[2], STATE[3]];

/// Returns the fields that an answer has besides those of its caching.
fn own_fields(answer: &Answer, caching: Caching) -> String {
    let head = answer.head();
    let (shared, own): (Vec<&str>, Vec<&str>) = head.lines().partition(|line| caching.contains(line));
    assert_eq!(shared, caching);
    own.join("; ")
}

#[tokio::test]
async fn answers_have_the_fields_of_their_caching_and_their_own() {
    let world = World::new().await;
    let gzip = format!("/{}", world.demo.current.all.gzip.key());
    let shard = &world.demo.snapshot.packages[0].stored;
    let shard = format!("/packages/sha256/{}.json.zst", shard.sha256);
    let mut shown = String::new();
    let date = "Mon, 21 Sep 2026 14:14:20 GMT";
    for (caching, path, value) in [
        (STATE, ALL, ""),
        (STATE, ALL, "gzip"),
        (STATE, "/catalogs/demo/all.json", "gzip, zstd"),
        (STATE, "/catalogs/demo/api/v1/metas?package=alpha", ""),
        (STATE, "/catalogs/demo/api/v1/metas?package=none", "gzip"),
        (STATE, "/catalogs/demo/packages/beta", ""),
        (STATE, "/catalogs/demo/packages/beta", "zstd"),
        (STATE, "/catalogs/demo/packages", ""),
        (STATE, "/catalogs/demo/content-hash", ""),
        (POINTER, "/catalogs", ""),
        (POINTER, "/catalogs.json", ""),
        (STATE, "/catalogs/demo/search.json", "zstd"),
        (STATE, "/catalogs/demo/search.json", "gzip"),
        (POINTER, "/catalogs/demo/current.json", ""),
        (POINTER, "/catalogs/demo/current.json", "gzip"),
        (FOREVER, &gzip, ""),
        (FOREVER, &shard, ""),
        (NEVER, "/healthz", ""),
        (NEVER, "/readyz", ""),
        (NOT_MODIFIED, ALL, "*"),
        (NOT_MODIFIED, "/catalogs/demo/content-hash", date),
    ] {
        let fields: &[_] = match value {
            "" => &[],
            "*" => &[("if-none-match", value)],
            _ if value == date => &[("if-modified-since", value)],
            _ => &[("accept-encoding", value)],
        };
        let own = own_fields(&world.get(path, fields).await, caching);
        let value = value.replace(' ', "");
        writeln!(shown, "{path} {value}\n  {own}").unwrap();
    }
    insta::assert_snapshot!(shown, @r#"
    /catalogs/demo/api/v1/all 
      content-length: 531; content-type: application/jsonl; etag: "cTVR_n2RYBMWP7PJCZSw2uKOrgFzLA3MCi9jEhPBq6A"; vary: Accept-Encoding
    /catalogs/demo/api/v1/all gzip
      content-encoding: gzip; content-length: 197; content-type: application/jsonl; etag: "V329zQXYq8Breto9uAPGKXEx1JEEUDrlugEIKrVlUMQ"; vary: Accept-Encoding
    /catalogs/demo/all.json gzip,zstd
      content-encoding: zstd; content-length: 172; content-type: application/jsonl; etag: "0iB6dmLJxS8jh27XNFFBmYgY7LAO-rRb5mYUfCNNKBg"; vary: Accept-Encoding
    /catalogs/demo/api/v1/metas?package=alpha 
      content-length: 179; content-type: application/jsonl; etag: "xgYkNTZeDHstoLd0Hzcs7CkcxB9TMM9-iZOBREMBWAc"; vary: Accept-Encoding
    /catalogs/demo/api/v1/metas?package=none gzip
      content-length: 0; content-type: application/jsonl; etag: "H4ZFoZ9SQDvnYGxXmbAAJ-ukhrsufaL_Fj6OyGo7Tgo"; vary: Accept-Encoding
    /catalogs/demo/packages/beta 
      content-length: 155; content-type: application/jsonl; etag: "ZIngVcvySvhcPXN8YV487Ha0xQhW8Je93qDcarNl92Y"; vary: Accept-Encoding
    /catalogs/demo/packages/beta zstd
      content-encoding: zstd; content-length: 88; content-type: application/jsonl; etag: "UYv30aWidZvd0yiPA5n_qNA3axAfEuUf0q7BmfmRV6U"; vary: Accept-Encoding
    /catalogs/demo/packages 
      content-length: 794; content-type: application/json; etag: "EhAfmd5KV6LwGb6r4n-xwX7WppLCpaA7kM8ihWH55V0"
    /catalogs/demo/content-hash 
      content-length: 65; content-type: text/plain; charset=utf-8; etag: "tlCde9FmU5h4eL9tyAkOkbyi9SQxa0aeuDDN7kSl0_g"
    /catalogs 
      content-length: 302; content-type: application/json; etag: "QZpaycSCQLWIjfWrBWOUrKrEJLPvYXVkTwptNnrbIHk"
    /catalogs.json 
      content-length: 72; content-type: application/json; etag: "UrDjVMVECWTe8Dfp5R4BUgUOqyeTqou8iv4OAA5jrh0"
    /catalogs/demo/search.json zstd
      content-encoding: zstd; content-length: 90; content-type: application/json; etag: "2Di2G2dWs027N_a_h8YZQ4oJFxyfPu8vJS-gUOAWzMg"; vary: Accept-Encoding
    /catalogs/demo/search.json gzip
      content-encoding: gzip; content-length: 95; content-type: application/json; etag: "2Di2G2dWs027N_a_h8YZQ4oJFxyfPu8vJS-gUOAWzMg-gzip"; vary: Accept-Encoding
    /catalogs/demo/current.json 
      content-length: 908; content-type: application/json; etag: "RRvEizPh5Q1oB8Up87TuZQTTXCQqFJqYH_U6w1ultF0"; vary: Accept-Encoding
    /catalogs/demo/current.json gzip
      content-length: 908; content-type: application/json; etag: "RRvEizPh5Q1oB8Up87TuZQTTXCQqFJqYH_U6w1ultF0"; vary: Accept-Encoding
    /all/sha256/577dbdcd05d8abc06b7ada3db803c6297131d49104503ae5ba01082ab56550c4.json.gz 
      content-encoding: gzip; content-length: 197; content-type: application/jsonl; etag: "V329zQXYq8Breto9uAPGKXEx1JEEUDrlugEIKrVlUMQ"
    /packages/sha256/9d52aebcffcee127e38ad5f5f80106c79fc0bb343326a0dc1e6215c62f336e6b.json.zst 
      content-encoding: zstd; content-length: 127; content-type: application/jsonl; etag: "nVKuvP_O4SfjitX1-AEGx5_AuzQzJqDcHmIVxi8zbms"
    /healthz 
      content-length: 3; content-type: text/plain; charset=utf-8; etag: "3FG4yWwtdF3zvVWQ2ZAjCkgv0kcSNZlUjgYy_b-X_CI"
    /readyz 
      content-length: 3; content-type: text/plain; charset=utf-8; etag: "3FG4yWwtdF3zvVWQ2ZAjCkgv0kcSNZlUjgYy_b-X_CI"
    /catalogs/demo/api/v1/all *
      etag: "cTVR_n2RYBMWP7PJCZSw2uKOrgFzLA3MCi9jEhPBq6A"; vary: Accept-Encoding
    /catalogs/demo/content-hash Mon,21Sep202614:14:20GMT
      etag: "tlCde9FmU5h4eL9tyAkOkbyi9SQxa0aeuDDN7kSl0_g"
    "#);
}

#[tokio::test]
async fn listings_and_probes_have_their_bodies() {
    let world = World::new().await;
    let text = async |path: &str| world.get(path, &[]).await.text();
    insta::assert_snapshot!(text("/catalogs/demo/packages").await, @r#"{"contentHash":"713551fe7d916013163fb3c90994b0dae28eae01732c0dcc0a2f631213c1aba0","packages":[{"metas":5,"name":"alpha","object":{"key":"packages/sha256/9d52aebcffcee127e38ad5f5f80106c79fc0bb343326a0dc1e6215c62f336e6b.json.zst","size":127},"sha256":"1c6233ebba099cff056c1e5da5e97750e42164fc1a05b2ace8864ca8f6b70e32","size":291},{"metas":3,"name":"beta","object":{"key":"packages/sha256/518bf7d1a5a2759bddd3288f0399ffa8d0376b101f12e51fd2aec199f99157a5.json.zst","size":88},"sha256":"6489e055cbf24af85c3d737c615e3cec76b4c50856f097bddea0dc6ab365f766","size":155},{"metas":1,"name":"gamma","object":{"key":"packages/sha256/628544dfa59f2bc66938ed97f97a6bead75795ba0cfa1b0bbe09d5cd1c1b81a1.json.zst","size":49},"sha256":"bfd904503147b5b45dd902588e05ef7b97a234f97f53f41f008f81c8f5c7999d","size":40}]}"#);
    insta::assert_snapshot!(text("/catalogs").await, @r#"{"catalogs":[{"contentHash":"713551fe7d916013163fb3c90994b0dae28eae01732c0dcc0a2f631213c1aba0","metas":10,"name":"demo","packages":3,"publishedAt":"2026-09-21T14:13:20Z","serial":1,"sizes":{"gzip":197,"identity":531,"zstd":172},"source":{"digest":"sha256:0123","ref":"registry.example/demo:latest"}}]}"#);
    let hash = world.demo.current.content_hash;
    assert_eq!(text("/catalogs/demo/content-hash").await, format!("{hash}\n"));
    assert_eq!([text("/healthz").await, text("/readyz").await], ["ok\n", "ok\n"]);
}

/// Three reads: the pointer for each request, and the Snapshot once, for the tag of a package.
#[tokio::test]
async fn not_modified_reads_no_body() {
    let world = World::new().await;
    world.store.take_log();
    let tag = world.demo.snapshot.packages[0]
        .lines
        .sha256
        .to_entity_tag(Encoding::Identity);
    for (path, tag) in [
        ("/catalogs/demo/packages/alpha", tag.as_str()),
        ("/catalogs/demo/all.json", "*"),
    ] {
        let answer = world.get(path, &[("if-none-match", tag)]).await;
        assert_eq!(answer.status, StatusCode::NOT_MODIFIED);
    }
    let reads = world.store.count(|action| matches!(action, Action::Get));
    assert_eq!(reads, 3, "{:?}", world.store.log());
}

#[tokio::test]
async fn head_has_the_headers_of_get() {
    let world = World::new().await;
    let snapshot = format!("/{}", world.demo.current.snapshot.key());
    let changes = format!("/catalogs/demo/changes?since={}", world.demo.current.content_hash);
    let paths = "/ /healthz /openapi.json /catalogs /catalogs.json /catalogs/none/content-hash /catalogs/demo/api/v1/metas?a=b \
                 /catalogs/demo/current.json /catalogs/demo/api/v1/all /catalogs/demo/api/v1/metas?schema=olm.bundle \
                 /catalogs/demo/packages /catalogs/demo/packages/alpha /catalogs/demo/content-hash /catalogs/demo/search.json";
    for path in paths.split(' ').chain([&*snapshot, &*changes]) {
        for coding in ["gzip", "zstd", "identity"] {
            let get = world.get(path, &[("accept-encoding", coding)]).await;
            let head = world.ask(Method::HEAD, path, &[("accept-encoding", coding)]).await;
            assert_eq!(head.head(), get.head(), "{path}");
            assert_eq!(head.bytes().len(), 0);
            assert_eq!(get.header("content-length"), get.bytes().len().to_string(), "{path}");
        }
    }
}
