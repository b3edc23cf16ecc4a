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
    ("oci", "model work"),
    ("fetch", "model"),
    ("trust", "model"),
    ("store", "model"),
    ("olm", "model work"),
    // Rules that tell an accident from an update.
    ("hold", "model olm work"),
    // Ways and bundles, without clocks and without reading catalogs. A bundle is the files of an
    // image, whose sink is of `oci`, or objects in a line of a catalog.
    ("upgrade", "fbc model oci olm work"),
    ("compose", "fbc model olm work"),
    // The rule of rings, and the composition for packages that they take at once.
    ("promotion", "compose model"),
    ("source", "fetch model oci work"),
    ("render", "fbc model oci work"),
    // Compositions are catalogs that the mirror makes itself; `olm` has the rules of validation.
    (
        "publish",
        "compose fbc hold model oci olm promotion render source store trust work",
    ),
    // A state is written by `publish` and read here; all fronts are below.
    ("reader", "model store trust"),
    // Of `publish`, the transaction, the report of a poll, the names of the catalogs, clocks and
    // counts. `fetch` sends webhooks.
    ("upkeep", "fetch model publish render store trust work"),
    // Versions that are installed, for the rules that hold content back.
    (
        "config",
        "compose hold model olm promotion publish source trust upgrade upkeep work",
    ),
    // `work` has the memory of answers, which every front takes and the server bounds.
    ("api", "model oci olm reader work"),
    // The objects inside a bundle may be YAML, which `fbc` reads. A call ends its connection when its
    // answer is outdated, and `server` receives the contents of requests.
    ("grpc", "fbc model olm reader server work"),
    ("server", "model work"),
    // Lines, tables and exit codes, for programs.
    ("terminal", "model"),
    (
        "sync",
        "fetch model oci olm publish reader render store trust upkeep work",
    ),
    // The files of a mirror are the answers of `api`.
    ("tree", "api model oci reader store work"),
    // Copies of images, and the manifests that lead to them, without stores.
    // `compose` says whether OLM accepts a package without the bundles whose images are missing.
    ("carry", "compose model olm source work"),
    // Catalogs that are read and not published: through `publish`, over a temporary store, or through
    // `sync` from other mirrors.
    (
        "inspect",
        "carry compose fbc model olm publish reader render source store sync upgrade work",
    ),
    // What is complete at a registry, from copies of images to the push of a catalog.
    (
        "offer",
        "carry compose fbc inspect model oci olm publish reader source store sync terminal",
    ),
    ("testkit", "model"),
    // The load test checks all other crates, so it shares no code with them except the names of
    // keys.
    ("load", "model"),
];

/// Folders of crates, in the order of the data flow. Each uses only itself and those before it.
const WINGS: [&str; 6] = [
    "shared/core",
    "shared/operators",
    "shared/mirror",
    "shared/serving",
    "shared/copies",
    "functions",
];

/// Crates that know no runtime, and its parts that they must not reach, directly or not.
const PURE: &str = "fbc model trust render olm hold upgrade compose promotion oci";
const NO_IO: &str = "tokio reqwest hyper futures-util";

/// Other forbidden direct and indirect dependencies. The reader of states has to become a part of
/// programs without sockets and threads.
const FORBIDDEN: &str = "
    store: reqwest granit-parser source aws-sdk-s3
    reader: axum http reqwest hyper granit-parser fbc
    reader-function: reqwest oci-client granit-parser bcrypt pgp aws-lc-rs fbc source
    reader-function: render publish server
    poller: axum aws-lc-rs pgp tonic api server
    controller: sync aws-lc-rs aws-lc-sys native-tls openssl-sys tonic
    api: bcrypt rustls reqwest oci-client granit-parser fbc source
    api: render
    catalog-mirror: aws-lc-rs aws-lc-sys openssl-sys native-tls serde_yaml serde_yml";

/// Maximum number of tokens (words and signs) in one shipped crate, without comments and tests.
/// Split a crate that needs more, or find what can go. Lines are not counted, because a line can
/// be filled until it is hard to read.
const TOKENS_MAX: usize = 45_000;

#[test]
fn crate_depends_only_on_allowed_crates_and_shared_crate_has_rule() {
    for package in members() {
        let [name, manifest] =
            ["name", "manifest_path"].map(|field| package[field].as_str().unwrap());
        let rule = ALLOWED.iter().find(|(rule, _)| name == *rule);
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
fn wing_uses_only_wings_before_it() {
    let wing = |name: &str| {
        let package = members().find(|package| package["name"] == name).unwrap();
        let folder = folder(package);
        WINGS
            .iter()
            .position(|wing| folder.parent().unwrap().ends_with(wing))
    };
    let mut checked = 0;
    for package in members() {
        let name = package["name"].as_str().unwrap();
        let Some(of_package) = wing(name) else {
            continue;
        };
        for other in own_dependencies(package) {
            assert!(
                wing(other).is_some_and(|of_other| of_other <= of_package),
                "{name} uses {other}, which is in a later wing"
            );
        }
        checked += 1;
    }
    assert!(checked > 20, "only {checked} crates lie in a wing");
}

/// A crate has one name: that of its folder, of its package and of its imports.
#[test]
fn package_and_library_have_the_name_of_their_folder() {
    for package in members() {
        let name = package["name"].as_str().unwrap();
        assert!(folder(package).ends_with(name), "{name}");
        let is_library = |target: &&Value| {
            let kinds = target["kind"].as_array().unwrap();
            kinds.iter().any(|kind| kind == "lib" || kind == "rlib")
        };
        let targets = package["targets"].as_array().unwrap();
        if let Some(library) = targets.iter().find(is_library) {
            assert_eq!(library["name"], name.replace('-', "_"));
        }
    }
}

/// Code that several commands need is in a module of the program or in a library. A command of several
/// files is a folder, whose files may use each other.
#[test]
fn command_takes_nothing_from_another_command() {
    let package = members().find(|package| package["name"] == "catalog-mirror");
    let commands = folder(package.unwrap()).join("src/commands");
    let mut checked = 0;
    for (path, bytes) in catalogs::files(&commands) {
        if path == "mod.rs" {
            continue;
        }
        let text = String::from_utf8(bytes).unwrap();
        let is_inner = path.contains('/') && !path.ends_with("/mod.rs");
        for line in text.lines().map(str::trim) {
            // Tests at the end of a file use what is in it.
            let is_of_parent =
                !is_inner && line.starts_with("use super::") && line != "use super::*;";
            assert!(
                !is_of_parent
                    && !line.contains("crate::commands")
                    && !line.contains("super::super"),
                "{path} takes something from another command: {line}"
            );
        }
        checked += 1;
    }
    assert!(checked > 20, "only {checked} files of commands were found");
}

#[test]
fn crate_has_at_most_45000_tokens() {
    let mut checked = 0;
    for package in members() {
        let folder = folder(package);
        if !WINGS
            .iter()
            .any(|wing| folder.parent().unwrap().ends_with(wing))
        {
            continue;
        }
        let tokens = shipped_tokens(folder);
        let folder = folder.display();
        assert!(
            (1..=TOKENS_MAX).contains(&tokens),
            "{folder} has {tokens} tokens"
        );
        checked += 1;
    }
    assert!(checked > 20, "only {checked} crates were found");
}

#[test]
fn forbidden_crate_is_not_reached() {
    let pure = PURE.split(' ').map(|name| (name, NO_IO));
    let others = FORBIDDEN
        .lines()
        .filter_map(|line| line.trim().split_once(": "));
    for (name, forbidden) in pure.chain(others) {
        let reached = names(&tree(name, "{p}", &[]));
        for other in forbidden.split(' ') {
            assert!(!reached.contains(other), "{name} reaches {other}");
        }
    }
}

/// A Worker has neither sockets nor files, and other builds compile nothing of it. `cargo tree`
/// needs no installed target.
#[test]
fn worker_reaches_no_sockets_and_no_files_and_is_empty_elsewhere() {
    let worker = "edge";
    let names = names(&tree(
        worker,
        "{p}",
        &["--target", "wasm32-unknown-unknown"],
    ));
    for needed in ["api", "worker"] {
        assert!(names.contains(needed), "{names:?}");
    }
    for other in "mio rustix socket2 hyper rustls aws-sdk-s3 fbc publish".split(' ') {
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
    for program in ["catalog-mirror", "controller", "reader-function", "poller"] {
        let tree = tree(program, "{p} features: {f}", &[]);
        assert!(!names(&tree).contains("storekit"), "{tree}");
        let is_own = |line: &&str| {
            let name = line.split(' ').next().unwrap_or_default();
            members().any(|package| package["name"] == name)
        };
        let own = tree.lines().filter(is_own);
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

fn folder(package: &Value) -> &Path {
    let manifest = Path::new(package["manifest_path"].as_str().unwrap());
    manifest.parent().unwrap()
}

/// Counts the tokens of a crate. Tests are in files of their own, or at the end of a file.
fn shipped_tokens(folder: &Path) -> usize {
    let files = catalogs::files(&folder.join("src")).into_iter();
    let shipped = files.filter(|(path, _)| path.ends_with(".rs") && !path.contains("tests"));
    let tokens = shipped.map(|(_, bytes)| {
        let text = String::from_utf8(bytes).unwrap();
        let shipped = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        let code = shipped
            .lines()
            .filter(|line| !line.trim().starts_with("//"));
        code.map(tokens).sum::<usize>()
    });
    tokens.sum()
}

/// Counts the words and the signs of a line of code.
fn tokens(line: &str) -> usize {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let words = line
        .split(|letter| !is_word(letter))
        .filter(|word| !word.is_empty());
    let signs = line
        .chars()
        .filter(|&letter| !is_word(letter) && !letter.is_whitespace());
    words.count() + signs.count()
}

/// Returns the names of our crates that a package depends on outside of its tests.
fn own_dependencies(package: &Value) -> impl Iterator<Item = &str> {
    let all = package["dependencies"].as_array().unwrap().iter();
    let shipped = all.filter(|dependency| dependency["kind"].is_null());
    // Only our crates lie in a folder.
    let own = shipped.filter(|dependency| dependency["path"].is_string());
    own.filter_map(|dependency| dependency["name"].as_str())
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
