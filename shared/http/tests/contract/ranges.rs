//! Headers of partial answers. The table in conditions.rs says which requests get one.

use crate::world::World;

const ALL: &str = "/catalogs/demo/api/v1/all";

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
