//! Dependencies between our crates go one way. A new one is a decision, so this file must be
//! changed too.

use std::{collections::BTreeSet, path::Path};

use serde_json::Value;

use crate::support::{cargo, catalogs};

/// Allowed direct dependencies of each crate on our own crates, in the order of the data flow.
const ALLOWED: &[(&str, &str)] = &[
    ("model", ""),
    ("work", ""),
    ("fbc", "work"),
    ("olm", "model work"),
    // Ways of upgrades, without clocks and without reading catalogs.
    ("plan", "fbc model olm"),
    ("compose", "fbc model olm work"),
    ("oci", "model work"),
    // A bundle is the files of an image, whose sink is of `oci`, or objects in a line of a catalog.
    ("bundle", "fbc model oci olm"),
    ("fetch", "model"),
    ("trust", "model"),
    ("source", "fetch model oci work"),
    ("render", "fbc model oci work"),
    ("store", "model"),
    // Compositions are catalogs that the mirror makes itself; `olm` has the rules of validation.
    (
        "publish",
        "compose fbc model oci olm render source store trust work",
    ),
    // Of `publish`, only the names of the catalogs, clocks and counts.
    ("upkeep", "model publish render store trust work"),
    // Of `publish`, only the report of a poll and the difference of two states.
    ("notify", "fetch model publish store"),
    (
        "sync",
        "fetch model oci olm publish render store trust upkeep work",
    ),
    // Copies of images, and the manifests that lead to them, without stores.
    ("carry", "model olm source"),
    // A state is written by `publish` and read here; all below are fronts.
    ("state-reader", "model store trust"),
    ("http", "model oci olm state-reader"),
    // The files of a mirror are the answers of `http`.
    ("tree", "http model oci state-reader store"),
    // The objects inside a bundle may be YAML, which `fbc` reads.
    ("grpc", "fbc model olm state-reader work"),
    ("server", "model"),
    ("config", "compose model notify publish source trust upkeep"),
    ("testkit", "model"),
    // The load test checks all other crates, so it shares no code with them except the names of
    // keys.
    ("load", "model"),
];

/// Crates that know no runtime, and its parts that they must not reach, directly or not.
const PURE: &str = "fbc model trust render olm plan compose oci bundle";
const NO_IO: &str = "tokio reqwest hyper futures-util";

/// Other forbidden direct and indirect dependencies. The reader of states has to become a part of
/// programs without sockets and threads.
const FORBIDDEN: &str = "
    catalog-mirror-store: reqwest granit-parser catalog-mirror-source aws-sdk-s3
    catalog-mirror-state-reader: axum http reqwest hyper granit-parser catalog-mirror-fbc
    catalog-mirror-reader: reqwest oci-client granit-parser bcrypt pgp aws-lc-rs catalog-mirror-fbc catalog-mirror-source
    catalog-mirror-reader: catalog-mirror-render catalog-mirror-publish catalog-mirror-server
    catalog-mirror-poller: axum aws-lc-rs pgp tonic catalog-mirror-http catalog-mirror-server
    catalog-mirror-controller: catalog-mirror-sync aws-lc-rs aws-lc-sys native-tls openssl-sys tonic
    catalog-mirror-http: bcrypt rustls reqwest oci-client granit-parser catalog-mirror-fbc catalog-mirror-source
    catalog-mirror-http: catalog-mirror-render
    catalog-mirror: aws-lc-rs aws-lc-sys openssl-sys native-tls serde_yaml serde_yml";

/// Maximum number of lines of code in one shipped crate, without comments, blank lines and tests.
/// Split a crate that needs more, or find what can go.
const LINES_MAX: usize = 4_000;

#[test]
fn crate_depends_only_on_allowed_crates_and_shared_crate_has_rule() {
    for package in members() {
        let [name, manifest] =
            ["name", "manifest_path"].map(|field| package[field].as_str().unwrap());
        let short = name.strip_prefix("catalog-mirror-");
        let rule = ALLOWED.iter().find(|(rule, _)| short == Some(*rule));
        let Some((_, allowed)) = rule else {
            assert!(
                !manifest.contains("/shared/"),
                "{name} has no rule in this file"
            );
            continue;
        };
        for other in own_dependencies(package) {
            let is_allowed = allowed.split(' ').any(|name| name == other);
            assert!(is_allowed, "{name} must not depend on {other}");
        }
    }
}

#[test]
fn crate_has_at_most_4000_lines() {
    let mut checked = 0;
    for package in members() {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        let folder = manifest.parent().unwrap();
        let is_shipped =
            ["shared", "functions"].map(|part| folder.parent().unwrap().ends_with(part));
        if !is_shipped.contains(&true) || folder.ends_with("testkit") {
            continue;
        }
        let lines = shipped_lines(folder);
        let folder = folder.display();
        assert!(
            (1..=LINES_MAX).contains(&lines),
            "{folder} has {lines} lines"
        );
        checked += 1;
    }
    assert!(checked > 20, "only {checked} crates were found");
}

#[test]
fn forbidden_crate_is_not_reached() {
    let pure = PURE
        .split(' ')
        .map(|name| (format!("catalog-mirror-{name}"), NO_IO));
    let others = FORBIDDEN
        .lines()
        .filter_map(|line| line.trim().split_once(": "));
    for (name, forbidden) in pure.chain(others.map(|(name, other)| (name.to_owned(), other))) {
        let reached = names(&tree(&name, "{p}", &[]));
        for other in forbidden.split(' ') {
            assert!(!reached.contains(other), "{name} reaches {other}");
        }
    }
}

/// A Worker has neither sockets nor files, and other builds compile nothing of it. `cargo tree`
/// needs no installed target.
#[test]
fn worker_reaches_no_sockets_and_no_files_and_is_empty_elsewhere() {
    let worker = "catalog-mirror-edge";
    let names = names(&tree(
        worker,
        "{p}",
        &["--target", "wasm32-unknown-unknown"],
    ));
    for needed in ["catalog-mirror-http", "worker"] {
        assert!(names.contains(needed), "{names:?}");
    }
    for other in
        "mio rustix socket2 hyper rustls aws-sdk-s3 catalog-mirror-fbc catalog-mirror-publish"
            .split(' ')
    {
        assert!(!names.contains(other), "the Worker reaches {other}");
    }
    let elsewhere = tree(worker, "{p}", &[]);
    assert_eq!(elsewhere.lines().count(), 1, "{elsewhere}");
}

/// A demo is built by people who wait for it.
#[test]
fn program_links_optional_libraries_only_with_their_feature() {
    let with = tree("catalog-mirror", "{p}", &[]);
    let without = tree("catalog-mirror", "{p}", &["--no-default-features"]);
    for optional in ["aws-sdk-s3", "pgp"] {
        assert!(
            names(&with).contains(optional),
            "the default program lacks {optional}"
        );
        assert!(
            !names(&without).contains(optional),
            "the demo reaches {optional}"
        );
    }
}

/// The feature adds markers that make a parser abort, and clocks that fail; `storekit` has a store
/// that fails.
#[test]
fn shipped_program_has_nothing_for_tests() {
    for program in ["", "-controller", "-reader", "-poller"] {
        let tree = tree(
            &format!("catalog-mirror{program}"),
            "{p} features: {f}",
            &[],
        );
        assert!(!names(&tree).contains("catalog-mirror-storekit"), "{tree}");
        let own = tree
            .lines()
            .filter(|line| line.starts_with("catalog-mirror-"));
        let mut features = own
            .filter_map(|line| line.split_once(" features: "))
            .flat_map(|(_, all)| all.split([',', ' ']));
        assert!(features.all(|feature| feature != "testing"), "{tree}");
    }
}

fn members() -> impl Iterator<Item = &'static Value> {
    let metadata = cargo::metadata();
    let members = metadata["workspace_members"].as_array().unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    packages
        .iter()
        .filter(|package| members.contains(&package["id"]))
}

/// Counts the lines of code of a crate. Tests are in files of their own, or at the end of a file.
fn shipped_lines(folder: &Path) -> usize {
    let files = catalogs::files(&folder.join("src")).into_iter();
    let shipped = files.filter(|(path, _)| path.ends_with(".rs") && !path.contains("tests"));
    let lines = shipped.map(|(_, bytes)| {
        let text = String::from_utf8(bytes).unwrap();
        let shipped = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        let lines = shipped.lines().map(str::trim);
        lines
            .filter(|line| !line.is_empty() && !line.starts_with("//"))
            .count()
    });
    lines.sum()
}

/// Returns the short names of our crates that a package depends on outside of its tests.
fn own_dependencies(package: &Value) -> impl Iterator<Item = &str> {
    let all = package["dependencies"].as_array().unwrap().iter();
    let shipped = all.filter(|dependency| dependency["kind"].is_null());
    shipped.filter_map(|dependency| dependency["name"].as_str()?.strip_prefix("catalog-mirror-"))
}

fn names(tree: &str) -> BTreeSet<String> {
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}

/// Returns what `cargo tree` prints of each crate that a build of one package alone links.
fn tree(name: &str, format: &str, features: &[&str]) -> String {
    let fixed = "tree --locked --edges normal --prefix none --format";
    let arguments = fixed.split(' ').chain([format, "--package", name]);
    cargo::said(cargo::command().args(arguments).args(features))
}
