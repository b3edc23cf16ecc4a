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
}
