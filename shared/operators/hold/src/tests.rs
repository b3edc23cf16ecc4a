use std::collections::BTreeMap;

use olm::PackageParser;

use super::*;

type Catalog = BTreeMap<String, String>;

/// Returns the lines of a package with one channel, in which each version replaces the one before.
fn package(channel: &str, versions: &[u64]) -> String {
    let mut lines = format!(r#"{{"schema":"olm.package","defaultChannel":"{channel}"}}"#) + "\n";
    let mut entries = Vec::new();
    for (at, version) in versions.iter().enumerate() {
        let replaces = match at {
            0 => String::new(),
            _ => format!(r#","replaces":"b.v{}""#, versions[at - 1]),
        };
        entries.push(format!(r#"{{"name":"b.v{version}"{replaces}}}"#));
        lines += &format!(
            r#"{{"schema":"olm.bundle","name":"b.v{version}","image":"r.io/b:{version}","properties":[{{"type":"olm.package","value":{{"version":"{version}.0.0"}}}}]}}"#
        );
        lines.push('\n');
    }
    let entries = entries.join(",");
    lines
        + &format!(r#"{{"schema":"olm.channel","name":"{channel}","entries":[{entries}]}}"#)
        + "\n"
}

/// Returns a catalog of so many packages, each with three versions.
fn catalog(packages: usize) -> Catalog {
    let names = (0..packages).map(|at| format!("p{at:02}"));
    names
        .map(|name| (name, package("stable", &[1, 2, 3])))
        .collect()
}

fn reasons(rules: &[HoldRule], old: &Catalog, new: &Catalog) -> Vec<String> {
    let rules = rules.iter().copied().collect();
    let installed = [InstalledVersion {
        package: "p00".to_owned(),
        channel: None,
        start: UpgradeStep::start("", Some("1.0.0")),
    }];
    let mut comparison = HoldComparison::new(&rules, &installed, old.len());
    for (name, lines) in old {
        let new = new.get(name);
        if new != Some(lines) {
            let before = PackageParser::parse(lines.as_bytes());
            let after = new.map(|lines| PackageParser::parse(lines.as_bytes()));
            comparison
                .add(name, &before, after.as_ref(), &Budget::default())
                .unwrap();
        }
    }
    comparison.reasons()
}

/// Returns the words of the rules that hold, of all rules.
fn held(old: &Catalog, new: &Catalog) -> String {
    let words = |reason: String| {
        let word = reason.split(['(', ')']).nth(1).unwrap();
        word.to_owned()
    };
    let reasons = reasons(HoldRule::ALL, old, new).into_iter();
    reasons.map(words).collect::<Vec<_>>().join(" ")
}

/// Changes the first packages of a catalog.
fn changed(catalog: &Catalog, packages: usize, change: impl Fn(&str) -> String) -> Catalog {
    let mut changed = catalog.clone();
    for lines in changed.values_mut().take(packages) {
        *lines = change(lines);
    }
    changed
}

/// A change of one package, the number of packages with it of twelve, and the rules that hold.
type Row = (&'static str, fn(&str) -> String, usize, &'static str);

const ROWS: &[Row] = &[
    ("update", |_| package("stable", &[1, 2, 3, 4]), 3, ""),
    (
        "update",
        |_| package("stable", &[1, 2, 3, 4]),
        4,
        "many-channels",
    ),
    (
        "rendering",
        |lines| lines.replace(r#""image":"#, r#""relatedImages":[],"image":"#),
        12,
        "",
    ),
    (
        "rendering",
        |lines| {
            lines.replace(
                r#""properties":["#,
                r#""properties":[{"type":"x","value":1},"#,
            )
        },
        12,
        "",
    ),
    (
        "image",
        |lines| lines.replace("r.io/b:2", "r.io/b:x"),
        1,
        "bundle",
    ),
    (
        "image",
        |lines| lines.replace("r.io/b:2", "r.io/b:x"),
        2,
        "many-bundles",
    ),
    (
        "version",
        |lines| lines.replace("2.0.0", "2.0.1"),
        2,
        "many-bundles",
    ),
    ("head back", |_| package("stable", &[1, 2]), 1, "head"),
    (
        "head back",
        |_| package("stable", &[1, 2]),
        4,
        "many-channels head",
    ),
    (
        "channel renamed",
        |_| package("fast", &[1, 2, 3]),
        1,
        "channel",
    ),
    (
        "first version gone",
        |_| package("stable", &[2, 3]),
        1,
        "installed",
    ),
    (
        "way lost",
        |lines| lines.replace(r#","replaces":"b.v1""#, ""),
        1,
        "installed",
    ),
    (
        "other channel for the same versions",
        |lines| lines.to_owned() + &package("fast", &[1, 2, 3]),
        3,
        "",
    ),
    (
        "deprecated",
        |lines| {
            lines.to_owned()
                + r#"{"schema":"olm.deprecations","entries":[{"reference":{"schema":"olm.package"},"message":"x"}]}"#
                + "\n"
        },
        12,
        "many-deprecated",
    ),
    (
        "head deprecated",
        |lines| {
            lines.to_owned()
                + r#"{"schema":"olm.deprecations","entries":[{"reference":{"schema":"olm.bundle","name":"b.v3"},"message":"x"}]}"#
                + "\n"
        },
        4,
        "many-deprecated",
    ),
    (
        "old version deprecated",
        |lines| {
            lines.to_owned()
                + r#"{"schema":"olm.deprecations","entries":[{"reference":{"schema":"olm.bundle","name":"b.v1"},"message":"x"}]}"#
                + "\n"
        },
        12,
        "",
    ),
];

#[test]
fn comparison_holds_what_the_table_says() {
    let old = catalog(12);
    for (what, change, packages, expected) in ROWS {
        let new = changed(&old, *packages, change);
        assert_eq!(held(&old, &new), *expected, "{what} in {packages}");
    }
}

#[test]
fn package_that_is_gone_counts_and_one_that_is_new_does_not() {
    let old = catalog(12);
    let mut new = old.clone();
    new.remove("p00");
    assert_eq!(held(&old, &new), "package installed");
    for name in ["p01", "p02", "p03"] {
        new.remove(name);
    }
    assert_eq!(held(&old, &new), "many-channels package installed");
    assert_eq!(held(&new, &old), "");
}

#[test]
fn many_are_a_third_and_at_least_four() {
    for (packages, many) in [
        (1, 4),
        (4, 4),
        (9, 4),
        (12, 4),
        (13, 5),
        (300, 100),
        (301, 101),
    ] {
        assert_eq!(
            HoldRule::ManyChannels.packages_min(packages),
            many,
            "{packages}"
        );
    }
}

#[test]
fn default_rules_hold_many_packages_only() {
    let old = catalog(12);
    let default = |new: &Catalog| reasons(&HoldRule::DEFAULT, &old, new);
    let back = |_: &str| package("stable", &[1, 2]);
    assert_eq!(default(&changed(&old, 3, back)), [""; 0]);
    let text = "the channels of 12 of 12 packages change at once (many-channels): p00: stable has the head b.v2, was b.v3, \
                p01: stable has the head b.v2, was b.v3, p02: stable has the head b.v2, was b.v3, \
                p03: stable has the head b.v2, was b.v3, p04: stable has the head b.v2, was b.v3, and 7 more";
    assert_eq!(default(&changed(&old, 12, back)), [text]);
    let images = |lines: &str| lines.replace("r.io/b", "r.io/c");
    let text = "bundles of 2 of 12 packages change in place (many-bundles): \
                p00: b.v1 has the image r.io/c:1, was r.io/b:1, and 2 more bundles, \
                p01: b.v1 has the image r.io/c:1, was r.io/b:1, and 2 more bundles";
    assert_eq!(default(&changed(&old, 2, images)), [text]);
}

#[test]
fn comparison_that_cannot_hold_needs_no_package() {
    let can_hold = |rules: &[HoldRule], differing, gone| {
        let rules = rules.iter().copied().collect();
        HoldComparison::new(&rules, &[], 30).can_hold(differing, gone)
    };
    assert!(!can_hold(&HoldRule::DEFAULT, 1, 0) && can_hold(&HoldRule::DEFAULT, 2, 0));
    let channels = [HoldRule::ManyChannels];
    assert!(!can_hold(&channels, 9, 3) && can_hold(&channels, 10, 0));
    assert!(can_hold(&[HoldRule::Head], 1, 0) && !can_hold(&[HoldRule::Head], 0, 0));
    assert!(!can_hold(&[HoldRule::Package], 9, 0) && can_hold(&[HoldRule::Package], 1, 1));
    assert!(!can_hold(&[HoldRule::Validation], 9, 9));
}

#[test]
fn foreign_names_are_escaped_and_cut() {
    let old: Catalog = [("p\u{202e}".to_owned(), package("stable", &[1]))].into();
    let new: Catalog = [("p\u{202e}".to_owned(), package(&"x".repeat(200), &[1]))].into();
    let reasons = reasons(&[HoldRule::Channel], &old, &new);
    assert_eq!(reasons.len(), 1);
    assert!(
        !reasons[0].contains('\u{202e}') && reasons[0].len() < 300,
        "{reasons:?}"
    );
}
