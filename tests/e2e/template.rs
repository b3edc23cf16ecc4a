//! The cache behaviours of infra/aws/template.yaml, compared with the routes and with the kinds of objects.

use std::{fs, process::Command};

use model::Kind;
use serde_json::Value;

use crate::support::{
    binary::{Ran, Server},
    cargo,
};

/// One cache behaviour of the CDN.
#[derive(Debug, Default)]
struct CacheBehavior {
    path_pattern: String,
    origin: String,
    cache_policy: String,
}

impl CacheBehavior {
    /// Matches as CloudFront does: `*` stands for any text, also with slashes.
    fn matches(&self, path: &str) -> bool {
        let mut parts = self.path_pattern.split('*');
        let Some(mut rest) = parts.next().and_then(|first| path.strip_prefix(first)) else {
            return false;
        };
        for part in parts {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        rest.is_empty() || self.path_pattern.ends_with('*')
    }
}

/// Reads the behaviours line by line, because the tags of CloudFormation (`!Ref`) are not plain YAML.
fn behaviors() -> Vec<CacheBehavior> {
    let path = cargo::root().join("infra/aws/template.yaml");
    let template = fs::read_to_string(path).expect("the template can be read");
    let mut found: Vec<CacheBehavior> = Vec::new();
    for line in template.lines().map(str::trim) {
        if let Some(pattern) = line.strip_prefix("- PathPattern: ") {
            found.push(CacheBehavior {
                path_pattern: pattern.to_owned(),
                ..CacheBehavior::default()
            });
        }
        let Some(behavior) = found.last_mut() else { continue };
        if let Some(origin) = line.strip_prefix("TargetOriginId: ") {
            behavior.origin = origin.to_owned();
        }
        if let Some(policy) = line.strip_prefix("CachePolicyId: !Ref ") {
            behavior.cache_policy = policy.to_owned();
        }
    }
    assert!(!found.is_empty(), "the template has cache behaviours");
    found
}

#[test]
fn cdn_serves_each_public_kind_of_object_from_bucket() {
    let behaviors = behaviors();
    // No client reads a collector's list, so no route and no behaviour leads to it.
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Garbage) {
        let path = format!("/{}0123", kind.folder());
        let first = behaviors.iter().find(|behavior| behavior.matches(&path));
        let first = first.unwrap_or_else(|| panic!("no behaviour for {path}"));
        assert_eq!(
            [&*first.origin, &*first.cache_policy],
            ["bucket", "ImmutableCache"],
            "{path}"
        );
    }
}

/// A route with query parameters needs a cache key with the query: the default behaviour drops it.
#[tokio::test(flavor = "multi_thread")]
async fn cdn_keeps_query_of_routes_that_take_one() {
    let server = Server::start(["demo", "--update-after", "1h"]);
    let document = server.json("/openapi.json").await;
    let behaviors = behaviors();
    let mut count = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        if !takes_query(item) {
            continue;
        }
        let parts = path
            .split('/')
            .map(|part| if part.starts_with('{') { "x" } else { part });
        let sample = parts.collect::<Vec<_>>().join("/");
        let first = behaviors.iter().find(|behavior| behavior.matches(&sample));
        let policy = first.map(|behavior| &*behavior.cache_policy);
        assert_eq!(policy, Some("QueriedCache"), "{path} takes a query");
        count += 1;
    }
    assert!(count >= 2, "only {count} routes with a query");
}

fn takes_query(item: &Value) -> bool {
    let operations = item.as_object().unwrap().values();
    let of_operations = operations.filter_map(|operation| operation["parameters"].as_array());
    let parameters = item["parameters"].as_array().into_iter().chain(of_operations).flatten();
    parameters.into_iter().any(|parameter| parameter["in"] == "query")
}

/// sam drops a parameter that the template does not have, and builds for minutes before it finds a wrong value.
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
    ] {
        let (parameter, said) = row.split_once(" -> ").unwrap();
        let script = cargo::root().join("scripts/deploy");
        let deployed = Ran::of(Command::new(script).args(["--built", "/nowhere", parameter]));
        assert!(deployed.stderr.starts_with(&format!("deploy: {said}")), "{deployed:?}");
        deployed.exits(1);
    }
}

#[test]
fn path_pattern_matches_like_cloudfront() {
    let matches = |pattern: &str, path: &str| {
        let behavior = CacheBehavior {
            path_pattern: pattern.to_owned(),
            ..CacheBehavior::default()
        };
        behavior.matches(path)
    };
    assert!(matches("/catalogs/*/api/v1/metas", "/catalogs/a/api/v1/metas"));
    assert!(!matches("/catalogs/*/api/v1/metas", "/catalogs/a/api/v1/metas/b"));
    assert!(matches("/v2/*/tags/list", "/v2/a/b/tags/list"));
    assert!(matches("/blobs/sha256/*", "/blobs/sha256/0123"));
    assert!(!matches("/blobs/sha256/*", "/v2/blobs/sha256/0123"));
}
