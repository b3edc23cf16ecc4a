//! The sixteen combinations of oc-mirror v2's acceptance table, and what breaks a channel.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use catalog_mirror_compose::Selection;
use rstest::rstest;

use crate::support::{apply, bundle, package, select, selection, summary};

fn db() -> String {
    package(
        "db",
        "stable: 1.0.0 1.1.0<1.0.0 1.2.0<1.1.0; fast: 1.1.0 1.2.0<1.1.0 2.0.0<1.2.0; old: 0.9.0",
    )
}

fn web() -> String {
    package("web", "alpha: 3.0.0 3.1.0<3.0.0")
}

/// Returns what a selection takes of both packages, or the error.
fn taken(yaml: &str) -> String {
    let selection = selection(yaml);
    let mut text = String::new();
    for (name, lines) in [("db", db()), ("web", web())] {
        match select(&selection, name, &lines) {
            Ok(None) => {}
            Ok(Some(kept)) => writeln!(text, "{name} {}", summary(name, &kept)).unwrap(),
            Err(error) => writeln!(text, "{error}").unwrap(),
        }
    }
    text.trim_end().to_owned()
}

/// Versions as people write them for oc-mirror v2: parts may be missing, and a pre-release is only in a range that names one.
#[rstest]
#[case::two_numbers("minVersion: '2.11'", "2.11.0 2.11.1")]
#[case::leading_v("minVersion: v2.11.0", "2.11.0 2.11.1")]
#[case::two_numbers_above("minVersion: 2.10.0, maxVersion: '2.11'", "2.10.0 2.11.0 2.11.1")]
#[case::head_is_a_prerelease("minVersion: 2.11.0, maxVersion: 2.12.0", "2.11.0 2.11.1")]
#[case::prerelease_named("minVersion: 2.11.0-0, maxVersion: 2.12.0", "2.11.0 2.11.1 2.12.0-rc.1")]
#[case::one_version("minVersion: '2.11', maxVersion: '2.11'", "2.11.0")]
#[case::one_prerelease("minVersion: 2.12.0-rc.1, maxVersion: 2.12.0-rc.1", "2.12.0-rc.1")]
#[case::range("versionRange: ~2.11", "2.11.0 2.11.1")]
fn selection_of_versions_takes_what_oc_mirror_takes(#[case] bounds: &str, #[case] expected: &str) {
    let lines = package("op", "stable: 2.10.0 2.11.0<2.10.0 2.11.1<2.11.0 2.12.0-rc.1<2.11.1");
    let selection = selection(&format!("packages: [{{name: op, {bounds}}}]"));
    let kept = select(&selection, "op", &lines).unwrap().unwrap();
    assert_eq!(summary("op", &kept), format!("*stable: {expected}"));
}

#[test]
fn selection_takes_the_promised_bundles_or_says_what_to_change() {
    let rows: Vec<&str> = include_str!("rows.txt").split("\n\n").skip(1).collect();
    assert_eq!(rows.len(), 38);
    for row in rows {
        let mut parts = row.trim_end().splitn(3, '\n');
        let [name, yaml, expected] = [(); 3].map(|()| parts.next().unwrap());
        assert_eq!(taken(yaml), expected, "{name}");
    }
}

/// Parses a row such as `what / entries / rule => expected`: the lines of package `p` with these entries in channel `c`, the
/// selection of the package by this rule, and the expected text.
fn row_of(row: &str) -> (String, Selection, &str) {
    let (case, expected) = row.split_once(" => ").unwrap();
    let [_, entries, rule] = case.split(" / ").collect::<Vec<_>>()[..] else {
        panic!("{row}")
    };
    let selected = selection(&format!("packages: [{{name: p, {rule}}}]"));
    (package("p", &format!("c: {entries}")), selected, expected)
}

/// Entries outside of the range that lie between two inside are taken along, and a notice says so: case, the entries, the rule, and
/// the entries that are taken.
const CONNECTED: &str = "\
prerelease between / 1.0.0 1.1.0-rc.1<1.0.0 1.1.0<1.1.0-rc.1 / minVersion: 1.0.0 => 1.0.0 1.1.0 1.1.0-rc.1
backport between / 1.0.0 0.9.9<1.0.0 1.1.0<0.9.9 / minVersion: 1.0.0 => 0.9.9 1.0.0 1.1.0
outside stays out / 0.8.0 1.0.0<0.8.0 1.1.0-rc.1<1.0.0 1.1.0<1.1.0-rc.1 1.2.0-rc.1<1.1.0 / minVersion: 1.0.0, maxVersion: 1.9.0 \
    => 1.0.0 1.1.0 1.1.0-rc.1
skipped above / 1.0.0 1.0.1 1.1.0-rc.1<1.0.0 1.1.0<1.1.0-rc.1,-1.0.1 2.0.0<1.1.0 / maxVersion: 1.1.0 => 1.0.0 1.0.1 1.1.0 1.1.0-rc.1";

#[test]
fn selection_of_versions_takes_what_connects_them() {
    for row in CONNECTED.lines() {
        let (lines, selection, expected) = row_of(row);
        let (kept, explanation) = apply(&selection, "p", &lines).unwrap();
        assert_eq!(summary("p", &kept.unwrap_or(lines)), format!("*c: {expected}"));
        let [notice] = &explanation.notices[..] else {
            panic!("{:?}", explanation.notices);
        };
        assert!(notice.starts_with("package p, channel c: p.v"), "{notice}");
    }
}

/// Fault, the entries, the rule, and the error after the package and the channel.
const BROKEN: &str = "\
max leaves two heads / 1.0.0 1.1.0<1.0.0 1.1.1<1.0.0 1.2.0<1.1.0,-1.1.1 / maxVersion: 1.1.9 => with versions <=1.1.9 the channel \
    has several heads: p.v1.1.0, p.v1.1.1; select also what connects them: p.v1.2.0
cycle has no head / 1.0.0<1.1.0 1.1.0<1.0.0 / full: false => with heads only the channel has no head: its entries replace or skip \
    each other in a cycle; the catalog has the channel so: select other channels, or bundles by name
cycle below the head / 1.0.0<1.1.0 1.1.0<1.0.0 1.2.0<1.1.0 2.0.0 / maxVersion: 1.9.0 => with versions <=1.9.0 the channel has a \
    cycle of replaces through p.v1.1.0; the catalog has the channel so: select other channels, or bundles by name
skips in a circle / 1.0.0<-1.1.0 1.1.0<-1.0.0 1.2.0 2.0.0<1.2.0,-1.0.0 / maxVersion: 1.9.0 => with versions <=1.9.0 the channel \
    has entries that its head does not reach: p.v1.0.0, p.v1.1.0; select also what connects them: p.v2.0.0
several heads in the catalog / 1.0.0 2.0.0 / full: false => with heads only the channel has several heads: p.v1.0.0, p.v2.0.0; \
    the catalog has the channel so: select other channels, or bundles by name";

#[test]
fn selection_that_breaks_a_channel_is_refused() {
    for row in BROKEN.lines() {
        let (lines, selection, expected) = row_of(row);
        let expected = format!("package p, channel c: {expected}");
        assert_eq!(select(&selection, "p", &lines).unwrap_err(), expected);
    }
}

#[test]
fn apply_keeps_a_list_of_deprecations_that_is_null() {
    let deprecations = "{\"entries\":null,\"package\":\"db\",\"schema\":\"olm.deprecations\"}\n";
    let selection = selection("packages: [{name: db, channels: [{name: stable}]}]");
    let (kept, _) = apply(&selection, "db", &[db(), deprecations.to_owned()].concat()).unwrap();
    assert!(kept.unwrap().ends_with(deprecations));
}

#[test]
fn apply_keeps_unchanged_lines_and_drops_what_names_gone_bundles() {
    let other = |name: &str, field: &str| {
        format!("{{\"name\":\"{name}\",\"n\":12345678901234567890,\"package\":\"db\",{field}\"schema\":\"x.y\"}}\n")
    };
    let deprecations = r#"{"entries":[{"message":"m1","reference":{"name":"db.v1.0.0","schema":"olm.bundle"}},{"message":"m2","reference":{"name":"db.v1.2.0","schema":"olm.bundle"}},{"message":"m3","reference":{"name":"old","schema":"olm.channel"}},{"message":"m4","reference":{"schema":"olm.package"}}],"package":"db","schema":"olm.deprecations"}"#;
    let lines = [
        db(),
        format!("{deprecations}\n"),
        other("a", ""),
        other("db.v1.0.0", ""),
        other("b", "\"channel\":\"old\","),
        other("old", "").replace("x.y", "io.openshift.operators.lifecycles.v1alpha1"),
    ]
    .concat();
    let selection = selection("packages: [{name: db, channels: [{name: stable}]}]");
    let (kept, explanation) = apply(&selection, "db", &lines).unwrap();
    let deprecations = r#"{"entries":[{"message":"m2","reference":{"name":"db.v1.2.0","schema":"olm.bundle"}},{"message":"m4","reference":{"schema":"olm.package"}}],"package":"db","schema":"olm.deprecations"}"#;
    let expected = [
        r#"{"defaultChannel":"stable","name":"db","schema":"olm.package"}"#,
        "\n",
        r#"{"entries":[{"name":"db.v1.2.0","replaces":"db.v1.1.0"}],"name":"stable","package":"db","schema":"olm.channel"}"#,
        "\n",
        &bundle("db", "1.2.0"),
        deprecations,
        "\n",
        &other("a", ""),
        &other("old", "").replace("x.y", "io.openshift.operators.lifecycles.v1alpha1"),
    ];
    assert_eq!(kept, Some(expected.concat()));
    assert_eq!(
        explanation.notices,
        [
            "package db: a document of schema \"x.y\" was dropped, because it names db.v1.0.0, which is not selected",
            "package db: a document of schema \"x.y\" was dropped, because it names old, which is not selected",
        ]
    );
    let decisions = explanation.decisions.unwrap();
    let reasons = decisions
        .iter()
        .map(|decision| (decision.bundle.as_str(), decision.reason.as_str()));
    assert_eq!(
        reasons.collect::<Vec<_>>(),
        [
            ("db.v0.9.0", "channel old is not selected"),
            ("db.v1.0.0", "not the head of stable"),
            ("db.v1.1.0", "channel fast is not selected, not the head of stable"),
            ("db.v1.2.0", "head of stable"),
            ("db.v2.0.0", "channel fast is not selected"),
        ]
    );
}

#[test]
fn apply_unreadable_document_is_refused_unless_whole() {
    let lines = "{\"entries\":7,\"name\":\"c\",\"package\":\"p\",\"schema\":\"olm.channel\"}\n";
    let error = select(&Selection::default(), "p", lines).unwrap_err();
    assert!(
        error.starts_with("package p: the olm.channel \"c\" cannot be read: "),
        "{error}"
    );
    let whole = selection("full: true");
    assert_eq!(apply(&whole, "p", lines).unwrap().0, None);
}

#[test]
fn apply_single_head_is_whole() {
    let lines = package("p", "c: 1.0.0");
    assert_eq!(apply(&Selection::default(), "p", &lines).unwrap().0, None);
}

/// A chain of 20,000 entries, one where each skips 20 others, and a cycle of 20,000. Twice the entries may take twice the
/// time; quadratic work would take minutes.
#[test]
fn apply_hostile_channel_takes_linear_time() {
    const ENTRIES: usize = 20_000;
    let begin = Instant::now();
    let chain: Vec<String> = (0..ENTRIES)
        .map(|at| match at {
            0 => "0.0.0".to_owned(),
            _ => format!("0.0.{at}<0.0.{}", at - 1),
        })
        .collect();
    let skips: Vec<String> = (0..ENTRIES)
        .map(|at| {
            let skipped: Vec<String> = (at.saturating_sub(20)..at)
                .map(|skipped| format!("-0.0.{skipped}"))
                .collect();
            format!("0.0.{at}<{}", skipped.join(","))
        })
        .collect();
    let cycle: Vec<String> = (0..ENTRIES)
        .map(|at| format!("0.0.{at}<0.0.{}", (at + 1) % ENTRIES))
        .collect();
    for (entries, valid) in [(chain, true), (skips, true), (cycle, false)] {
        let lines = package("p", &format!("c: {}", entries.join(" ")));
        let half = selection("packages: [{name: p, minVersion: 0.0.10000}]");
        let heads = Selection::default();
        assert!(select(&half, "p", &lines).is_ok());
        assert_eq!(select(&heads, "p", &lines).is_ok(), valid);
    }
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
}
