//! Answers that operator-registry v1.73.0 gave, recorded by `opm-oracle answers` with `OPM_ORACLE_FULL`.

use std::{fs, path::Path};

use base64::{Engine, engine::general_purpose::STANDARD};
use catalog_mirror_registry::{ApiBundle, BundleContent};
use fbc::{Chunks, FbcLimits};
use rstest::rstest;

use crate::replies::{Catalog, Reply};

/// Returns the canonical lines of a catalog of the workspace.
fn lines_of(name: &str) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/catalogs")
        .join(name);
    let mut lines = Vec::new();
    for package in fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()) {
        for file in package
            .is_dir()
            .then(|| fs::read_dir(&package).unwrap())
            .into_iter()
            .flatten()
        {
            let bytes = fs::read(file.unwrap().path()).unwrap();
            for chunk in Chunks::new(bytes.as_slice(), FbcLimits::default(), 1 << 20) {
                let sink = &mut |meta: fbc::Meta<'_>| lines.extend_from_slice(meta.line);
                chunk.unwrap().metas(&FbcLimits::default(), sink).unwrap();
            }
        }
    }
    lines
}

/// Shows the messages of a reply as text, because a difference in base64 says nothing.
fn shown(reply: &Reply) -> String {
    let messages = reply.messages.iter().map(|message| STANDARD.decode(message).unwrap());
    let messages: Vec<String> = messages
        .map(|message| String::from_utf8_lossy(&message).into_owned())
        .collect();
    format!("{} {} {} {messages:#?}", reply.method, reply.code, reply.text)
}

#[rstest]
#[case::crafted(include_bytes!("../recorded/crafted.jsonl").to_vec(), include_str!("../recorded/crafted.answers.jsonl"))]
#[case::example(lines_of("v1"), include_str!("../recorded/v1.answers.jsonl"))]
fn answers_are_those_of_opm(#[case] lines: Vec<u8>, #[case] recorded: &str) {
    let catalog = Catalog::of_lines(&lines);
    for line in recorded.lines() {
        let expected: Reply = serde_json::from_str(line).unwrap();
        let reply = catalog.reply(&expected);
        if expected.any_of {
            assert_eq!(reply.messages.len(), 1, "{}", shown(&reply));
            assert!(expected.messages.contains(&reply.messages[0]), "{}", shown(&reply));
        } else {
            assert_eq!(shown(&reply), shown(&expected));
        }
    }
}

#[test]
fn recorded_replacement_is_the_highest_version() {
    let catalog = Catalog::of_lines(include_bytes!("../recorded/crafted.jsonl"));
    let replacement = |channel_name: &str, csv_name: &str, pkg_name: &str| {
        let request = catalog_mirror_registry::api::GetReplacementRequest {
            csv_name: csv_name.to_owned(),
            pkg_name: pkg_name.to_owned(),
            channel_name: channel_name.to_owned(),
        };
        let query = catalog.graph.get_bundle_that_replaces(&request).unwrap();
        let bundle: ApiBundle = query.with_content(&BundleContent::default()).decode().unwrap();
        bundle.csv_name
    };
    assert_eq!(replacement("Alpha", "g.v1.0.0", "graph"), "g.v4.0.0-rc.10");
    assert_eq!(replacement("stable", "b1", "build"), "b2");
}
