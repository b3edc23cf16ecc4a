use grpc::olm_v0::{ApiIndex, PackageRecord, PackageRecorder, meta_struct};
use model::Sha256;
use proptest::prelude::*;

use crate::contents::complete;
use crate::fixture::{CRAFTED, custom_schemas, shards};

/// Returns the record of the lines of a package.
pub(crate) fn record(name: &str, lines: impl AsRef<[u8]>) -> Result<PackageRecord, String> {
    let mut recorder = PackageRecorder::new(name);
    recorder.push(lines.as_ref());
    recorder.finish(Sha256::of(b""))
}

/// One line of each schema, without a fault.
const LINES: &str = r#"{"name":"p","schema":"olm.package"}
{"entries":[{"name":"b"}],"name":"c","schema":"olm.channel"}
{"name":"b","properties":[],"schema":"olm.bundle"}
{"entries":[],"schema":"olm.deprecations"}
"#;

/// Lines that do not fit their schema or the lines before, and the error.
const WRONG: &str = r#"
{ => EOF while parsing
"\ => EOF while parsing
[] => invalid type: sequence, expected an object
{"schema":5} => invalid type: integer `5`, expected a string
{"entries":{},"schema":"olm.channel"} => expected a list
{"name":"d","schema":"olm.channel"} => channel "d" has not one head
{"entries":[{"name":"a"},{"name":"b"}],"name":"d","schema":"olm.channel"} => channel "d" has not one head
{"entries":[{"name":"a"},{"name":"a"}],"schema":"olm.channel"} => a second entry "a"
{"entries":[{"name":"a","skips":[1]}],"schema":"olm.channel"} => expected a string
{"properties":"x","schema":"olm.bundle"} => expected a list
{"properties":["x"],"schema":"olm.bundle"} => expected an object
{"properties":[{"type":"olm.package","value":{"version":1}}],"schema":"olm.bundle"} => expected a string
{"name":"q","schema":"olm.package"} => a second olm.package
{"entries":[{"name":"b"}],"name":"c","schema":"olm.channel"} => a second channel "c"
{"name":"b","properties":[],"schema":"olm.bundle"} => a second bundle "b"
{"entries":[],"schema":"olm.deprecations"} => a second olm.deprecations
"#;

#[test]
fn line_that_does_not_fit_is_an_error() {
    assert!(record("p", LINES).is_ok());
    for row in WRONG.trim().lines() {
        let (line, expected) = row.split_once(" => ").unwrap();
        let error = record("p", [LINES, line].concat()).unwrap_err();
        assert!(
            error.starts_with("line 5: ") && error.contains(expected),
            "{row}: {error}"
        );
    }
}

#[test]
fn entry_without_a_bundle_is_an_error() {
    let channel = LINES.lines().nth(1).unwrap();
    let error = record("p", channel).unwrap_err();
    assert_eq!(error, "channel \"c\" has no bundle \"b\"");
}

#[test]
fn custom_lines_of_a_shard_without_a_package_are_found() {
    let line = "{\"entries\":5,\"name\":[],\"properties\":\"x\",\"schema\":\"custom\"}\n";
    let mut index = ApiIndex::default();
    index.insert(record("p", line.repeat(3)).unwrap().into());
    let ranges = index.list_custom_schemas(&custom_schemas()).unwrap();
    let length = line.len() as u64;
    assert!(
        ranges
            .iter()
            .map(|range| range.start)
            .eq([0, length, 2 * length])
    );
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
            let mut parts = PackageRecorder::new(&name);
            let (mut rest, mut sizes) = (lines.as_slice(), sizes.iter().cycle());
            while !rest.is_empty() {
                let (chunk, after) = rest.split_at(rest.len().min(*sizes.next().unwrap()));
                parts.push(chunk);
                rest = after;
            }
            prop_assert_eq!(record(&name, lines), parts.finish(Sha256::of(b"")));
        }
    }

    #[test]
    fn any_bytes_are_recorded_or_refused_without_panic(lines in "(\\{\"(entries|name|properties|schema)\":[\\[\\]{}\":,a-z0-9\u{0}-\u{ff}]{0,40}\n?){0,4}") {
        let _ = record("p", lines);
    }

    #[test]
    fn changed_lines_never_panic(at in any::<prop::sample::Index>(), byte in any::<u8>(), package in any::<prop::sample::Index>()) {
        let packages: Vec<(String, Vec<u8>)> = shards(CRAFTED).into_iter().collect();
        let (name, mut lines) = packages[package.index(packages.len())].clone();
        let unchanged = lines.clone();
        let at = at.index(lines.len());
        lines[at] = byte;
        let _ = record(&name, &lines);

        // The record of the lines as they were, and other lines in their place.
        let mut index = ApiIndex::default();
        index.insert(record(&name, unchanged).unwrap().into());
        for place in index.entries() {
            let _ = complete(&lines, place);
        }
    }
}
