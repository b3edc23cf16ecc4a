//! Parts of representations.

use catalog_mirror_http::HttpSettings;
use http::{Method, StatusCode};

use crate::{
    fixture::{LINES, Publication},
    world::World,
};

const ALL: &str = "/catalogs/demo/api/v1/all";

/// From memory, from a stored object, and out of a decompressed stream.
async fn worlds() -> Vec<World> {
    let mut worlds = Vec::new();
    for (cache_bytes, identity) in [(64 << 20, false), (0, true), (0, false)] {
        let settings = HttpSettings {
            cache_bytes,
            ..HttpSettings::default()
        };
        let publication = Publication {
            identity,
            ..Publication::default()
        };
        worlds.push(World::with(settings, publication, LINES).await);
    }
    worlds
}

#[tokio::test]
async fn single_ranges_are_answered() {
    for world in worlds().await {
        let all = &world.demo.all;
        for (range, expected) in [
            ("bytes=0-0", 0..1),
            ("bytes=10-19", 10..20),
            ("bytes=100-", 100..all.len()),
            ("bytes=-7", all.len() - 7..all.len()),
        ] {
            let answer = world.get(ALL, &[("range", range)]).await;
            assert_eq!(answer.status, StatusCode::PARTIAL_CONTENT);
            assert_eq!(answer.bytes(), &all[expected.clone()], "{range}");
            let content_range = format!("bytes {}-{}/{}", expected.start, expected.end - 1, all.len());
            assert_eq!(answer.header("content-range"), content_range);
            assert_eq!(answer.header("content-length"), expected.len().to_string());
        }
    }
}

#[tokio::test]
async fn partial_answers_have_the_headers_of_the_whole() {
    let world = World::new().await;
    insta::assert_snapshot!(world.show(ALL, &[("range", "bytes=0-43")]).await, @r#"
    206 Partial Content
    accept-ranges: bytes
    cache-control: public, max-age=60, stale-while-revalidate=60, stale-if-error=86400
    content-length: 44
    content-range: bytes 0-43/531
    content-type: application/jsonl
    etag: "cTVR_n2RYBMWP7PJCZSw2uKOrgFzLA3MCi9jEhPBq6A"
    last-modified: Mon, 21 Sep 2026 14:13:20 GMT
    vary: Accept-Encoding

    {"schema":"olm.note","text":"of no package"}
    "#);
    let path = "/catalogs/demo/content-hash";
    let several = world.show(path, &[("range", "bytes=0-3, -2")]).await;
    insta::assert_snapshot!(several.replace('\r', ""), @r#"
    206 Partial Content
    accept-ranges: bytes
    cache-control: public, max-age=60, stale-while-revalidate=60, stale-if-error=86400
    content-length: 301
    content-type: multipart/byteranges; boundary=tlCde9FmU5h4eL9tyAkOkbyi9SQxa0aeuDDN7kSl0_g
    etag: "tlCde9FmU5h4eL9tyAkOkbyi9SQxa0aeuDDN7kSl0_g"
    last-modified: Mon, 21 Sep 2026 14:13:20 GMT


    --tlCde9FmU5h4eL9tyAkOkbyi9SQxa0aeuDDN7kSl0_g
    Content-Type: text/plain; charset=utf-8
    Content-Range: bytes 0-3/65

    7135
    --tlCde9FmU5h4eL9tyAkOkbyi9SQxa0aeuDDN7kSl0_g
    Content-Type: text/plain; charset=utf-8
    Content-Range: bytes 63-64/65

    0

    --tlCde9FmU5h4eL9tyAkOkbyi9SQxa0aeuDDN7kSl0_g--
    "#);
}

#[tokio::test]
async fn several_ranges_have_the_announced_length() {
    for world in worlds().await {
        let answer = world.get(ALL, &[("range", "bytes=0-9,50-59")]).await;
        assert_eq!(answer.status, StatusCode::PARTIAL_CONTENT);
        assert_eq!(answer.header("content-length"), answer.bytes().len().to_string());
        let text = answer.text();
        let parts = [&world.demo.all[..10], &world.demo.all[50..60]];
        assert!(
            parts
                .iter()
                .all(|part| text.contains(std::str::from_utf8(part).unwrap())),
            "{text}"
        );
    }
}

#[tokio::test]
async fn each_coding_has_ranges_of_its_own() {
    let world = World::new().await;
    let whole = world.get(ALL, &[("accept-encoding", "gzip")]).await;
    let part = world
        .get(ALL, &[("accept-encoding", "gzip"), ("range", "bytes=5-")])
        .await;
    assert_eq!(part.status, StatusCode::PARTIAL_CONTENT);
    assert_eq!(part.bytes(), &whole.bytes()[5..]);
    assert_eq!(part.header("etag"), whole.header("etag"));
}

#[tokio::test]
async fn range_of_another_representation_gets_all_bytes() {
    let world = World::new().await;
    let tag = world.get(ALL, &[]).await.header("etag").to_owned();
    let date = "Mon, 21 Sep 2026 14:14:20 GMT";
    let old = "Mon, 21 Sep 2026 14:14:19 GMT";
    let gzip = format!("{}-gzip\"", tag.trim_end_matches('"'));
    for (if_range, status) in [
        (tag.as_str(), StatusCode::PARTIAL_CONTENT),
        (date, StatusCode::OK),
        (old, StatusCode::OK),
        (gzip.as_str(), StatusCode::OK),
        ("\"other\"", StatusCode::OK),
    ] {
        let answer = world.get(ALL, &[("range", "bytes=0-1"), ("if-range", if_range)]).await;
        assert_eq!(answer.status, status, "{if_range}");
    }
    let malformed = world.get(ALL, &[("range", "bytes=9-1")]).await;
    assert_eq!(malformed.status, StatusCode::OK);
    let head = world.ask(Method::HEAD, ALL, &[("range", "bytes=0-1")]).await;
    assert_eq!(head.status, StatusCode::OK);
}
