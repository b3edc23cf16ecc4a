//! Status and headers of what succeeds.

use http::{Method, StatusCode};

use crate::world::World;

#[tokio::test]
async fn the_whole_catalog() {
    let world = World::new().await;
    let all = "/catalogs/demo/api/v1/all";
    insta::assert_snapshot!(world.show(all, &[]).await, @r#"
    200 OK
    accept-ranges: bytes
    cache-control: public, max-age=60, stale-while-revalidate=60, stale-if-error=86400
    content-length: 531
    content-type: application/jsonl
    etag: "cTVR_n2RYBMWP7PJCZSw2uKOrgFzLA3MCi9jEhPBq6A"
    last-modified: Mon, 21 Sep 2026 14:14:20 GMT
    vary: Accept-Encoding

    {"schema":"olm.note","text":"of no package"}
    {"defaultChannel":"stable","name":"alpha","schema":"olm.package"}
    {"name":"stable","package":"alpha","schema":"olm.channel"}
    {"name":"alpha.v1","package":"alpha","schema":"olm.bundle"}
    {"package":"alpha","text":"without a schema"}
    {"name":"alpha.v2","package":"alpha","schema":"olm.bundle"}
    {"name":"beta","schema":"olm.package"}
    {"name":"stable","package":"beta","schema":"olm.channel"}
    {"name":"beta.v1","package":"beta","schema":"olm.bundle"}
    {"name":"gamma","schema":"olm.package"}
    "#);
    insta::assert_snapshot!(world.show(all, &[("accept-encoding", "gzip")]).await, @r#"
    200 OK
    accept-ranges: bytes
    cache-control: public, max-age=60, stale-while-revalidate=60, stale-if-error=86400
    content-encoding: gzip
    content-length: 175
    content-type: application/jsonl
    etag: "cTVR_n2RYBMWP7PJCZSw2uKOrgFzLA3MCi9jEhPBq6A-gzip"
    last-modified: Mon, 21 Sep 2026 14:14:20 GMT
    vary: Accept-Encoding

    (175 bytes)
    "#);
    insta::assert_snapshot!(world.show("/catalogs/demo/all.json", &[("accept-encoding", "gzip, zstd")]).await, @r#"
    200 OK
    accept-ranges: bytes
    cache-control: public, max-age=60, stale-while-revalidate=60, stale-if-error=86400
    content-encoding: zstd
    content-length: 167
    content-type: application/jsonl
    etag: "cTVR_n2RYBMWP7PJCZSw2uKOrgFzLA3MCi9jEhPBq6A-zstd"
    last-modified: Mon, 21 Sep 2026 14:14:20 GMT
    vary: Accept-Encoding

    (167 bytes)
    "#);
}

#[tokio::test]
async fn metas() {
    let world = World::new().await;
    insta::assert_snapshot!(world.show("/catalogs/demo/api/v1/metas?package=alpha", &[]).await, @r#"
    200 OK
    accept-ranges: bytes
    cache-control: public, max-age=60, stale-while-revalidate=60, stale-if-error=86400
    content-length: 179
    content-type: application/jsonl
    etag: "xgYkNTZeDHstoLd0Hzcs7CkcxB9TMM9-iZOBREMBWAc"
    last-modified: Mon, 21 Sep 2026 14:14:20 GMT
    vary: Accept-Encoding

    {"name":"stable","package":"alpha","schema":"olm.channel"}
    {"name":"alpha.v1","package":"alpha","schema":"olm.bundle"}
    {"name":"alpha.v2","package":"alpha","schema":"olm.bundle"}
    "#);
    insta::assert_snapshot!(world.show("/catalogs/demo/api/v1/metas?package=none", &[("accept-encoding", "gzip")]).await, @r#"
    200 OK
    accept-ranges: bytes
    cache-control: public, max-age=60, stale-while-revalidate=60, stale-if-error=86400
    content-length: 0
    content-type: application/jsonl
    etag: "H4ZFoZ9SQDvnYGxXmbAAJ-ukhrsufaL_Fj6OyGo7Tgo"
    last-modified: Mon, 21 Sep 2026 14:14:20 GMT
    vary: Accept-Encoding
    "#);
}

#[tokio::test]
async fn packages() {
    let world = World::new().await;
    insta::assert_snapshot!(world.show("/catalogs/demo/packages/beta", &[]).await, @r#"
    200 OK
    accept-ranges: bytes
    cache-control: public, max-age=60, stale-while-revalidate=60, stale-if-error=86400
    content-length: 155
    content-type: application/jsonl
    etag: "ZIngVcvySvhcPXN8YV487Ha0xQhW8Je93qDcarNl92Y"
    last-modified: Mon, 21 Sep 2026 14:14:20 GMT
    vary: Accept-Encoding

    {"name":"beta","schema":"olm.package"}
    {"name":"stable","package":"beta","schema":"olm.channel"}
    {"name":"beta.v1","package":"beta","schema":"olm.bundle"}
    "#);
    insta::assert_snapshot!(world.show("/catalogs/demo/packages/beta", &[("accept-encoding", "zstd")]).await, @r#"
    200 OK
    accept-ranges: bytes
    cache-control: public, max-age=60, stale-while-revalidate=60, stale-if-error=86400
    content-encoding: zstd
    content-length: 88
    content-type: application/jsonl
    etag: "ZIngVcvySvhcPXN8YV487Ha0xQhW8Je93qDcarNl92Y-zstd"
    last-modified: Mon, 21 Sep 2026 14:14:20 GMT
    vary: Accept-Encoding

    (88 bytes)
    "#);
    insta::assert_snapshot!(world.show("/catalogs/demo/packages", &[]).await, @r#"
    200 OK
    accept-ranges: bytes
    cache-control: public, max-age=60, stale-while-revalidate=60, stale-if-error=86400
    content-length: 473
    content-type: application/json
    etag: "jvFjOoYeXqqvxlW0Bz7jRnxQxvPmdL76Asau0zsRhgs"
    last-modified: Mon, 21 Sep 2026 14:14:20 GMT

    {"contentHash":"713551fe7d916013163fb3c90994b0dae28eae01732c0dcc0a2f631213c1aba0","packages":[{"name":"alpha","sha256":"1c6233ebba099cff056c1e5da5e97750e42164fc1a05b2ace8864ca8f6b70e32","size":291,"stored":127,"metas":5},{"name":"beta","sha256":"6489e055cbf24af85c3d737c615e3cec76b4c50856f097bddea0dc6ab365f766","size":155,"stored":88,"metas":3},{"name":"gamma","sha256":"bfd904503147b5b45dd902588e05ef7b97a234f97f53f41f008f81c8f5c7999d","size":40,"stored":49,"metas":1}]}
    "#);
}

#[tokio::test]
async fn pointers() {
    let world = World::new().await;
    insta::assert_snapshot!(world.show("/catalogs", &[]).await, @r#"
    200 OK
    accept-ranges: bytes
    cache-control: public, max-age=60, stale-while-revalidate=60, stale-if-error=86400
    content-length: 302
    content-type: application/json
    etag: "4cillfeQS4JDYMLlGCxSl6J7CyMmMTBg5hH5WhXwmv8"

    {"catalogs":[{"name":"demo","contentHash":"713551fe7d916013163fb3c90994b0dae28eae01732c0dcc0a2f631213c1aba0","serial":1,"publishedAt":"2026-09-21T14:14:20Z","source":{"ref":"registry.example/demo:latest","digest":"sha256:0123"},"packages":3,"metas":10,"sizes":{"identity":531,"gzip":175,"zstd":167}}]}
    "#);
    insta::assert_snapshot!(world.show("/catalogs.json", &[]).await, @r#"
    200 OK
    accept-ranges: bytes
    cache-control: public, max-age=60, stale-while-revalidate=60, stale-if-error=86400
    content-length: 72
    content-type: application/json
    etag: "OwKnxmaYBrTzUBcAIveVR0WZ6I5xtI7Qu4wQ3-Xv0do"

    {
      "formatVersion": 1,
      "serial": 0,
      "catalogs": [
        "demo"
      ]
    }
    "#);
    insta::assert_snapshot!(world.show("/catalogs/demo/current.json", &[]).await, @r#"
    200 OK
    accept-ranges: bytes
    cache-control: public, max-age=60, stale-while-revalidate=60, stale-if-error=86400
    content-length: 505
    content-type: application/json
    etag: "NDNNyntopOKWKAosqrlhlGs5T5us34Bl4KF6hvs23hA"

    {
      "formatVersion": 1,
      "serial": 1,
      "contentHash": "713551fe7d916013163fb3c90994b0dae28eae01732c0dcc0a2f631213c1aba0",
      "snapshot": {
        "key": "catalogs/demo/713551fe7d916013163fb3c90994b0dae28eae01732c0dcc0a2f631213c1aba0/snapshot.json",
        "sha256": "7acb43c0014a17c8a46ba9acf5ce8bd54add9d9891123a7617e9f2bf1b415cb7"
      },
      "source": {
        "ref": "registry.example/demo:latest",
        "digest": "sha256:0123"
      },
      "renderVersion": 1,
      "publishedAt": "2026-09-21T14:14:20Z",
      "previous": []
    }
    "#);
    insta::assert_snapshot!(world.show("/catalogs/demo/content-hash", &[]).await, @r#"
    200 OK
    accept-ranges: bytes
    cache-control: public, max-age=60, stale-while-revalidate=60, stale-if-error=86400
    content-length: 65
    content-type: text/plain; charset=utf-8
    etag: "tlCde9FmU5h4eL9tyAkOkbyi9SQxa0aeuDDN7kSl0_g"
    last-modified: Mon, 21 Sep 2026 14:14:20 GMT

    713551fe7d916013163fb3c90994b0dae28eae01732c0dcc0a2f631213c1aba0
    "#);
}

#[tokio::test]
async fn immutable_objects() {
    let world = World::new().await;
    let hash = world.demo.current.content_hash;
    let shard = world.demo.snapshot.packages[0].sha256;
    for file in ["snapshot.json", "index.json.zst", "all.json.gz", "all.json.zst"] {
        let answer = world.get(&format!("/catalogs/demo/{hash}/{file}"), &[]).await;
        assert_eq!(answer.status, StatusCode::OK, "{file}");
        assert_eq!(
            answer.header("cache-control"),
            "public, max-age=31536000, immutable",
            "{file}"
        );
    }
    insta::assert_snapshot!(world.show(&format!("/catalogs/demo/{hash}/all.json.gz"), &[]).await, @r#"
    200 OK
    accept-ranges: bytes
    cache-control: public, max-age=31536000, immutable
    content-encoding: gzip
    content-length: 175
    content-type: application/jsonl
    etag: "cTVR_n2RYBMWP7PJCZSw2uKOrgFzLA3MCi9jEhPBq6A-gzip"

    (175 bytes)
    "#);
    insta::assert_snapshot!(world.show(&format!("/packages/sha256/{shard}.json.zst"), &[]).await, @r#"
    200 OK
    accept-ranges: bytes
    cache-control: public, max-age=31536000, immutable
    content-encoding: zstd
    content-length: 127
    content-type: application/jsonl
    etag: "HGIz67oJnP8FbB5dpel3UOQhZPwaBbKs6IZMqPa3DjI-zstd"

    (127 bytes)
    "#);
}

#[tokio::test]
async fn probes() {
    let world = World::new().await;
    insta::assert_snapshot!(world.show("/healthz", &[]).await, @r#"
    200 OK
    accept-ranges: bytes
    cache-control: no-store
    content-length: 3
    content-type: text/plain; charset=utf-8
    etag: "3FG4yWwtdF3zvVWQ2ZAjCkgv0kcSNZlUjgYy_b-X_CI"

    ok
    "#);
    insta::assert_snapshot!(world.show("/readyz", &[]).await, @r#"
    200 OK
    accept-ranges: bytes
    cache-control: no-store
    content-length: 3
    content-type: text/plain; charset=utf-8
    etag: "3FG4yWwtdF3zvVWQ2ZAjCkgv0kcSNZlUjgYy_b-X_CI"

    ok
    "#);
}

#[tokio::test]
async fn not_modified() {
    let world = World::new().await;
    let all = "/catalogs/demo/api/v1/all";
    for coding in ["identity", "gzip", "zstd"] {
        let etag = world
            .get(all, &[("accept-encoding", coding)])
            .await
            .header("etag")
            .to_owned();
        let weak = format!("\"a,b\", W/{etag}");
        let answer = world
            .get(all, &[("accept-encoding", coding), ("if-none-match", &weak)])
            .await;
        assert_eq!(answer.status, StatusCode::NOT_MODIFIED);
        assert_eq!(answer.header("etag"), etag);
        let other = world
            .get(all, &[("accept-encoding", "deflate"), ("if-none-match", &etag)])
            .await;
        assert_eq!(other.status == StatusCode::OK, coding != "identity");
    }
    insta::assert_snapshot!(world.show(all, &[("if-none-match", "*")]).await, @r#"
    304 Not Modified
    cache-control: public, max-age=60, stale-while-revalidate=60, stale-if-error=86400
    etag: "cTVR_n2RYBMWP7PJCZSw2uKOrgFzLA3MCi9jEhPBq6A"
    last-modified: Mon, 21 Sep 2026 14:14:20 GMT
    vary: Accept-Encoding
    "#);
    let date = "Mon, 21 Sep 2026 14:14:20 GMT";
    insta::assert_snapshot!(world.show("/catalogs/demo/content-hash", &[("if-modified-since", date)]).await, @r#"
    304 Not Modified
    cache-control: public, max-age=60, stale-while-revalidate=60, stale-if-error=86400
    etag: "tlCde9FmU5h4eL9tyAkOkbyi9SQxa0aeuDDN7kSl0_g"
    last-modified: Mon, 21 Sep 2026 14:14:20 GMT
    "#);
}

/// A client that knows a package's tag is answered without a look at its shard.
#[tokio::test]
async fn not_modified_reads_no_body() {
    let world = World::new().await;
    let tag = format!("\"{}\"", world.demo.snapshot.packages[0].sha256.to_base64url());
    for (path, tag) in [
        ("/catalogs/demo/packages/alpha", tag.as_str()),
        ("/catalogs/demo/all.json", "*"),
    ] {
        let answer = world.get(path, &[("if-none-match", tag)]).await;
        assert_eq!(answer.status, StatusCode::NOT_MODIFIED);
    }
    let keys: Vec<String> = world
        .store
        .log()
        .into_iter()
        .map(|call| format!("{:?}", call.action))
        .collect();
    assert_eq!(keys.iter().filter(|action| *action == "Get").count(), 3, "{keys:?}");
}

#[tokio::test]
async fn head_has_the_headers_of_get() {
    let world = World::new().await;
    let hash = world.demo.current.content_hash;
    let snapshot = format!("/catalogs/demo/{hash}/snapshot.json");
    for path in [
        "/catalogs",
        "/catalogs.json",
        "/catalogs/demo/current.json",
        "/catalogs/demo/api/v1/all",
        "/catalogs/demo/api/v1/metas?schema=olm.bundle",
        "/catalogs/demo/packages",
        "/catalogs/demo/packages/alpha",
        "/catalogs/demo/content-hash",
        "/catalogs/none/content-hash",
        "/catalogs/demo/api/v1/metas?a=b",
        "/openapi.json",
        "/healthz",
        &snapshot,
    ] {
        for coding in ["gzip", "zstd", "identity"] {
            let get = world.get(path, &[("accept-encoding", coding)]).await;
            let head = world.ask(Method::HEAD, path, &[("accept-encoding", coding)]).await;
            assert_eq!(head.head(), get.head(), "{path}");
            assert_eq!(head.bytes().len(), 0);
            assert_eq!(get.header("content-length"), get.bytes().len().to_string(), "{path}");
        }
    }
}
