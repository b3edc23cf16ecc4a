//! The answers that API.md shows: one of each route, as the router gives it.
//!
//! `INSTA_UPDATE=always cargo test -p api --test contract` writes them anew.

use std::fmt::Write;
use std::{env, fs};

use http::StatusCode;
use model::{Document, Facts, Key, Outcome, SeenPackage, Status};
use serde_json::{Value, json};
use storekit::conformance::put;

use crate::fixture::{Publication, publish};
use crate::openapi::CONTRACT;
use crate::world::World;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/API.md");

/// Lines before and after the answers in the page.
const BEGIN: &str = "<!-- Answers: made by a test -->\n";
const END: &str = "<!-- End of the answers -->\n";

/// The SVG image `<svg/>`.
const SVG: &str = "PHN2Zy8+";

/// Returns the lines of the package `etcd` with so many versions.
fn lines(versions: usize) -> String {
    let mut entries = Vec::new();
    let mut bundles = Vec::new();
    for at in 1..=versions {
        let name = format!("etcd.v1.{at}.0");
        let mut entry = json!({"name": name});
        if at > 1 {
            entry["replaces"] = format!("etcd.v1.{}.0", at - 1).into();
        }
        entries.push(entry);
        let property = json!({"type": "olm.package", "value": {"packageName": "etcd", "version": format!("1.{at}.0")}});
        bundles.push(json!({"schema": "olm.bundle", "package": "etcd", "name": name, "image": format!("quay.io/team/etcd-bundle:v1.{at}.0"),
            "properties": [property]}));
    }
    let icon = json!({"base64data": SVG, "mediatype": "image/svg+xml"});
    let mut all = vec![
        json!({"schema": "olm.package", "name": "etcd", "defaultChannel": "stable", "icon": icon}),
        json!({"schema": "olm.channel", "package": "etcd", "name": "stable", "entries": entries}),
    ];
    all.extend(bundles);
    all.iter().map(|line| format!("{line}\n")).collect()
}

/// Returns a world whose second publication has one version more.
async fn world() -> World {
    let mut days = Facts::new(SeenPackage::VERSION);
    let since = |day: &str| SeenPackage {
        since: day.to_owned(),
        ..SeenPackage::default()
    };
    days.packages.insert(String::new(), since("2026-11-01"));
    let bundles = [("etcd.v1.1.0", "2026-11-01"), ("etcd.v1.2.0", "2026-11-09")];
    let seen = SeenPackage {
        bundles: bundles.map(|(name, day)| (name.into(), day.into())).into(),
        ..SeenPackage::default()
    };
    days.packages.insert("etcd".to_owned(), seen);
    let world = World::of(Publication::default(), &lines(1)).await;
    let publication = Publication {
        days: Some(days),
        ..Publication::default()
    };
    let second = publish(&world.store, publication, &lines(2)).await;
    let source = "registry.example/demo:latest".to_owned();
    let status = Status::new(source, Outcome::Published, second.current.published_at);
    let key = Key::Status("demo".parse().unwrap());
    put(&world.store, &key, status.to_bytes()).await;
    World {
        demo: second,
        ..world
    }
    .caching(1 << 20)
}

/// Returns the request that is shown for a route.
fn example(route: &str, world: &World) -> String {
    let file = api::page_files()[0].trim_start_matches('/');
    let image = world
        .demo
        .current
        .image
        .as_ref()
        .expect("there is an image");
    let index = format!("sha256:{}", image.digest.sha256);
    let package = world.demo.snapshot.packages[0].stored.sha256;
    let path = match route {
        "/page/{file}" => format!("/{file}"),
        "/catalogs/{catalog}/changes" => format!("{route}?since={}", first_hash(world)),
        "/catalogs/{catalog}/api/v1/metas" => format!("{route}?schema=olm.channel"),
        "/catalogs/{catalog}/search" => format!("{route}?q=etcd"),
        "/catalogs/{catalog}/icons/{file}" => route.replace("{file}", "etcd.svg"),
        "/catalogs/{catalog}/versions/{file}" => route.replace("{file}", "etcd.json"),
        "/catalogs/{catalog}/versions/{package}/{file}" => route.replace("{file}", "stable.json"),
        "/{kind}/sha256/{object}" => format!("/packages/sha256/{package}.json.zst"),
        "/v2/{catalog}/referrers/{digest}" | "/v2/{catalog}/blobs/{digest}" => {
            route.replace("{digest}", &index)
        }
        _ => route.to_owned(),
    };
    path.replace("{catalog}", "demo")
        .replace("{package}", "etcd")
        .replace("{channel}", "stable")
        .replace("{reference}", "latest")
}

fn first_hash(world: &World) -> String {
    world.demo.current.previous[0].content_hash.to_string()
}

/// Characters of a text in an answer that are shown.
const TEXT_CHARS: usize = 72;

/// Returns a text without its end, if it is long.
fn cut(text: &str) -> String {
    match text.char_indices().nth(TEXT_CHARS) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

/// Returns a document with the first element of each list, and long texts cut.
fn shortened(value: &Value) -> Value {
    match value {
        Value::Array(all) => {
            let mut shown: Vec<Value> = all.iter().take(1).map(shortened).collect();
            if all.len() > 1 {
                shown.push("...".into());
            }
            shown.into()
        }
        Value::Object(fields) => {
            let mut shown = serde_json::Map::new();
            for (name, field) in fields.iter().take(FIELDS_MAX) {
                shown.insert(name.clone(), shortened(field));
            }
            if fields.len() > FIELDS_MAX {
                shown.insert("...".to_owned(), "...".into());
            }
            shown.into()
        }
        Value::String(text) => cut(text).into(),
        other => other.clone(),
    }
}

/// Fields of an object that are shown.
const FIELDS_MAX: usize = 12;

/// Lines of an answer that are shown.
const LINES_MAX: usize = 4;

/// Returns the shown part of a body as a block of the page.
fn block(media: &str, body: &[u8]) -> String {
    let kind = media.split(';').next().unwrap_or_default();
    if kind.ends_with("json") {
        let document: Value = serde_json::from_slice(body).unwrap();
        let text = serde_json::to_string_pretty(&shortened(&document)).unwrap();
        return format!("```json\n{text}\n```\n");
    }
    let Ok(text) = std::str::from_utf8(body) else {
        return format!("{} bytes.\n", body.len());
    };
    let mut shown = String::new();
    for line in text.lines().take(LINES_MAX) {
        writeln!(shown, "{}", cut(line)).unwrap();
    }
    if text.lines().count() > LINES_MAX {
        shown.push_str("...\n");
    }
    format!("```text\n{shown}```\n")
}

#[tokio::test]
async fn api_page_shows_an_answer_of_each_route() {
    let world = world().await;
    let mut shown = String::from("\n");
    for route in CONTRACT["paths"].as_object().unwrap().keys() {
        let path = example(route, &world);
        let answer = world.get(&path, &[]).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}");
        let media = answer.header("content-type");
        let body = match route.as_str() {
            // Its bytes change with each change of the page.
            "/" | "/page/{file}" | "/openapi.json" => String::new(),
            _ => block(media, answer.bytes()),
        };
        let path = match route.as_str() {
            "/page/{file}" => route,
            _ => &path,
        };
        writeln!(shown, "`GET {path}` is `{media}`:\n\n{body}").unwrap();
    }
    let shown = shown.replace(":\n\n\n", ".\n\n");
    let page = fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has the first mark");
    let (present, after) = rest.split_once(END).expect("the page has the last mark");
    if env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(PAGE, format!("{before}{BEGIN}{shown}{END}{after}")).unwrap();
        return;
    }
    assert!(
        present == shown,
        "API.md shows other answers than these: run the test with INSTA_UPDATE=always\n{shown}"
    );
}
