//! Packages that `dependencies: include` takes along.

use std::collections::BTreeSet;

use olm::{Severity, ShardValidator};
use proptest::{collection::vec, prelude::*};

use crate::support::{
    ComposedCatalog, MemoryCatalog, api, compose, package, required, requirement, with_property,
};

/// A package with one bundle that has a requirement.
fn user(name: &str, required: &str) -> String {
    let (kind, value) = requirement(required);
    with_property(&package(name, "c: 1.0.0"), "1.0.0", kind, &value)
}

fn need() -> String {
    let channels = "stable: 1.0.0 1.1.0<1.0.0 2.0.0<1.1.0; old: 0.9.0 1.0.0<0.9.0";
    with_property(&package("need", channels), "1.0.0", "olm.gvk", &api("v1"))
}

/// Composes with `dependencies: include`.
fn include(yaml: &str, catalogs: &mut [MemoryCatalog]) -> ComposedCatalog {
    compose(&format!("{yaml}\ndependencies: include"), catalogs).unwrap()
}

fn errors(name: &str, lines: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let mut sink = |violation: olm::RuleViolation| {
        if violation.rule.severity() == Severity::Error {
            errors.push(format!("{violation:?}"));
        }
    };
    let mut validator = ShardValidator::new(name, |_| true);
    validator.push(lines.as_bytes(), &mut sink);
    validator.finish(&mut sink);
    errors
}

const USER: &str = "inputs: [{catalog: a, select: {packages: [{name: user}]}}]";

/// Requirement of a package `user` beside packages `more` and `need`, the selection, the packages
/// that are read, and those of the result. Without a selection only `user` is selected. `MISSING`
/// stands for the notice about what follows.
const INCLUDED: &str = "\
{} => user => user *c: 1.0.0
need >=1.0.0 <2.0.0 => user need need => need *stable: 1.1.0 | user *c: 1.0.0
need >=1.0.0 => user need need => need *stable: 2.0.0 | user *c: 1.0.0
need <1.0.0 => user need need => need *old: 0.9.0 | user *c: 1.0.0
API v1 => user more need need => need old: 1.0.0; *stable: 1.0.0 | user *c: 1.0.0
any nope 1.x | API v1 | need 2.x => user more need need => need old: 1.0.0; *stable: 1.0.0 | user *c: 1.0.0
all need 1.x | more 1.x => user need more more need => more *c: 1.0.0 | need *stable: 1.1.0 | user *c: 1.0.0
nope 1.x => user => user *c: 1.0.0 | MISSING package nope 1.x
need >=7.0.0 => user need => user *c: 1.0.0 | MISSING package need >=7.0.0
all API v1 | nope 1.x => user more need => user *c: 1.0.0 | MISSING all of (API g.io/v1 K, package nope 1.x)
need <2.0.0 / inputs: [{catalog: a, select: {packages: [{name: user}, {name: need, channels: [{name: stable}]}]}}] \
    => need user => need *stable: 2.0.0 | user *c: 1.0.0 | package user: user.v1.0.0 requires package need <2.0.0; \
    the result has other versions of need: select one that fits
need 1.x / inputs: [{catalog: a}] // remove: [{package: need}] => more user => more *c: 1.0.0 | user *c: 1.0.0 | MISSING package \
    need 1.x";

#[test]
fn include_takes_the_highest_bundle_that_fits_or_notices_that_none_does() {
    let more = package("more", "c: 1.0.0");
    for row in INCLUDED.lines() {
        let [case, reads, expected] = row.split(" => ").collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let (required, select) = case.split_once(" / ").unwrap_or((case, USER));
        let user = user("user", required);
        let packages = [("more", &*more), ("need", &need()), ("user", &user)];
        let mut catalogs = [MemoryCatalog::new(&packages)];
        let composed = include(&select.replace(" // ", "\n"), &mut catalogs);
        let expected = match expected.split_once("MISSING ") {
            Some((result, missing)) => {
                format!(
                    "{result}package user: user.v1.0.0 requires {missing}, which no package of the result provides"
                )
            }
            None => expected.to_owned(),
        };
        assert_eq!(
            composed.text(&composed.explanation.notices),
            expected,
            "{row}"
        );
        assert_eq!(catalogs[0].reads.join(" "), reads, "{row}");
    }
}

#[test]
fn include_follows_requirements_around_a_cycle_and_explains_them() {
    let packages = [
        ("user", "need-b 1.x"),
        ("need-b", "need-c 1.x"),
        ("need-c", "user 1.x"),
    ];
    let packages = packages.map(|(name, required)| (name, user(name, required)));
    let packages: Vec<(&str, &str)> = packages
        .iter()
        .map(|(name, lines)| (*name, lines.as_str()))
        .collect();
    let composed = include(USER, &mut [MemoryCatalog::new(&packages)]);
    assert_eq!(
        composed.text(&[]),
        "need-b *c: 1.0.0 | need-c *c: 1.0.0 | user *c: 1.0.0"
    );
    assert_eq!(
        composed.decisions(),
        [
            "true user.v1.0.0 head of c",
            "true need-b.v1.0.0 included: user.v1.0.0 of user requires package need-b 1.x",
            "true need-c.v1.0.0 included: need-b.v1.0.0 of need-b requires package need-c 1.x",
        ]
    );
}

#[test]
fn include_takes_the_first_input_that_has_it() {
    let (first, second) = (package("need", "c: 1.5.0"), package("need", "c: 3.0.0"));
    for (required, expected) in [
        ("need >=1.0.0", "need *c: 1.5.0"),
        ("need >=2.0.0", "need *c: 3.0.0"),
    ] {
        let user = user("user", required);
        let mut catalogs = [
            MemoryCatalog::new(&[("need", &first), ("user", &user)]),
            MemoryCatalog::new(&[("need", &second), ("other", &package("other", "c: 1.0.0"))]),
        ];
        let select = "inputs: [{catalog: a, select: {packages: [{name: user}]}}, {catalog: b, select: {packages: [{name: other}]}}]";
        let expected = format!("{expected} | other *c: 1.0.0 | user *c: 1.0.0");
        assert_eq!(include(select, &mut catalogs).text(&[]), expected);
    }
}

#[test]
fn include_of_bundles_that_nothing_connects_takes_the_whole_package() {
    let (one, two) = (user("user", "need 1.0.0"), user("two", "need 2.0.0"));
    // The whole package has a bundle with a requirement of its own.
    let need = with_property(
        &need(),
        "1.1.0",
        "olm.package.required",
        &required("more", "1.x"),
    );
    let packages = [
        ("more", &*package("more", "c: 1.0.0")),
        ("need", &need),
        ("two", &two),
        ("user", &one),
    ];
    let select = "inputs: [{catalog: a, select: {packages: [{name: user}, {name: two}]}}]";
    let composed = include(select, &mut [MemoryCatalog::new(&packages)]);
    assert_eq!(
        composed.text(&[]),
        "more *c: 1.0.0 | need old: 0.9.0 1.0.0; *stable: 1.0.0 1.1.0 2.0.0 | two *c: 1.0.0 | user *c: 1.0.0"
    );
    let decisions = composed.decisions().join("\n");
    assert_eq!(
        decisions.matches("true  included: ").count(),
        1,
        "{decisions}"
    );
    assert!(
        decisions.contains("the whole package, because"),
        "{decisions}"
    );
}

/// Versions of each package, how many of them are also in a second channel, and for some bundles a
/// requirement.
type RandomPackage = (usize, usize, Vec<(usize, usize, usize, bool)>);

fn random_packages() -> impl Strategy<Value = Vec<RandomPackage>> {
    let requirement = (0..4_usize, 0..6_usize, 0..4_usize, any::<bool>());
    vec((1..5_usize, 0..4_usize, vec(requirement, 0..3)), 6)
}

fn random_lines(at: usize, (versions, fast, requirements): &RandomPackage) -> String {
    let entry = |at: usize| match at {
        0 => "1.0.0".to_owned(),
        at => format!("1.{at}.0<1.{}.0", at - 1),
    };
    let stable: Vec<String> = (0..*versions).map(entry).collect();
    let fast = &stable[versions.saturating_sub(*fast)..];
    let name = format!("p{at}");
    let mut channels = format!("stable: {}", stable.join(" "));
    if !fast.is_empty() {
        channels += &format!("; fast: {}", fast.join(" "));
    }
    let api = |at: usize, version: usize| {
        format!(
            r#"{{"group":"g","kind":"P{at}","version":"v{}"}}"#,
            version % 2
        )
    };
    let mut lines = package(&name, &channels);
    for version in 0..*versions {
        lines = with_property(
            &lines,
            &format!("1.{version}.0"),
            "olm.gvk",
            &api(at, version),
        );
    }
    for (bundle, of, version, is_api) in requirements {
        let package = || required(&format!("p{of}"), &format!("1.{version}.0"));
        let (kind, value) = match is_api {
            true => ("olm.gvk.required", api(*of, *version)),
            false => ("olm.package.required", package()),
        };
        lines = with_property(&lines, &format!("1.{bundle}.0"), kind, &value);
    }
    lines
}

proptest! {
    #[test]
    fn include_leaves_nothing_missing_that_an_input_has(packages in random_packages(), selected in 1..3_usize) {
        let texts: Vec<(String, String)> = packages
            .iter()
            .enumerate()
            .map(|(at, package)| (format!("p{at}"), random_lines(at, package)))
            .collect();
        let texts: Vec<(&str, &str)> = texts.iter().map(|(name, lines)| (name.as_str(), lines.as_str())).collect();
        let names: Vec<String> = (0..selected).map(|at| format!("{{name: p{at}}}")).collect();
        let select = format!("inputs: [{{catalog: a, select: {{packages: [{}]}}}}]", names.join(", "));
        let result = include(&select, &mut [MemoryCatalog::new(&texts)]).packages;
        for (name, lines) in &result {
            prop_assert_eq!(errors(name, lines), Vec::<String>::new());
        }
        let (inputs, result) = (texts.iter().map(|(_, lines)| *lines).collect(), result.into_values().collect());
        let has = |lines: &String, bundle: &str| lines.contains(&format!(r#""name":"{bundle}","package":"#));
        for (at, (_, _, requirements)) in packages.iter().enumerate() {
            for (bundle, of, version, is_api) in requirements {
                let by = format!("p{at}.v1.{bundle}.0");
                if !has(&result, &by) || *of < selected {
                    continue;
                }
                let fitting: BTreeSet<String> = (0..8_usize)
                    .filter(|other| if *is_api { other % 2 == version % 2 } else { other == version })
                    .map(|other| format!("p{of}.v1.{other}.0"))
                    .collect();
                let in_inputs = fitting.iter().any(|bundle| has(&inputs, bundle));
                let in_result = fitting.iter().any(|bundle| has(&result, bundle));
                prop_assert_eq!(in_result, in_inputs, "{} requires {:?}", by, fitting);
            }
        }
    }
}
