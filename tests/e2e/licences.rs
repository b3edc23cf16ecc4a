//! Licences, sources and versions of all dependencies.
//!
//! This is a test and not cargo-deny, because cargo-deny takes minutes to compile in a fresh clone,
//! and its advisories need a database from the network. `cargo metadata` is there already and gives
//! the same answers about licences and sources.

use std::collections::BTreeMap;

use crate::support::cargo;

/// Licences that allow use, change and distribution without further conditions on the program.
/// NCSA is that of libFuzzer, which no shipped program contains. OpenSSL is that of parts of the FIPS
/// module of AWS-LC, which only a build with `cfg(fips)` contains; it asks for a notice.
const ALLOWED: &str = "Apache-2.0 MIT BSD-2-Clause BSD-3-Clause ISC Unicode-3.0 Zlib CDLA-Permissive-2.0 Unlicense \
    BSL-1.0 MIT-0 0BSD CC0-1.0 NCSA OpenSSL";

#[test]
fn dependency_has_allowed_licence_and_is_from_registry_or_workspace() {
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        let licence = package["license"].as_str().unwrap_or("no licence");
        assert!(is_allowed(licence), "{name} is under {licence}");
        // Without a source it lies in this tree.
        let source = package["source"].as_str();
        assert!(
            source.is_none_or(|source| source.starts_with("registry+")),
            "{name} comes from {source:?}"
        );
    }
}

/// Two versions of a large library would double the size of the binary and split its connection
/// pools.
#[test]
fn heavy_library_has_one_version() {
    let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in packages() {
        let text = |field: &str| package[field].as_str().unwrap().to_owned();
        versions
            .entry(text("name"))
            .or_default()
            .push(text("version"));
    }
    let heavy = "hyper http axum tokio rustls reqwest tower ring zstd-sys serde_json";
    for name in heavy.split(' ') {
        let found = versions.get(name).map_or(0, Vec::len);
        assert_eq!(found, 1, "{name}: {:?}", versions.get(name));
    }
}

/// Evaluates an SPDX expression: `OR` needs one side, `AND` both. Exceptions (`WITH`) only add
/// permissions.
fn is_allowed(expression: &str) -> bool {
    let expression = expression.replace(['(', ')'], " ").replace('/', " OR ");
    expression.split(" AND ").all(|part| {
        part.split(" OR ").any(|licence| {
            let plain = licence.split(" WITH ").next().unwrap_or_default().trim();
            ALLOWED.split(' ').any(|allowed| allowed == plain)
        })
    })
}

#[test]
fn licence_expression_is_evaluated() {
    for (expression, expected) in [
        ("MIT OR GPL-3.0", true),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("MIT/Apache-2.0", true),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("MIT AND GPL-3.0", false),
        ("AGPL-3.0", false),
    ] {
        assert_eq!(is_allowed(expression), expected, "{expression}");
    }
}

fn packages() -> Vec<serde_json::Value> {
    cargo::metadata()["packages"].as_array().unwrap().clone()
}
