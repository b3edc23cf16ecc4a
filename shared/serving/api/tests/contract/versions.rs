//! Icons, and versions with the days on which the mirror first saw them.

use http::StatusCode;
use model::{Facts, SeenPackage};
use serde_json::{Value, json};

use crate::fixture::Publication;
use crate::world::World;

/// The SVG image `<svg><script/></svg>`, and the start of a PNG image of one pixel.
const SVG: &str = "PHN2Zz48c2NyaXB0Lz48L3N2Zz4=";
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB";

fn lines() -> String {
    let package = |name: &str, icon: Value| json!({"schema": "olm.package", "name": name, "defaultChannel": "stable", "icon": icon});
    let bundle = |name: &str, version: &str| {
        let property =
            json!({"type": "olm.package", "value": {"packageName": "svg", "version": version}});
        json!({"schema": "olm.bundle", "package": "svg", "name": name, "image": "q.io/a/b:v1", "properties": [property]})
    };
    let entries = json!([{"name": "svg.v2", "replaces": "svg.v1"}, {"name": "svg.v1"}]);
    let lines = [
        package("html", json!({"base64data": SVG, "mediatype": "text/html"})),
        package("none", Value::Null),
        package("png", json!({"base64data": PNG, "mediatype": "image/png"})),
        package(
            "svg",
            json!({"base64data": SVG, "mediatype": "image/svg+xml"}),
        ),
        json!({"schema": "olm.channel", "package": "svg", "name": "a b", "entries": entries}),
        bundle("svg.v1", "1.0.0"),
        bundle("svg.v2", "2.0.0"),
    ];
    lines.map(|line| format!("{line}\n")).concat()
}

async fn world() -> World {
    let mut days = Facts::new(SeenPackage::VERSION);
    let start = SeenPackage {
        since: "2026-11-01".to_owned(),
        ..SeenPackage::default()
    };
    days.packages.insert(String::new(), start);
    let bundles = [("svg.v1", "2026-11-01"), ("svg.v2", "2026-11-09")];
    let bundles = bundles.map(|(name, day)| (name.to_owned(), day.to_owned()));
    let seen = SeenPackage {
        bundles: bundles.into(),
        ..SeenPackage::default()
    };
    days.packages.insert("svg".to_owned(), seen);
    let publication = Publication {
        days: Some(days),
        ..Publication::default()
    };
    World::of(publication, &lines()).await
}

#[tokio::test]
async fn icon_is_answered_with_its_type_and_a_policy_that_runs_nothing() {
    let world = world().await;
    for (path, media) in [
        ("packages/svg/icon", "image/svg+xml"),
        ("icons/svg.svg", "image/svg+xml"),
        ("packages/png/icon", "image/png"),
        ("icons/png.png", "image/png"),
    ] {
        let path = format!("/catalogs/demo/{path}");
        let icon = world.get(&path, &[]).await;
        assert_eq!(icon.status, StatusCode::OK, "{path}");
        for (field, expected) in [
            ("content-type", media),
            ("x-content-type-options", "nosniff"),
            (
                "content-security-policy",
                "default-src 'none'; style-src 'unsafe-inline'; sandbox",
            ),
        ] {
            assert_eq!(icon.header(field), expected, "{path}");
        }
        let known = [("if-none-match", icon.header("etag"))];
        let again = world.get(&path, &known).await;
        assert_eq!(again.status, StatusCode::NOT_MODIFIED, "{path}");
    }
}

#[tokio::test]
async fn icon_that_is_not_shown_is_404() {
    let world = world().await;
    for path in [
        "packages/html/icon",
        "packages/none/icon",
        "packages/other/icon",
        "icons/svg.png",
        "icons/svg",
        "icons/none.svg",
    ] {
        let path = format!("/catalogs/demo/{path}");
        assert_eq!(world.status(&path).await, StatusCode::NOT_FOUND, "{path}");
    }
}

async fn document(world: &World, path: &str) -> Value {
    let answer = world.get(&format!("/catalogs/demo/{path}"), &[]).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    serde_json::from_slice(answer.bytes()).unwrap()
}

#[tokio::test]
async fn versions_are_those_of_a_channel_with_their_days() {
    let world = world().await;
    let release = |bundle: &str, version: &str, day: &str| {
        json!({"version": version, "isDeprecated": false, "bundle": bundle, "image": "q.io/a/b:v1",
            "releaseTimestamp": format!("{day}T00:00:00.000Z")})
    };
    let releases = json!([
        release("svg.v2", "2.0.0", "2026-11-09"),
        release("svg.v1", "1.0.0", "2026-11-01"),
    ]);
    let channel = json!({"releases": releases, "tags": {"head": "2.0.0"}});
    let mut alone = channel.clone();
    alone["firstSeenSince"] = json!("2026-11-01");
    for path in [
        "packages/svg/channels/a%20b/versions.json",
        "versions/svg/a%20b.json",
    ] {
        assert_eq!(document(&world, path).await, alone, "{path}");
    }
    let whole = json!({"defaultChannel": "stable", "firstSeenSince": "2026-11-01", "channels": {"a b": channel}});
    for path in ["packages/svg/versions.json", "versions/svg.json"] {
        assert_eq!(document(&world, path).await, whole, "{path}");
    }
    let days = json!({"since": "2026-11-01", "packages": {"svg": {"since": "2026-11-01", "later": {"svg.v2": "2026-11-09"}}}});
    assert_eq!(document(&world, "days.json").await, days);
    for path in [
        "packages/svg/channels/none/versions.json",
        "packages/other/versions.json",
        "versions/svg",
        "versions/svg/a%20b",
    ] {
        let path = format!("/catalogs/demo/{path}");
        assert_eq!(world.status(&path).await, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn state_from_before_days_were_recorded_has_versions_without_days() {
    let world = World::of(Publication::default(), &lines()).await;
    assert_eq!(
        world.status("/catalogs/demo/days.json").await,
        StatusCode::NOT_FOUND
    );
    let found = document(&world, "versions/svg/a%20b.json").await;
    assert_eq!(found["releases"][0]["version"], "2.0.0");
    assert!(found["releases"][0].get("releaseTimestamp").is_none());
    assert_eq!(found["firstSeenSince"], "");
}
