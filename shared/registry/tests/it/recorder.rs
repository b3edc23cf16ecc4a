use std::collections::BTreeMap;

use catalog_mirror_registry::{
    GraphBuilder, ListedBundle, PackageRecord, PackageRecorder, RegistryError, api::GetBundleRequest, meta_struct,
};
use model::Sha256;
use proptest::prelude::*;
use rstest::rstest;

use crate::replies::complete;

const CRAFTED: &[u8] = include_bytes!("../recorded/crafted.jsonl");

fn record(chunks: &[&[u8]]) -> Result<PackageRecord, RegistryError> {
    let mut recorder = PackageRecorder::new("p");
    for chunk in chunks {
        recorder.push(chunk);
    }
    recorder.finish(Sha256::of(b""))
}

/// Returns the lines of the packages of the crafted catalog.
fn packages() -> BTreeMap<String, Vec<u8>> {
    let mut packages: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for line in CRAFTED.split_inclusive(|byte| *byte == b'\n') {
        let meta: serde_json::Value = serde_json::from_slice(line).unwrap();
        let name = meta["package"].as_str().or(meta["name"].as_str()).unwrap();
        packages.entry(name.to_owned()).or_default().extend_from_slice(line);
    }
    packages
}

const CHANNEL: &str = r#"{"entries":[{"name":"b"}],"name":"c","schema":"olm.channel"}"#;
const BUNDLE: &str = r#"{"name":"b","properties":[],"schema":"olm.bundle"}"#;
const DEPRECATIONS: &str = r#"{"entries":[],"schema":"olm.deprecations"}"#;

#[rstest]
#[case::not_json("{", "EOF while parsing")]
#[case::cut_text("\"\\", "EOF while parsing")]
#[case::no_object("[]", "invalid type: sequence, expected an object")]
#[case::schema_is_a_number(r#"{"schema":5}"#, "invalid type: integer `5`, expected a string")]
#[case::entries_are_an_object(r#"{"entries":{},"schema":"olm.channel"}"#, "expected a list")]
#[case::no_entries(r#"{"name":"c","schema":"olm.channel"}"#, "channel \"c\" has not one head")]
#[case::two_heads(
    r#"{"entries":[{"name":"a"},{"name":"b"}],"name":"c","schema":"olm.channel"}"#,
    "channel \"c\" has not one head"
)]
#[case::entry_twice(
    r#"{"entries":[{"name":"a"},{"name":"a"}],"schema":"olm.channel"}"#,
    "a second entry \"a\""
)]
#[case::skips_are_numbers(
    r#"{"entries":[{"name":"a","skips":[1]}],"schema":"olm.channel"}"#,
    "expected a string"
)]
#[case::properties_are_a_text(r#"{"properties":"x","schema":"olm.bundle"}"#, "expected a list")]
#[case::property_is_a_text(r#"{"properties":["x"],"schema":"olm.bundle"}"#, "expected an object")]
#[case::version_is_a_number(
    r#"{"properties":[{"type":"olm.package","value":{"version":1}}],"schema":"olm.bundle"}"#,
    "expected a string"
)]
fn line_that_does_not_fit_its_schema_is_an_error(#[case] line: &str, #[case] expected: &str) {
    let lines = format!("{BUNDLE}\n{line}\n");
    let Err(RegistryError::Line { line, reason }) = record(&[lines.as_bytes()]) else {
        panic!("{lines} is recorded");
    };
    assert_eq!(line, 2);
    assert!(reason.contains(expected), "{reason}");
}

#[rstest]
#[case::package(r#"{"name":"p","schema":"olm.package"}"#, "a second olm.package")]
#[case::channel(CHANNEL, "a second channel \"c\"")]
#[case::bundle(BUNDLE, "a second bundle \"b\"")]
#[case::deprecations(DEPRECATIONS, "a second olm.deprecations")]
fn second_meta_of_one_name_is_an_error(#[case] line: &str, #[case] expected: &str) {
    let twice = format!("{line}\n{line}");
    let reason = expected.to_owned();
    assert_eq!(
        record(&[twice.as_bytes()]),
        Err(RegistryError::Line { line: 2, reason })
    );
}

#[test]
fn custom_schema_with_any_fields_is_recorded() {
    let line = br#"{"entries":5,"name":[],"properties":"x","schema":"custom"}"#;
    assert!(record(&[line]).is_ok());
}

#[test]
fn neighbouring_custom_lines_are_joined_up_to_256_kib() {
    let line = format!("{{\"schema\":\"custom\",\"x\":\"{}\"}}\n", "x".repeat(1000));
    let lines = line.repeat(600);
    let mut recorder = PackageRecorder::new("p");
    recorder.push(lines.as_bytes());
    let mut builder = GraphBuilder::new();
    builder.push(&recorder.finish(Sha256::of(b"")).unwrap());
    let graph = catalog_mirror_registry::Graph::parse(builder.finish().into(), 1 << 20).unwrap();
    let request = catalog_mirror_registry::api::CustomSchemasRequest {
        schema: "custom".to_owned(),
        package_name: "p".to_owned(),
    };
    let ranges = graph.list_custom_schemas(&request).unwrap();
    assert_eq!(ranges.len(), 3);
    assert!(
        ranges
            .iter()
            .all(|range| range.length <= 256 << 10 && range.length % line.len() as u64 == 0)
    );
    assert_eq!(ranges.last().unwrap().offsets().end, lines.len() as u64);
    // A shard without `olm.package` is no package.
    assert_eq!(graph.list_packages().count(), 0);
}

#[test]
fn meta_struct_refuses_what_is_no_object_and_what_is_too_deep() {
    let deep = |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
    assert!(meta_struct(deep(127).as_bytes()).is_ok());
    assert!(meta_struct(deep(128).as_bytes()).is_err());
    assert!(meta_struct(b"[]").is_err());
}

proptest! {
    #[test]
    fn record_does_not_depend_on_chunk_sizes(sizes in proptest::collection::vec(1..2000usize, 1..20)) {
        for (name, lines) in packages() {
            let mut whole = PackageRecorder::new(&name);
            whole.push(&lines);
            let mut parts = PackageRecorder::new(&name);
            let (mut rest, mut sizes) = (lines.as_slice(), sizes.iter().cycle());
            while !rest.is_empty() {
                let (chunk, after) = rest.split_at(rest.len().min(*sizes.next().unwrap()));
                parts.push(chunk);
                rest = after;
            }
            let hash = Sha256::of(&lines);
            prop_assert_eq!(whole.finish(hash), parts.finish(hash));
        }
    }

    #[test]
    fn any_bytes_are_recorded_or_refused_without_panic(lines in "(\\{\"(entries|name|properties|schema)\":[\\[\\]{}\":,a-z0-9\u{0}-\u{ff}]{0,40}\n?){0,4}") {
        let _ = record(&[lines.as_bytes()]);
    }

    #[test]
    fn changed_lines_never_panic(at in any::<prop::sample::Index>(), byte in any::<u8>(), package in any::<prop::sample::Index>()) {
        let packages: Vec<(String, Vec<u8>)> = packages().into_iter().collect();
        let (name, mut lines) = packages[package.index(packages.len())].clone();
        let unchanged = lines.clone();
        let at = at.index(lines.len());
        lines[at] = byte;
        let mut recorder = PackageRecorder::new(&name);
        recorder.push(&lines);
        let _ = recorder.finish(Sha256::of(b""));

        // The record of the lines as they were, and other lines in their place.
        let mut recorder = PackageRecorder::new(&name);
        recorder.push(&unchanged);
        let mut builder = GraphBuilder::new();
        builder.push(&recorder.finish(Sha256::of(b"")).unwrap());
        let graph = catalog_mirror_registry::Graph::parse(builder.finish().into(), 1 << 20).unwrap();
        for bundle in graph.list_bundles() {
            let query = match bundle.unwrap() {
                ListedBundle::Incomplete(query) => query,
                ListedBundle::Complete(bundle) => graph.get_bundle(&GetBundleRequest {
                    pkg_name: bundle.package_name,
                    channel_name: bundle.channel_name,
                    csv_name: bundle.csv_name,
                }).unwrap(),
            };
            let _ = complete(&graph, &lines, query);
        }
    }
}
