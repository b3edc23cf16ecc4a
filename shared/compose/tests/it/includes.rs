//! Packages that `dependencies: include` takes along.

use std::collections::{BTreeMap, BTreeSet};

use catalog_mirror_compose::Composition;
use olm::{Severity, ShardValidator};
use proptest::{collection::vec, prelude::*};
use rstest::rstest;

use crate::support::{
    ComposedCatalog, MemoryCatalog, api, compose, package, required, requirement, summary, with_property,
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
    let composition: Composition = serde_saphyr::from_str(&format!("{yaml}\ndependencies: include")).unwrap();
    catalogs.iter_mut().for_each(|catalog| catalog.can_reread = true);
    compose(&composition, catalogs).unwrap()
}

/// Returns the lines of each package of the result.
fn lines(composed: &ComposedCatalog, catalogs: &[MemoryCatalog]) -> BTreeMap<String, String> {
    let packages = composed.packages.iter().map(|(name, lines)| {
        let lines = lines
            .clone()
            .unwrap_or_else(|input| catalogs[input].lines[name].clone());
        (name.clone(), lines)
    });
    packages.collect()
}

/// Returns the packages of the result with their channels, and the notices.
fn described(composed: &ComposedCatalog, catalogs: &[MemoryCatalog]) -> String {
    let packages = lines(composed, catalogs);
    let packages = packages
        .iter()
        .map(|(name, lines)| format!("{name} {}", summary(name, lines)));
    packages
        .chain(composed.explanation.notices.iter().cloned())
        .collect::<Vec<_>>()
        .join(" | ")
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

/// Requirement of a package `user` beside packages `more` and `need`, the selection, and the packages of the result. Without a
/// selection only `user` is selected. `MISSING` stands for the notice about what follows.
const INCLUDED: &str = "\
need >=1.0.0 <2.0.0 => need *stable: 1.1.0 | user *c: 1.0.0
need >=1.0.0 => need *stable: 2.0.0 | user *c: 1.0.0
need <1.0.0 => need *old: 0.9.0 | user *c: 1.0.0
API v1 => need old: 1.0.0; *stable: 1.0.0 | user *c: 1.0.0
any nope 1.x | API v1 | need 2.x => need old: 1.0.0; *stable: 1.0.0 | user *c: 1.0.0
all need 1.x | more 1.x => more *c: 1.0.0 | need *stable: 1.1.0 | user *c: 1.0.0
nope 1.x => user *c: 1.0.0 | MISSING package nope 1.x
need >=7.0.0 => user *c: 1.0.0 | MISSING package need >=7.0.0
all API v1 | nope 1.x => user *c: 1.0.0 | MISSING all of (API g.io/v1 K, package nope 1.x)
need <2.0.0 / inputs: [{catalog: a, select: {packages: [{name: user}, {name: need, channels: [{name: stable}]}]}}] \
    => need *stable: 2.0.0 | user *c: 1.0.0 | package user: user.v1.0.0 requires package need <2.0.0; \
    the result has other versions of need: select one that fits
need 1.x / inputs: [{catalog: a}] // remove: [{package: need}] => more *c: 1.0.0 | user *c: 1.0.0 | MISSING package need 1.x";

#[test]
fn include_takes_the_highest_bundle_that_fits_or_notices_that_none_does() {
    let more = package("more", "c: 1.0.0");
    for row in INCLUDED.lines() {
        let (case, expected) = row.split_once(" => ").unwrap();
        let (required, select) = case.split_once(" / ").unwrap_or((case, USER));
        let user = user("user", required);
        let mut catalogs = [MemoryCatalog::new(&[
            ("more", &more),
            ("need", &need()),
            ("user", &user),
        ])];
        let composed = include(&select.replace(" // ", "\n"), &mut catalogs);
        let expected = match expected.split_once("MISSING ") {
            Some((result, missing)) => {
                format!("{result}package user: user.v1.0.0 requires {missing}, which no package of the result provides")
            }
            None => expected.to_owned(),
        };
        assert_eq!(described(&composed, &catalogs), expected, "{row}");
    }
}

#[test]
fn include_follows_requirements_around_a_cycle_and_explains_them() {
    let packages = [("user", "need-b"), ("need-b", "need-c"), ("need-c", "user")];
    let packages = packages.map(|(name, of)| (name, user(name, &format!("{of} 1.x"))));
    let packages: Vec<(&str, &str)> = packages.iter().map(|(name, lines)| (*name, lines.as_str())).collect();
    let mut catalogs = [MemoryCatalog::new(&packages)];
    let composed = include(USER, &mut catalogs);
    assert_eq!(
        described(&composed, &catalogs),
        "need-b *c: 1.0.0 | need-c *c: 1.0.0 | user *c: 1.0.0"
    );
    let decisions = composed.explanation.decisions.iter().flatten();
    let decisions: Vec<String> = decisions
        .map(|decision| format!("{} {} {}", decision.kept, decision.bundle, decision.reason))
        .collect();
    assert_eq!(
        decisions,
        [
            "true user.v1.0.0 head of c",
            "true need-b.v1.0.0 included: user.v1.0.0 of user requires package need-b 1.x",
            "true need-c.v1.0.0 included: need-b.v1.0.0 of need-b requires package need-c 1.x",
        ]
    );
}

#[rstest]
#[case::first_input_wins(">=1.0.0", "need *c: 1.5.0")]
#[case::second_has_the_version(">=2.0.0", "need *c: 3.0.0")]
fn include_takes_the_first_input_that_has_it(#[case] range: &str, #[case] expected: &str) {
    let (first, second) = (package("need", "c: 1.5.0"), package("need", "c: 3.0.0"));
    let user = user("user", &format!("need {range}"));
    let mut catalogs = [
        MemoryCatalog::new(&[("need", &first), ("user", &user)]),
        MemoryCatalog::new(&[("need", &second), ("other", &package("other", "c: 1.0.0"))]),
    ];
    let select =
        "inputs: [{catalog: a, select: {packages: [{name: user}]}}, {catalog: b, select: {packages: [{name: other}]}}]";
    let composed = include(select, &mut catalogs);
    let expected = format!("{expected} | other *c: 1.0.0 | user *c: 1.0.0");
    assert_eq!(described(&composed, &catalogs), expected);
}

#[test]
fn include_of_bundles_that_nothing_connects_takes_the_whole_package() {
    let one = user("user", "need 1.0.0");
    let two = user("two", "need 2.0.0");
    // The whole package has a bundle with a requirement of its own.
    let need = with_property(&need(), "1.1.0", "olm.package.required", &required("more", "1.x"));
    let more = package("more", "c: 1.0.0");
    let packages: [(&str, &str); 4] = [("more", &more), ("need", &need), ("two", &two), ("user", &one)];
    let mut catalogs = [MemoryCatalog::new(&packages)];
    let select = "inputs: [{catalog: a, select: {packages: [{name: user}, {name: two}]}}]";
    let composed = include(select, &mut catalogs);
    assert_eq!(
        described(&composed, &catalogs),
        "more *c: 1.0.0 | need old: 0.9.0 1.0.0; *stable: 1.0.0 1.1.0 2.0.0 | two *c: 1.0.0 | user *c: 1.0.0"
    );
    let whole = composed.explanation.decisions.iter().flatten();
    let whole = whole.filter(|decision| decision.package == "need" && decision.bundle.is_empty());
    assert_eq!(
        whole
            .filter(|decision| decision.reason.contains("whole package"))
            .count(),
        1
    );
}

#[test]
fn include_reads_other_packages_only_for_what_is_missing() {
    let reads = |user: String| {
        let more = package("more", "c: 1.0.0");
        let mut catalogs = [MemoryCatalog::new(&[
            ("more", &more),
            ("need", &need()),
            ("user", &user),
        ])];
        include(USER, &mut catalogs);
        catalogs[0].reads.join(" ")
    };
    let other = with_property(&package("user", "c: 1.0.0"), "1.0.0", "other", "{}");
    assert_eq!(reads(other), "user");
    assert_eq!(reads(user("user", "need 1.x")), "user need need");
    assert_eq!(reads(user("user", "API v1")), "user more need need");
}

/// Versions of each package, how many of them are also in a second channel, and for some bundles a requirement.
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
    let api = |at: usize, version: usize| format!(r#"{{"group":"g","kind":"P{at}","version":"v{}"}}"#, version % 2);
    let mut lines = package(&name, &channels);
    for version in 0..*versions {
        lines = with_property(&lines, &format!("1.{version}.0"), "olm.gvk", &api(at, version));
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
        let mut catalogs = [MemoryCatalog::new(&texts)];
        let names: Vec<String> = (0..selected).map(|at| format!("{{name: p{at}}}")).collect();
        let composed = include(
            &format!("inputs: [{{catalog: a, select: {{packages: [{}]}}}}]", names.join(", ")),
            &mut catalogs,
        );
        let result = lines(&composed, &catalogs);
        for (name, lines) in &result {
            prop_assert_eq!(errors(name, lines), Vec::<String>::new());
        }
        let inputs: BTreeMap<String, String> = catalogs[0].lines.clone();
        let has = |texts: &BTreeMap<String, String>, bundle: &str| {
            let line = format!(r#""name":"{bundle}","package":"#);
            texts.values().any(|lines| lines.contains(&line))
        };
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
