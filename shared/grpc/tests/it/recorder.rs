use catalog_mirror_grpc::olm_v0::{ApiIndex, PackageRecord, PackageRecorder, api::CustomSchemasRequest, meta_struct};
use model::Sha256;
use proptest::prelude::*;
use rstest::rstest;

use crate::contents::complete;
use crate::fixture::{CRAFTED, shards};

fn record(chunks: &[&[u8]]) -> Result<PackageRecord, String> {
    let mut recorder = PackageRecorder::new("p");
    for chunk in chunks {
        recorder.push(chunk);
    }
    recorder.finish(Sha256::of(b""))
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
    let error = record(&[lines.as_bytes()]).unwrap_err();
    assert!(error.starts_with("line 2: ") && error.contains(expected), "{error}");
}

#[rstest]
#[case::package(r#"{"name":"p","schema":"olm.package"}"#, "a second olm.package")]
#[case::channel(CHANNEL, "a second channel \"c\"")]
#[case::bundle(BUNDLE, "a second bundle \"b\"")]
#[case::deprecations(DEPRECATIONS, "a second olm.deprecations")]
fn second_meta_of_one_name_is_an_error(#[case] line: &str, #[case] expected: &str) {
    let twice = format!("{line}\n{line}");
    assert_eq!(record(&[twice.as_bytes()]).unwrap_err(), format!("line 2: {expected}"));
}

#[test]
fn entry_without_a_bundle_is_an_error() {
    let error = record(&[CHANNEL.as_bytes()]).unwrap_err();
    assert_eq!(error, "channel \"c\" has no bundle \"b\"");
}

#[test]
fn custom_lines_of_a_shard_without_a_package_are_found() {
    let line = "{\"entries\":5,\"name\":[],\"properties\":\"x\",\"schema\":\"custom\"}\n";
    let mut index = ApiIndex::default();
    index.insert(record(&[line.repeat(3).as_bytes()]).unwrap().into());
    let request = CustomSchemasRequest {
        schema: "custom".to_owned(),
        package_name: "p".to_owned(),
    };
    let ranges = index.list_custom_schemas(&request).unwrap();
    let length = line.len() as u64;
    assert!(ranges.iter().map(|range| range.start).eq([0, length, 2 * length]));
    assert_eq!(index.list_packages().count(), 0);
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
        for (name, lines) in shards(CRAFTED) {
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
        let packages: Vec<(String, Vec<u8>)> = shards(CRAFTED).into_iter().collect();
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
        let mut index = ApiIndex::default();
        index.insert(recorder.finish(Sha256::of(b"")).unwrap().into());
        for place in index.entries() {
            let _ = complete(&lines, place);
        }
    }
}
