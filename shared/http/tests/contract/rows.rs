//! Status and headers of successful answers.

use http::{Method, StatusCode};

use crate::world::World;

#[tokio::test]
async fn whole_catalog_in_each_coding() {
    let world = World::new().await;
    let all = "/catalogs/demo/api/v1/all";
    insta::assert_snapshot!(world.show(all, &[]).await, @r#"
    200 OK
    accept-ranges: bytes
    cache-control: public, max-age=60, stale-while-revalidate=60, stale-if-error=86400
    content-length: 531
    content-type: application/jsonl
    etag: "cTVR_n2RYBMWP7PJCZSw2uKOrgFzLA3MCi9jEhPBq6A"
    last-modified: Mon, 21 Sep 2026 14:13:20 GMT
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
    content-length: 197
    content-type: application/jsonl
    etag: "V329zQXYq8Breto9uAPGKXEx1JEEUDrlugEIKrVlUMQ"
    last-modified: Mon, 21 Sep 2026 14:13:20 GMT
    vary: Accept-Encoding

    (197 bytes)
    "#);
    insta::assert_snapshot!(world.show("/catalogs/demo/all.json", &[("accept-encoding", "gzip, zstd")]).await, @r#"
    200 OK
    accept-ranges: bytes
    cache-control: public, max-age=60, stale-while-revalidate=60, stale-if-error=86400
    content-encoding: zstd
    content-length: 172
    content-type: application/jsonl
    etag: "0iB6dmLJxS8jh27XNFFBmYgY7LAO-rRb5mYUfCNNKBg"
    last-modified: Mon, 21 Sep 2026 14:13:20 GMT
    vary: Accept-Encoding

    (172 bytes)
    "#);
}

#[tokio::test]
async fn metas_of_a_package() {
    let world = World::new().await;
    insta::assert_snapshot!(world.show("/catalogs/demo/api/v1/metas?package=alpha", &[]).await, @r#"
    200 OK
    accept-ranges: bytes
    cache-control: public, max-age=60, stale-while-revalidate=60, stale-if-error=86400
    content-length: 179
    content-type: application/jsonl
    etag: "xgYkNTZeDHstoLd0Hzcs7CkcxB9TMM9-iZOBREMBWAc"
    last-modified: Mon, 21 Sep 2026 14:13:20 GMT
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
    last-modified: Mon, 21 Sep 2026 14:13:20 GMT
    vary: Accept-Encoding
    "#);
}

#[tokio::test]
async fn packages_and_one_package() {
    let world = World::new().await;
    insta::assert_snapshot!(world.show("/catalogs/demo/packages/beta", &[]).await, @r#"
    200 OK
    accept-ranges: bytes
    cache-control: public, max-age=60, stale-while-revalidate=60, stale-if-error=86400
    content-length: 155
    content-type: application/jsonl
    etag: "ZIngVcvySvhcPXN8YV487Ha0xQhW8Je93qDcarNl92Y"
    last-modified: Mon, 21 Sep 2026 14:13:20 GMT
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
    etag: "UYv30aWidZvd0yiPA5n_qNA3axAfEuUf0q7BmfmRV6U"
    last-modified: Mon, 21 Sep 2026 14:13:20 GMT
    vary: Accept-Encoding

    (88 bytes)
    "#);
    insta::assert_snapshot!(world.show("/catalogs/demo/packages", &[]).await, @r#"
    200 OK
    accept-ranges: bytes
    cache-control: public, max-age=60, stale-while-revalidate=60, stale-if-error=86400
    content-length: 794
    content-type: application/json
    etag: "CQ-FSK7-s0TYraGzgXn-yzVnyfIxf-nuYkTqaW2u8Po"
    last-modified: Mon, 21 Sep 2026 14:13:20 GMT

    {"contentHash":"713551fe7d916013163fb3c90994b0dae28eae01732c0dcc0a2f631213c1aba0","packages":[{"name":"alpha","sha256":"1c6233ebba099cff056c1e5da5e97750e42164fc1a05b2ace8864ca8f6b70e32","size":291,"metas":5,"object":{"key":"packages/sha256/9d52aebcffcee127e38ad5f5f80106c79fc0bb343326a0dc1e6215c62f336e6b.json.zst","size":127}},{"name":"beta","sha256":"6489e055cbf24af85c3d737c615e3cec76b4c50856f097bddea0dc6ab365f766","size":155,"metas":3,"object":{"key":"packages/sha256/518bf7d1a5a2759bddd3288f0399ffa8d0376b101f12e51fd2aec199f99157a5.json.zst","size":88}},{"name":"gamma","sha256":"bfd904503147b5b45dd902588e05ef7b97a234f97f53f41f008f81c8f5c7999d","size":40,"metas":1,"object":{"key":"packages/sha256/628544dfa59f2bc66938ed97f97a6bead75795ba0cfa1b0bbe09d5cd1c1b81a1.json.zst","size":49}}]}
    "#);
}

#[tokio::test]
async fn pointers_and_lists() {
    let world = World::new().await;
    insta::assert_snapshot!(world.show("/catalogs", &[]).await, @r#"
    200 OK
    accept-ranges: bytes
    cache-control: public, max-age=60, stale-while-revalidate=60, stale-if-error=86400
    content-length: 302
    content-type: application/json
    etag: "qYZMw7M9zB3Pl7VSy8K8MEnIeqASkf79FK6oTjorCx0"

    {"catalogs":[{"name":"demo","contentHash":"713551fe7d916013163fb3c90994b0dae28eae01732c0dcc0a2f631213c1aba0","serial":1,"publishedAt":"2026-09-21T14:13:20Z","source":{"ref":"registry.example/demo:latest","digest":"sha256:0123"},"packages":3,"metas":10,"sizes":{"identity":531,"gzip":197,"zstd":172}}]}
    "#);
    insta::assert_snapshot!(world.show("/catalogs.json", &[]).await, @r#"
    200 OK
    accept-ranges: bytes
    cache-control: public, max-age=60, stale-while-revalidate=60, stale-if-error=86400
    content-length: 72
    content-type: application/json
    etag: "UrDjVMVECWTe8Dfp5R4BUgUOqyeTqou8iv4OAA5jrh0"

    {
      "formatVersion": 3,
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
    content-length: 908
    content-type: application/json
    etag: "Y0NjLrhroJTT-L8H2GNmQKvAuSy0DrhSGMxfXQok5aY"

    {
      "formatVersion": 3,
      "serial": 1,
      "contentHash": "713551fe7d916013163fb3c90994b0dae28eae01732c0dcc0a2f631213c1aba0",
      "snapshot": {
        "key": "snapshots/sha256/47bc977b387a0369ebc8e27cd6e465e08e3972fafe2e0dae5b968a2e20622fe8.json.zst",
        "size": 1173
      },
      "all": {
        "zstd": {
          "key": "all/sha256/d2207a7662c9c52f23876ed7345141998818ecb00efab45be666147c234d2818.json.zst",
          "size": 172
        },
        "gzip": {
          "key": "all/sha256/577dbdcd05d8abc06b7ada3db803c6297131d49104503ae5ba01082ab56550c4.json.gz",
          "size": 197
        }
      },
      "image": {
        "key": "blobs/sha256/a2e273813092015f4ae72048a683e79a93584014efc5d8300b423e1c1882cd17",
        "size": 897
      },
      "size": 531,
      "packages": 3,
      "metas": 10,
      "source": {
        "ref": "registry.example/demo:latest",
        "revision": "sha256:0123"
      },
      "renderVersion": 1,
      "publishedAt": "2026-09-21T14:13:20Z",
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
    last-modified: Mon, 21 Sep 2026 14:13:20 GMT

    713551fe7d916013163fb3c90994b0dae28eae01732c0dcc0a2f631213c1aba0
    "#);
}

#[tokio::test]
async fn immutable_objects_are_cached_for_ever() {
    let world = World::new().await;
    for object in world.demo.snapshot.objects() {
        let answer = world.get(&format!("/{}", object.key()), &[]).await;
        assert_eq!(answer.status, StatusCode::OK, "{object:?}");
        assert_eq!(
            answer.header("cache-control"),
            "public, max-age=31536000, immutable",
            "{object:?}"
        );
    }
    let gzip = world.demo.current.all.gzip.key();
    let shard = world.demo.snapshot.packages[0].stored.sha256;
    insta::assert_snapshot!(world.show(&format!("/{gzip}"), &[]).await, @r#"
    200 OK
    accept-ranges: bytes
    cache-control: public, max-age=31536000, immutable
    content-encoding: gzip
    content-length: 197
    content-type: application/jsonl
    etag: "V329zQXYq8Breto9uAPGKXEx1JEEUDrlugEIKrVlUMQ"

    (197 bytes)
    "#);
    insta::assert_snapshot!(world.show(&format!("/packages/sha256/{shard}.json.zst"), &[]).await, @r#"
    200 OK
    accept-ranges: bytes
    cache-control: public, max-age=31536000, immutable
    content-encoding: zstd
    content-length: 127
    content-type: application/jsonl
    etag: "nVKuvP_O4SfjitX1-AEGx5_AuzQzJqDcHmIVxi8zbms"

    (127 bytes)
    "#);
}

#[tokio::test]
async fn probes_are_never_cached() {
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
async fn known_tags_and_dates_are_not_modified() {
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
    last-modified: Mon, 21 Sep 2026 14:13:20 GMT
    vary: Accept-Encoding
    "#);
    let date = "Mon, 21 Sep 2026 14:14:20 GMT";
    insta::assert_snapshot!(world.show("/catalogs/demo/content-hash", &[("if-modified-since", date)]).await, @r#"
    304 Not Modified
    cache-control: public, max-age=60, stale-while-revalidate=60, stale-if-error=86400
    etag: "tlCde9FmU5h4eL9tyAkOkbyi9SQxa0aeuDDN7kSl0_g"
    last-modified: Mon, 21 Sep 2026 14:13:20 GMT
    "#);
}

/// Three reads: the pointer for each request, and the Snapshot once, for the tag of a package.
#[tokio::test]
async fn not_modified_reads_no_body() {
    let world = World::new().await;
    world.store.take_log();
    let tag = world.demo.snapshot.packages[0].lines.sha256.to_entity_tag();
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
    let snapshot = format!("/{}", world.demo.current.snapshot.key());
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
