//! The cache behaviours of infra/aws/template.yaml, compared with the routes and with the kinds of
//! objects.

use std::{fs, process::Command};

use model::Kind;
use serde_json::Value;

use crate::support::{binary::Ran, cargo};

fn read(path: &str) -> String {
    fs::read_to_string(cargo::root().join(path)).expect("the file can be read")
}

/// Returns origin and cache policy of the first cache behaviour that matches a path. Reads the
/// template line by line, because the tags of CloudFormation (`!Ref`) are not plain YAML.
fn behavior(path: &str) -> Option<[String; 2]> {
    let template = read("infra/aws/template.yaml");
    let mut behaviors = template.split("- PathPattern: ").skip(1);
    let first = behaviors.find(|text| {
        text.lines()
            .next()
            .is_some_and(|pattern| matches(pattern, path))
    })?;
    let field = |name| {
        first
            .lines()
            .find_map(|line| line.trim().strip_prefix(name))
    };
    let fields = ["TargetOriginId: ", "CachePolicyId: !Ref "].map(field);
    Some(fields.map(|field| field.unwrap_or_default().to_owned()))
}

/// Matches as CloudFront does: `*` stands for any text, also with slashes.
fn matches(pattern: &str, path: &str) -> bool {
    let Some((begin, pattern)) = pattern.split_once('*') else {
        return pattern == path;
    };
    let rest = path.strip_prefix(begin);
    rest.is_some_and(|rest| (0..=rest.len()).any(|at| matches(pattern, &rest[at..])))
}

#[test]
fn cdn_serves_each_public_kind_of_object_from_bucket() {
    // No client reads a collector's list, so no route and no behaviour leads to it.
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Garbage) {
        let path = format!("/{}0123", kind.folder());
        let found = behavior(&path).unwrap_or_else(|| panic!("no behaviour for {path}"));
        assert_eq!(found, ["bucket", "ImmutableCache"], "{path}");
    }
}

/// A route with query parameters needs a cache key with the query: the default behaviour drops it.
#[test]
fn cdn_keeps_query_of_routes_that_take_one() {
    let document: Value = serde_json::from_str(&read("shared/serving/api/openapi.json")).unwrap();
    let paths = document["paths"].as_object().unwrap().iter();
    let queried: Vec<&String> = paths
        .filter(|(_, item)| takes_query(item))
        .map(|(path, _)| path)
        .collect();
    assert!(queried.len() >= 2, "{queried:?}");
    for path in queried {
        let sample = path.replace(['{', '}'], "");
        let found = behavior(&sample).unwrap_or_else(|| panic!("no behaviour for {path}"));
        assert_eq!(found[1], "QueriedCache", "{path} takes a query");
    }
}

fn takes_query(item: &Value) -> bool {
    let operations = item.as_object().unwrap().values();
    let of_operations = operations.filter_map(|operation| operation["parameters"].as_array());
    let parameters = item["parameters"]
        .as_array()
        .into_iter()
        .chain(of_operations)
        .flatten();
    parameters
        .into_iter()
        .any(|parameter| parameter["in"] == "query")
}

/// sam drops a parameter that the template does not have, and builds for minutes before it finds a
/// wrong value.
#[test]
fn deploy_refuses_wrong_parameters_before_it_builds() {
    for row in [
        "AlarmMail=ops@example.com -> there is no parameter AlarmMail; there are: PollInterval ",
        "PollInterval=7 -> PollInterval is one of 5, 10, 15, 30, 60, not '7'",
        "CollectGarbage=yes -> CollectGarbage is one of true, false, not 'yes'",
        "ReaderMemory=1GB -> ReaderMemory is a number, not '1GB'",
        "ReaderMemory=127 -> ReaderMemory is at least 128, not 127",
        "ReaderMemory=10241 -> ReaderMemory is at most 10240, not 10241",
        "AlarmEmail=ops -> AlarmEmail does not take 'ops': Receives one message",
        "Origins=https://a.example, ftp://b -> Origins does not take 'ftp://b': For a closed",
        "VerifyKeys=MCow=,\"MCox= -> VerifyKeys does not take 'MCow=,\"MCox='",
        "AlarmTopicArn=arn:aws:sns:\"a -> AlarmTopicArn does not take 'arn:aws:sns:\"a': no parameter",
    ] {
        let (parameter, said) = row.split_once(" -> ").unwrap();
        let script = cargo::root().join("scripts/deploy");
        let deployed = Ran::of(Command::new(script).args(["--built", "/nowhere", parameter]));
        assert!(
            deployed.stderr.starts_with(&format!("deploy: {said}")),
            "{deployed:?}"
        );
        deployed.exits(1);
    }
}

/// CloudFormation takes 4,096 bytes for a value, which are 63 hashes.
#[test]
fn deploy_refuses_more_logins_than_fit() {
    for (count, said) in [
        (63, "there is no parameter Last"),
        (64, "AccessHashes has more than 4096 bytes: SHA-256 of each"),
    ] {
        let hashes = vec!["a".repeat(64); count].join(",");
        let script = cargo::root().join("scripts/deploy");
        let hashes = format!("AccessHashes={hashes}");
        let deployed = Ran::of(Command::new(script).args([&hashes, "Last=1"]));
        assert!(
            deployed.stderr.starts_with(&format!("deploy: {said}")),
            "{deployed:?}"
        );
        deployed.exits(1);
    }
}

#[test]
fn path_pattern_matches_like_cloudfront() {
    for (pattern, path, is_match) in [
        ("/catalogs/*/api/v1/metas", "/catalogs/a/api/v1/metas", true),
        (
            "/catalogs/*/api/v1/metas",
            "/catalogs/a/api/v1/metas/b",
            false,
        ),
        ("/v2/*/tags/list", "/v2/a/b/tags/list", true),
        ("/blobs/sha256/*", "/v2/blobs/sha256/0123", false),
    ] {
        assert_eq!(matches(pattern, path), is_match, "{pattern} {path}");
    }
}
