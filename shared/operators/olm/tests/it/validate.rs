//! The rules against a table of catalogs that break them, and properties that hold for all
//! catalogs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::mutations::{self, Catalog};
use olm::{Day, Rule, RuleViolation, SchemaCounts, Severity, ShardValidator};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Validates lines grouped by their package, as Shards hold them.
fn validate(text: &str) -> (Vec<RuleViolation>, SchemaCounts) {
    let mut shards: BTreeMap<String, String> = BTreeMap::new();
    for line in text.lines() {
        let document: Value = serde_json::from_str(line).unwrap();
        // Objects of serde_json are sorted, so this is the canonical line.
        *shards.entry(package_of(&document)).or_default() += &format!("{document}\n");
    }
    let (mut found, mut counts) = (Vec::new(), SchemaCounts::default());
    for (name, lines) in shards {
        counts.merge(shard(&name, &lines, &mut |violation| found.push(violation)));
    }
    (found, counts)
}

/// Returns the package that a document belongs to; empty for the global group.
fn package_of(document: &Value) -> String {
    let field = |name: &str| document[name].as_str().unwrap_or_default().to_owned();
    match (field("schema").as_str(), field("package")) {
        ("olm.package", package) if package.is_empty() => field("name"),
        (_, package) => package,
    }
}

fn shard(name: &str, lines: &str, sink: &mut dyn FnMut(RuleViolation)) -> SchemaCounts {
    // The tests write YAML with an error as text with a colon twice, a tab, a quote or a reserved
    // character.
    let mut validator = ShardValidator::new(name, |data| matches!(data, b"a: b" | b"hello"));
    for chunk in lines.as_bytes().chunks(1000) {
        validator.push(chunk, sink);
    }
    validator.finish(sink)
}

fn line(document: &Value) -> String {
    format!("{document}\n")
}

fn rules(text: &str) -> BTreeSet<&'static str> {
    validate(text)
        .0
        .iter()
        .map(|violation| violation.rule.code())
        .collect()
}

/// A finding about a second bundle of a version quotes the first one.
#[test]
fn bundles_of_one_version_take_no_longer_with_a_long_name() {
    let took = |length: usize| {
        let bundle = |name: &str| {
            let properties =
                json!([{"type": "olm.package", "value": {"packageName": "p", "version": "1.0.0"}}]);
            line(
                &json!({"schema": "olm.bundle", "package": "p", "name": name, "properties": properties}),
            )
        };
        let mut lines = bundle(&"b".repeat(length));
        lines.extend((0..2000).map(|at| bundle(&format!("b{at}"))));
        let began = Instant::now();
        let mut duplicates = 0;
        shard("p", &lines, &mut |violation| {
            duplicates += usize::from(violation.rule == Rule::VersionDuplicate);
        });
        assert_eq!(duplicates, 2000);
        began.elapsed()
    };
    assert!(took(1_000_000) < took(1) * 20 + Duration::from_secs(1));
}

#[test]
fn mutation_breaks_its_rule_and_near_miss_breaks_no_rule() {
    let small = Catalog::small();
    assert_eq!(validate(&small.text()).0, []);
    // The renderer refuses a file that is not FBC before its lines are validated.
    let wrong = mutations::all()
        .filter(|mutation| mutation.rule != "not-fbc")
        .filter_map(|mutation| {
            let found = rules(&small.mutated(&mutation).text());
            let as_expected = match mutation.rule {
                "valid" => found.is_empty(),
                rule => found.contains(rule),
            };
            (!as_expected).then(|| format!("{}: {}: {found:?}", mutation.rule, mutation.edits))
        });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn catalog_of_its_own_lines_is_the_same() {
    let small = Catalog::small();
    let read = Catalog::of_lines(&small.text()).unwrap();
    assert_eq!((read.text(), read.package()), (small.text(), "db"));
}

#[test]
fn rule_always_has_five_mutations() {
    // A line that is too complex has megabytes, so it has a test of its own.
    for rule in Rule::ALL.iter().filter(|rule| **rule != Rule::TooComplex) {
        let count = mutations::all()
            .filter(|mutation| mutation.rule == rule.code())
            .count();
        assert!(count >= 5, "{rule:?}: {count}");
    }
    let codes: BTreeSet<_> = Rule::ALL.iter().map(|rule| rule.code()).collect();
    assert_eq!(codes.len(), Rule::ALL.len());
    for mutation in mutations::all() {
        let rule = mutation.rule;
        assert!(rule == "valid" || codes.contains(rule), "{rule}");
    }
}

#[test]
fn violation_names_channel_bundle_line_and_value() {
    let mutation = mutations::Mutation {
        rule: "",
        edits: r#"channel /entries/2/skipRange = "\u001b1.x.y" ;; head /image = "A""#,
    };
    let (found, counts) = validate(&Catalog::small().mutated(&mutation).text());
    insta::assert_snapshot!(serde_json::to_string_pretty(&found).unwrap(), @r#"
    [
      {
        "rule": "bundle-image-invalid",
        "package": "db",
        "bundle": "db.v1.2.0",
        "detail": "\"A\": the registry or the repository is malformed",
        "line": 5
      },
      {
        "rule": "entry-skip-range-invalid",
        "package": "db",
        "channel": "stable",
        "bundle": "db.v1.2.0",
        "detail": "\"\\u{1b}1.x.y\"",
        "line": 2
      }
    ]
    "#);
    assert_eq!((counts.known, counts.other.len()), (5, 0));
}

#[test]
fn icons_and_phases_of_support_are_only_warnings() {
    let severities = Rule::ALL
        .iter()
        .filter(|rule| rule.severity() == Severity::Warning);
    let codes: Vec<&str> = severities.map(|rule| rule.code()).collect();
    let mut codes = codes.iter();
    assert!(codes.all(|code| *code == "icon-invalid" || code.starts_with("lifecycle-")));
}

#[test]
fn other_schemas_are_counted_up_to_a_limit() {
    let lines = (0..300).map(|at| line(&json!({"schema": format!("s{at}")})));
    let counts = shard("", &lines.collect::<String>(), &mut |_| ());
    assert_eq!(counts.other.values().sum::<u64>(), 300);
    assert_eq!(counts.other.len(), 101);
}

/// Returns the lines of a package with a channel of `entries`, and a bundle for each.
fn package(entries: &[Value]) -> String {
    let mut text = line(&json!({"schema": "olm.package", "name": "p", "defaultChannel": "c"}));
    text +=
        &line(&json!({"schema": "olm.channel", "name": "c", "package": "p", "entries": entries}));
    for (at, entry) in entries.iter().enumerate() {
        let property = json!({"type": "olm.package", "value": {"packageName": "p", "version": format!("1.0.{at}")}});
        let bundle = json!({
            "schema": "olm.bundle", "name": entry["name"], "package": "p", "image": "q.io/a", "properties": [property],
        });
        text += &line(&bundle);
    }
    text
}

#[test]
fn long_chain_is_walked_once_without_recursion() {
    const ENTRIES: usize = 20_000;
    let name = |at: usize| format!("b{at}");
    let chain = |at: usize| json!({"name": name(at), "replaces": name(at + 1)});
    let mut entries: Vec<Value> = (0..ENTRIES).map(chain).collect();
    assert!(rules(&package(&entries)).is_empty());
    // The last entry replaces the second, so the head stays the head.
    entries[ENTRIES - 1]["replaces"] = json!(name(1));
    assert_eq!(rules(&package(&entries)), BTreeSet::from(["channel-cycle"]));
    let all = (0..ENTRIES).map(|at| json!({"name": name(at), "skips": [name(0)]}));
    assert_eq!(
        rules(&package(&all.collect::<Vec<_>>())),
        BTreeSet::from(["channel-several-heads"])
    );
}

#[test]
fn violation_of_long_names_stays_short() {
    let name = "x".repeat(1 << 20);
    let text =
        line(&json!({"schema": "olm.channel", "name": name, "entries": [{"skipRange": name}]}));
    for violation in validate(&text).0 {
        assert!(serde_json::to_string(&violation).unwrap().len() < 4000);
    }
}

proptest! {
    #[test]
    fn any_line_is_validated_without_panic(text in "\\PC*", name in "\\PC*") {
        let line = json!({"schema": "olm.bundle", "name": name, "image": text, "properties": [
            {"type": "olm.package", "value": {"packageName": text, "version": name, "release": text}},
        ]});
        shard(&name, &format!("{line}\n{text}\n"), &mut |_| ());
    }
}

#[test]
fn line_has_at_most_131072_values_or_one_for_each_24_bytes() {
    // The fields of the channel and of its entry are ten of them.
    let most = (1 << 17) - 10;
    let skips =
        r#"{"schema":"olm.channel","package":"p","name":"c","entries":[{"name":"a","skips":["#;
    let keywords =
        r#"{"schema":"olm.bundle","properties":[{"type":"olm.csv.metadata","value":{"keywords":["#;
    let long = format!("\"{}\"", "x".repeat(30));
    for (case, start, item, count, is_refused) in [
        ("most", skips, "\"a\"", most, false),
        ("one more", skips, "\"a\"", most + 1, true),
        ("more in a long line", skips, &long, most + 1000, false),
        (
            "values that are only checked",
            keywords,
            "\"a\"",
            most + 1000,
            false,
        ),
    ] {
        let end = if start == skips { "]}]}" } else { "]}}]}" };
        let line = format!("{start}{}{end}", vec![item; count].join(","));
        assert_eq!(rules(&line).contains("too-complex"), is_refused, "{case}");
    }
    assert_eq!(Rule::TooComplex.severity(), Severity::Error);
}

#[test]
fn day_before_1970_is_refused() {
    assert_eq!(
        "1970-01-01".parse::<Day>().unwrap().to_string(),
        "1970-01-01"
    );
    let error = "1969-12-31".parse::<Day>().unwrap_err().to_string();
    assert_eq!(error, "\"1969-12-31\" is not a day such as 2026-11-26");
}
