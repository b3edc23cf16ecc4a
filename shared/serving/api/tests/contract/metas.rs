//! catalogd's `metas`, compared with a scan of all lines.

use crate::{fixture::Publication, world::World};

/// Returns the answer of catalogd: the lines that match all filters, in order.
fn expected(all: &[u8], schema: &str, package: &str, name: &str) -> String {
    let text = std::str::from_utf8(all).unwrap();
    if schema.is_empty() && package.is_empty() && name.is_empty() {
        return text.to_owned();
    }
    let matches = |line: &&str| {
        let meta: serde_json::Value = serde_json::from_str(line).unwrap();
        let is = |field: &str, wanted: &str| wanted.is_empty() || meta[field] == wanted;
        meta["schema"].is_string()
            && is("schema", schema)
            && is("package", package)
            && is("name", name)
    };
    text.split_inclusive('\n').filter(matches).collect()
}

async fn agrees(world: &World, schema: &str, package: &str, name: &str) {
    let path = format!("/catalogs/demo/api/v1/metas?schema={schema}&package={package}&name={name}");
    let answer = world.get(&path, &[]).await;
    let lines = expected(&world.demo.all, schema, package, name);
    assert_eq!(answer.text(), lines, "{path}");
    assert_eq!(
        answer.header("content-length"),
        answer.bytes().len().to_string()
    );
    let coded = world
        .get(&path, &[("accept-encoding", "gzip, identity;q=0")])
        .await;
    assert_eq!(coded.decoded(), answer.bytes());
    assert_eq!(coded.header("content-encoding"), "gzip");
    assert_ne!(coded.header("etag"), answer.header("etag"));
}

#[tokio::test]
async fn metas_agrees_with_a_scan_for_all_filters() {
    for cache_bytes in [0, 64 << 20] {
        let world = World::new().await.caching(cache_bytes);
        for schema in [
            "",
            "olm.package",
            "olm.channel",
            "olm.bundle",
            "olm.note",
            "none",
        ] {
            for package in ["", "alpha", "beta", "gamma", "none"] {
                for name in ["", "alpha", "stable", "beta.v1", "none"] {
                    agrees(&world, schema, package, name).await;
                }
            }
        }
    }
}

/// So many packages that the whole is read instead of their shards.
#[tokio::test]
async fn metas_that_hit_every_package_agree_with_a_scan() {
    let package = |n| {
        format!(
            "{{\"name\":\"p{n:03}\",\"schema\":\"olm.package\"}}\n{{\"name\":\"b\",\"package\":\"p{n:03}\",\"schema\":\"olm.bundle\"}}\n"
        )
    };
    let lines: String = (0..100).map(package).collect();
    for cache_bytes in [0, 64 << 20] {
        let world = World::of(Publication::default(), &lines)
            .await
            .caching(cache_bytes);
        agrees(&world, "olm.bundle", "", "").await;
        agrees(&world, "olm.package", "", "").await;
        agrees(&world, "", "", "b").await;
        agrees(&world, "", "p050", "").await;
    }
}

#[tokio::test]
async fn tag_of_metas_depends_on_the_query() {
    let world = World::new().await;
    let tag = async |query: &str| {
        let path = format!("/catalogs/demo/api/v1/metas?{query}");
        world.get(&path, &[]).await.header("etag").to_owned()
    };
    assert_eq!(
        tag("schema=a&name=b").await,
        tag("name=b&schema=a&package=").await
    );
    assert_ne!(tag("schema=a&name=b").await, tag("schema=ab").await);
    assert_ne!(tag("schema=a").await, tag("package=a").await);
    let whole = world.get("/catalogs/demo/api/v1/all", &[]).await;
    assert_eq!(tag("").await, whole.header("etag"));
}
