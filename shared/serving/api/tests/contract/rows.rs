//! Status and headers of successful answers. The tests of each route compare the bodies, and those
//! of documents the fields of what is stored.

use http::Method;
use model::{Encoding, Sha256};

use crate::world::World;

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
const NEVER: Caching = &["200 OK", "accept-ranges: bytes", "cache-control: no-store"];

const JSON: &str = "content-type: application/json";
const JSONL: &str = "content-type: application/jsonl";
const TEXT: &str = "content-type: text/plain; charset=utf-8";
const GZIP: &str = "content-encoding: gzip";
const ZSTD: &str = "content-encoding: zstd";
const VARY: &str = "vary: Accept-Encoding";

#[tokio::test]
async fn answers_have_the_fields_of_their_caching_and_their_own() {
    let world = World::new().await;
    for (caching, path, accept, own) in [
        (
            STATE,
            "/catalogs/demo/api/v1/all",
            "identity",
            &[JSONL, VARY][..],
        ),
        (
            STATE,
            "/catalogs/demo/api/v1/all",
            "gzip",
            &[JSONL, GZIP, VARY],
        ),
        (
            STATE,
            "/catalogs/demo/all.json",
            "gzip, zstd",
            &[JSONL, ZSTD, VARY],
        ),
        // Too small to be compressed.
        (
            STATE,
            "/catalogs/demo/api/v1/metas?package=alpha",
            "gzip",
            &[JSONL, VARY],
        ),
        (
            STATE,
            "/catalogs/demo/api/v1/metas?package=none",
            "gzip",
            &[JSONL, VARY],
        ),
        (
            STATE,
            "/catalogs/d%65mo/packages/%62eta",
            "identity",
            &[JSONL, VARY],
        ),
        (
            STATE,
            "/catalogs/demo/packages/beta",
            "zstd",
            &[JSONL, ZSTD, VARY],
        ),
        (STATE, "/catalogs/demo/packages", "gzip", &[JSON, VARY]),
        (STATE, "/catalogs/demo/content-hash", "gzip", &[TEXT]),
        (POINTER, "/catalogs", "gzip", &[JSON, VARY]),
        (
            STATE,
            "/catalogs/demo/search.json",
            "zstd",
            &[JSON, ZSTD, VARY],
        ),
        (NEVER, "/healthz", "gzip", &[TEXT]),
        (NEVER, "/readyz", "gzip", &[TEXT]),
    ] {
        let answer = world.get(path, &[("accept-encoding", accept)]).await;
        let length = format!("content-length: {}", answer.bytes().len());
        // What is selected has a tag of the state and the selection.
        let tag = match path.contains("metas") {
            true => answer.header("etag").to_owned(),
            false => Sha256::of(answer.bytes()).to_entity_tag(Encoding::Identity),
        };
        let tag = format!("etag: {tag}");
        let mut expected = [&[&*length, &*tag], caching, own].concat();
        expected.sort_unstable();
        let head = answer.head();
        let mut found: Vec<&str> = head.lines().collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{path} {accept}");
    }
}

#[tokio::test]
async fn listings_and_probes_have_their_bodies() {
    let world = World::new().await;
    let text = async |path: &str| world.get(path, &[]).await.text();
    insta::assert_snapshot!(text("/catalogs/demo/packages").await, @r#"{"contentHash":"713551fe7d916013163fb3c90994b0dae28eae01732c0dcc0a2f631213c1aba0","offset":0,"packages":[{"metas":5,"name":"alpha","object":{"key":"packages/sha256/9d52aebcffcee127e38ad5f5f80106c79fc0bb343326a0dc1e6215c62f336e6b.json.zst","size":127},"sha256":"1c6233ebba099cff056c1e5da5e97750e42164fc1a05b2ace8864ca8f6b70e32","size":291},{"metas":3,"name":"beta","object":{"key":"packages/sha256/518bf7d1a5a2759bddd3288f0399ffa8d0376b101f12e51fd2aec199f99157a5.json.zst","size":88},"sha256":"6489e055cbf24af85c3d737c615e3cec76b4c50856f097bddea0dc6ab365f766","size":155},{"metas":1,"name":"gamma","object":{"key":"packages/sha256/628544dfa59f2bc66938ed97f97a6bead75795ba0cfa1b0bbe09d5cd1c1b81a1.json.zst","size":49},"sha256":"bfd904503147b5b45dd902588e05ef7b97a234f97f53f41f008f81c8f5c7999d","size":40}],"total":3}"#);
    insta::assert_snapshot!(text("/catalogs").await, @r#"{"catalogs":[{"contentHash":"713551fe7d916013163fb3c90994b0dae28eae01732c0dcc0a2f631213c1aba0","metas":10,"name":"demo","packages":3,"publishedAt":"2026-09-21T14:13:20Z","serial":1,"sizes":{"gzip":197,"identity":531,"zstd":172},"source":{"digest":"sha256:0123","ref":"registry.example/demo:latest"}}]}"#);
    let hash = world.demo.current.content_hash;
    assert_eq!(
        text("/catalogs/demo/content-hash").await,
        format!("{hash}\n")
    );
    assert_eq!(
        [text("/healthz").await, text("/readyz").await],
        ["ok\n", "ok\n"]
    );
}

#[tokio::test]
async fn head_has_the_headers_of_get() {
    let world = World::new().await;
    let snapshot = format!("/{}", world.demo.current.snapshot.key());
    let changes = format!(
        "/catalogs/demo/changes?since={}",
        world.demo.current.content_hash
    );
    let paths = "/ /healthz /openapi.json /catalogs /catalogs.json /catalogs/none/content-hash /catalogs/demo/api/v1/metas?a=b \
                 /catalogs/demo/current.json /catalogs/demo/api/v1/all /catalogs/demo/api/v1/metas?schema=olm.bundle \
                 /catalogs/demo/packages /catalogs/demo/packages/alpha /catalogs/demo/content-hash /catalogs/demo/search.json";
    for path in paths.split(' ').chain([&*snapshot, &*changes]) {
        for coding in ["gzip", "zstd", "identity"] {
            let get = world.get(path, &[("accept-encoding", coding)]).await;
            let head = world
                .ask(Method::HEAD, path, &[("accept-encoding", coding)])
                .await;
            assert_eq!(head.head(), get.head(), "{path}");
            assert_eq!(head.bytes().len(), 0);
            assert_eq!(
                get.header("content-length"),
                get.bytes().len().to_string(),
                "{path}"
            );
        }
    }
}
