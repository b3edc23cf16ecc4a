use std::collections::BTreeMap;

use olm::{Package, PackageParser, UpgradeRule, UpgradeStep, UpgradeWay};
use rstest::rstest;
use serde_json::json;
use work::Budget;

use crate::Bounds;
use crate::plan::*;

/// Builds the lines of the package `p` from channels such as
/// `stable: 1.0.0; 1.1.0 <1.0.0 -0.9.0 ~>=0.1.0_<1.1.0 @4.20`, one a line: the version of each
/// bundle, what it replaces and skips, its `skipRange` with `_` for spaces, and its maximum version
/// of OpenShift. A bundle is named `p.v` and its version, and the first channel is the default.
fn lines(channels: &str) -> String {
    let mut lines = Vec::new();
    let mut bundles: BTreeMap<&str, String> = BTreeMap::new();
    for channel in channels
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let (name, entries) = channel.split_once(':').unwrap();
        if lines.is_empty() {
            lines.push(format!(
                r#"{{"defaultChannel":"{name}","name":"p","schema":"olm.package"}}"#
            ));
        }
        let entries = entries
            .split(';')
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
            .map(|entry| {
                let mut words = entry.split(' ');
                let version = words.next().unwrap();
                let bundle = bundles.entry(version).or_default();
                let mut fields = format!(r#""name":"p.v{version}""#);
                let mut skips = Vec::new();
                for (kind, word) in words.map(|word| word.split_at(1)) {
                    match kind {
                        "<" => fields += &format!(r#","replaces":"p.v{word}""#),
                        "-" => skips.push(format!(r#""p.v{word}""#)),
                        "~" => fields += &format!(r#","skipRange":"{}""#, word.replace('_', " ")),
                        _ => {
                            *bundle = format!(
                                r#",{{"type":"olm.maxOpenShiftVersion","value":"{word}"}}"#
                            );
                        }
                    }
                }
                format!(r#"{{{fields},"skips":[{}]}}"#, skips.join(","))
            });
        let entries: Vec<String> = entries.collect();
        lines.push(format!(
            r#"{{"entries":[{}],"name":"{name}","package":"p","schema":"olm.channel"}}"#,
            entries.join(",")
        ));
    }
    lines.extend(bundles.iter().map(|(version, properties)| {
        let package = format!(r#"{{"type":"olm.package","value":{{"packageName":"p","version":"{version}"}}}}"#);
        format!(r#"{{"name":"p.v{version}","package":"p","properties":[{package}{properties}],"schema":"olm.bundle"}}"#)
    }));
    lines.join("\n") + "\n"
}

/// Parses lines from [`lines`].
fn package(channels: &str) -> Package {
    PackageParser::parse(lines(channels).as_bytes())
}

/// Returns catalogs with a package each, with `&&` between: `-` for none, else channels as in
/// [`lines`] with `|` between, then documents after a `+` each.
fn set(catalog: &str, text: &str) -> Vec<PlanCatalog> {
    let texts = text.split("&&").filter(|text| *text != "-");
    texts
        .zip(["", "-2"])
        .map(|(text, number)| {
            let (channels, documents) = text.split_once('+').unwrap_or((text, ""));
            let documents: Vec<String> = documents
                .split('+')
                .map(|one| one.replace('\n', ""))
                .collect();
            let lines = lines(&channels.replace('|', "\n")) + &documents.join("\n");
            let package = PackageParser::parse(lines.as_bytes());
            PlanCatalog {
                name: format!("{catalog}{number}"),
                packages: BTreeMap::from([("p".to_owned(), package)]),
            }
        })
        .collect()
}

fn planned(installed: &str, from: &str, to: &str) -> UpgradePlan {
    let installed = Installed::parse(installed, &Budget::default()).unwrap();
    let input = PlanInput {
        installed: &installed.operators,
        from: &set("old", from),
        to: &set("new", to),
        cluster: Some("4.21".parse().unwrap()),
        on: "2026-11-26".parse().unwrap(),
    };
    UpgradePlan::new(input, &Bounds::default()).unwrap()
}

const LINE: &str = "c: 1.0.0; 1.1.0 <1.0.0; 1.2.0 <1.1.0";
const NO_WAY: &str = "after the upgrade, channel c has no way to its head from any version before";

/// Situation, what is installed, the package before and after the upgrade, and the verdict with its
/// steps now and after it.
const SITUATIONS: &str = "\
at the head of both / p 1.2.0 / LINE / LINE => cluster first [] []
nothing now / p 1.0.0 / c: 1.0.0 / LINE => cluster first [] [1.1.0 1.2.0]
now leads beyond / p 1.0.0 / c: 1.0.0; 1.0.1 <1.0.0 / LINE => cluster first [1.0.1] [1.1.0 1.2.0]
now is for older clusters / p 1.0.0 / c: 1.0.0; 1.1.0 <1.0.0 @4.20 / LINE => cluster first [1.1.0] [1.1.0 1.2.0]
unknown here / p 1.0.0 / c: 0.9.0 / LINE => cluster first [] [1.1.0 1.2.0]
not in the present catalog / p 1.0.0 c / - / LINE => cluster first [] [1.1.0 1.2.0]
build metadata / p 1.0.0+1 c / c: 1.0.0+1 / c: 1.1.0 ~1.0.0 => cluster first [] [1.1.0]
channel is gone / p 1.0.0 a / a: 1.0.0 / c: 1.0.0; 1.1.0 <1.0.0|b: 1.0.0 => cluster first to c [] [1.1.0]
default does not lead / p 1.0.0 a / a: 1.0.0 / c: 2.0.0|b: 1.0.0 => cluster first to b [] []
two catalogs one knows it / p 1.0.0 / c: 1.0.0 / c: 1.0.0&&c: 2.0.0 => cluster first [] []
same steps / p 1.0.0 / LINE / LINE => either most 1.2.0 [1.1.0 1.2.0] [1.1.0 1.2.0]
by range / p 1.0.0 / LINE / c: 1.3.0 ~>=1.0.0_<1.3.0 => either most 1.2.0 [1.1.0 1.2.0] [1.3.0]
not beyond / p 1.0.0 / LINE / c: 1.3.0 ~>=1.0.0_<1.2.0 => either most 1.1.0 [1.1.0 1.2.0] [1.3.0]
for this cluster / p 1.0.0 / c: 1.0.0 @4.21; 1.1.0 <1.0.0 / LINE => either most 1.1.0 [1.1.0] [1.1.0 1.2.0]
start is named only / p 1.0.0 / LINE / c: 1.1.0 <1.0.0 => either most 1.1.0 [1.1.0 1.2.0] [1.1.0]
stops cluster / p 1.0.0 / c: 1.0.0 @4.20; 1.1.0 <1.0.0 / LINE => operator first least 1.1.0 most 1.1.0 [1.1.0] [1.2.0]
start is gone / p 1.0.0 / LINE / c: 1.2.0; 1.3.0 <1.2.0 => operator first least 1.2.0 most 1.2.0 [1.1.0 1.2.0] [1.3.0]
up to the middle / p 1.0.0 / c: 1.0.0; 1.1.0 <1.0.0; 1.2.0 <1.1.0 @4.20 / c: 1.1.0; 1.3.0 <1.1.0 -1.2.0 => operator first least \
    1.1.0 most 1.1.0 [1.1.0 1.2.0] [1.3.0]
no semver / p one / LINE / LINE => no way [] []: NO_WAY
range unreadable / p 1.0.0 / c: 1.0.0 / c: 1.1.0 ~^1.0.0 => no way [] []: NO_WAY
another channel leads / p 1.0.0 c / c: 1.0.0 / c: 2.0.0|d: 1.0.0 => no way [] []: NO_WAY; channel d has one
stops cluster for ever / p 1.0.0 / c: 1.0.0 @4.20; 1.1.0 <1.0.0 @4.20 / LINE => no way [1.1.0] []: 1.1.0 stops the upgrade of the \
    cluster: its olm.maxOpenShiftVersion is 4.20
property with patch / p 1.0.0 / c: 1.0.0 @4.20.1 / c: 1.0.0 => no way [] []: 1.0.0 stops the upgrade of the cluster: its \
    olm.maxOpenShiftVersion cannot be read: \"4.20.1\" is not a version of OpenShift such as 4.21
package is gone / p 1.0.0 / LINE / - => no way [1.1.0 1.2.0] []: the catalog after the upgrade does not have the package
package is renamed / new 1.0.0 / LINE / LINE => no way [] []: the catalogs do not have the package
nowhere / p 1.0.0 / - / - => no way [] []: the catalogs do not have the package
no channel leads / p 1.0.0 a / a: 1.0.0 / c: 2.0.0 => no way [] []: channel a is gone after the upgrade, and no other one leads on
two heads / p 1.0.0 / c: 1.0.0 / c: 1.0.0; 1.1.0 <1.0.0; 1.2.0 <1.0.0 => no way [] []: channel c is broken after the upgrade: it \
    has 2 heads: p.v1.1.0, p.v1.2.0
no head / p 1.0.0 / c: 1.0.0 / c: 1.0.0 <1.1.0; 1.1.0 <1.0.0 => no way [] []: channel c is broken after the upgrade: no entry is \
    a head
two catalogs / p 1.0.0 / c: 1.0.0 / c: 1.0.0&&c: 1.0.0 => no way [] []: several catalogs have the package: new, new-2";

#[test]
fn plan_of_situation_has_verdict() {
    for line in SITUATIONS.lines() {
        let text = line.replace("LINE", LINE).replace("NO_WAY", NO_WAY);
        let (situation, expected) = text.split_once(" => ").unwrap();
        let [_, installed, from, to] = situation.split(" / ").collect::<Vec<_>>()[..] else {
            panic!("{situation}");
        };
        let plan = planned(installed, from, to);
        let row = &plan.operators[0];
        let labels = |way: &UpgradeWay| {
            let labels: Vec<&str> = way.steps().map(UpgradeStep::label).collect();
            labels.join(" ")
        };
        let word = |name: &str, value: Option<&String>| {
            value
                .map(|value| format!("{name}{value}"))
                .unwrap_or_default()
        };
        let moved = row
            .target_channel
            .as_ref()
            .filter(|_| row.installed.channel != row.target_channel);
        let text = format!(
            "{}{}{}{} [{}] [{}]{}",
            row.verdict.as_str(),
            word(" to ", moved),
            word(" least ", row.at_least.as_ref()),
            word(" most ", row.at_most.as_ref()),
            labels(&row.now),
            labels(&row.after),
            word(": ", row.reason.as_ref()),
        );
        assert_eq!(text, expected, "{situation}");
        assert_eq!(plan.is_possible(), row.verdict != UpgradeOrder::NoWay);
        assert_eq!(row.reason.is_some(), row.verdict == UpgradeOrder::NoWay);
    }
}

const LIFE: &str = r#"+{"package":"p","schema":"io.openshift.operators.lifecycles.v1alpha1","versions":[{"name":"1.0","phases":[
    {"endDate":"2026-06-30","name":"full","startDate":"2026-01-01"},{"endDate":"2026-12-31","name":"last","startDate":"2026-07-01"}],
    "platformCompatibility":[{"name":"openshift","versions":["4.20","4.21"]}]}]}"#;

#[rstest]
#[case::in_a_phase(LIFE.to_owned(), "35 days Some(true) Some(\"last\")")]
#[case::ended(LIFE.replace("2026-12", "2026-10"), "self-support Some(true) None")]
#[case::later(LIFE.replace("2026-", "2027-"), "not yet Some(true) None")]
#[case::no_date(LIFE.replace("2026-12-31", "2026-02-30"), "no data Some(true) None")]
#[case::other_cluster(LIFE.replace("4.21", "4.22"), "35 days Some(false) Some(\"last\")")]
#[case::other_version(LIFE.replace("\"1.0\"", "\"1.1\""), "no data None None")]
#[case::wrong_type(LIFE.replace("\"full\"", "1"), "no data None None")]
#[case::two(LIFE.repeat(2), "no data None None")]
#[case::none(String::new(), "no data None None")]
fn support_is_that_of_the_one_document(#[case] documents: String, #[case] expected: &str) {
    let plan = planned("p 1.0.0", "c: 1.0.0", &format!("c: 1.0.0{documents}"));
    let support = &plan.operators[0].support;
    assert_eq!(
        format!("{support} {:?} {:?}", support.is_compatible, support.phase),
        expected
    );
}

#[test]
fn plan_tells_deprecations_and_what_is_missing() {
    let to = r#"c: 1.0.0+{"name":"p.v1.0.0","properties":[{"type":"olm.gvk","value":{"group":"own","kind":"K","version":"v1"}},
        {"type":"olm.gvk.required","value":{"group":"g","kind":"K","version":"v1"}},
        {"type":"olm.gvk.required","value":{"group":"own","kind":"K","version":"v1"}},
        {"type":"olm.package.required","value":{"packageName":"q","versionRange":">=1.0.0"}},
        {"type":"olm.package.required","value":{"packageName":"p","versionRange":"<2.0.0"}},
        {"type":"olm.constraint","value":{"any":{"constraints":[{"package":{"packageName":"r","versionRange":">=1.0.0"}},
        {"gvk":{"group":"own","kind":"K","version":"v1"}}]}}}],"schema":"olm.bundle"}+{"entries":[
        {"message":"gone soon","reference":{"schema":"olm.package"}},{"message":"use d","reference":{"name":"c","schema":"olm.channel"}},
        {"message":"old","reference":{"name":"p.v1.0.0","schema":"olm.bundle"}}],"package":"p","schema":"olm.deprecations"}"#;
    let plan = planned("p 1.0.0 c", "c: 1.0.0", to);
    let row = &plan.operators[0];
    assert!(row.missing.iter().eq(["API g/v1 K", "package q >=1.0.0"]));
    assert_eq!(
        row.deprecations,
        [
            "package: gone soon",
            "channel c: use d",
            "bundle p.v1.0.0: old"
        ]
    );
    assert_eq!(row.notes().len(), 5, "{:?}", row.notes());
}

#[test]
fn image_set_has_steps_and_heads() {
    let old = "c: 1.0.0 @4.20; 1.1.0 <1.0.0";
    let catalog = |name: &str, version: &str| {
        let channel = json!({"name": "c", "minVersion": version, "maxVersion": version});
        json!({"catalog": name, "packages": [{"name": "p", "defaultChannel": "c", "channels": [channel]}]})
    };
    let expected = json!({
        "apiVersion": "mirror.openshift.io/v2alpha1",
        "kind": "ImageSetConfiguration",
        "mirror": {"operators": [catalog("new", "1.2.0"), catalog("old", "1.1.0")]},
    });
    assert_eq!(planned("p 1.0.0", old, LINE).image_set(), expected);
}

const CHANNELS: &str = "
    stable: 1.0.0; 1.1.0 <1.0.0; 1.2.0 <1.1.0 ~>=0.5.0_<1.0.0
    alpha: 1.0.0; 2.0.0+7 <1.0.0 -0.9.0
    empty:
    broken: 1.0.0 <1.1.0; 1.1.0 <1.0.0";

/// Question, from which version, to which one or to the heads, and what each channel answers.
const WAYS: &str = "\
heads / 1.0.0 /  => alpha 2.0.0+7; broken the channel has no head; empty the channel has no head; stable 1.1.0 1.2.0
leading v / v1.0.0 / 1.1.0 => alpha -; broken 1.1.0; empty -; stable 1.1.0
bundles / p.v1.0.0 / p.v2.0.0+7 => alpha 2.0.0+7; broken -; empty -; stable -
build metadata left out / 1.0.0 / 2.0.0 => alpha 2.0.0+7; broken -; empty -; stable -
same / 1.0.0 / 1.0.0 => alpha ; broken ; empty -; stable 
gone and named / p.v0.9.0 / 2.0.0 => alpha 2.0.0+7; broken -; empty -; stable -
gone and in a range / 0.6.0 / 1.2.0 => alpha -; broken -; empty -; stable 1.2.0
gone / 0.1.0 / 1.2.0 => alpha -; broken -; empty -; stable the version is not in the channel, and no entry updates it
back / 1.2.0 / 1.1.0 => alpha -; broken the version is not in the channel, and no entry updates it; empty -; stable no entry \
    updates this version
beside / 1.1.0 / 1.0.0 => alpha -; broken 1.0.0; empty -; stable no way leads to p.v1.0.0";

#[test]
fn ways_tell_steps_or_reason() {
    for line in WAYS.lines() {
        let (question, expected) = line.split_once(" => ").unwrap();
        let [_, from, to] = question.split(" / ").collect::<Vec<_>>()[..] else {
            panic!("{question}");
        };
        let to = (!to.is_empty()).then_some(to);
        let ways = Ways::new("p", &package(CHANNELS), from, to, &Bounds::default()).unwrap();
        let texts = ways.channels.iter().map(|way| {
            let steps = way.steps.as_ref();
            let steps = steps.map(|steps| {
                steps
                    .iter()
                    .map(UpgradeStep::label)
                    .collect::<Vec<_>>()
                    .join(" ")
            });
            // Most channels lack one of the two.
            let reason = way
                .reason
                .as_deref()
                .filter(|reason| !reason.ends_with("is not in the channel"));
            let reason = reason
                .filter(|reason| way.channel != "alpha" || !reason.contains("not in the channel"));
            format!(
                "{} {}",
                way.channel,
                steps.as_deref().or(reason).unwrap_or("-")
            )
        });
        assert_eq!(texts.collect::<Vec<_>>().join("; "), expected, "{question}");
        assert_eq!(
            ways.is_possible(),
            ways.channels.iter().any(|way| way.reason.is_none())
        );
    }
}

#[test]
fn ways_of_unknown_version_are_refused() {
    let unknown = "package p has no version and no bundle";
    let error = |from, to| {
        Ways::new("p", &package(CHANNELS), from, to, &Bounds::default())
            .unwrap_err()
            .to_string()
    };
    assert!(error("1.0", None).starts_with(&format!("{unknown} \"1.0\"")));
    let expected = format!("{unknown} \"1.2.1\" (did you mean 1.2.0?)");
    assert!(error("1.0.0", Some("1.2.1")).starts_with(&expected));
}

#[test]
fn steps_name_fields_that_offer_them() {
    let ways = Ways::new(
        "p",
        &package("c: 1.0.0; 1.1.0 <1.0.0 -1.0.0 ~<1.1.0"),
        "1.0.0",
        None,
        &Bounds::default(),
    )
    .unwrap();
    let steps = ways.channels[0].steps.as_ref().unwrap();
    assert_eq!(
        steps[0].by,
        [
            UpgradeRule::Skips,
            UpgradeRule::SkipRange,
            UpgradeRule::Replaces
        ]
    );
}

fn drawn(format: GraphFormat, channels: &str) -> String {
    draw(format, "p", &package(channels), &Bounds::default()).unwrap()
}

#[rstest]
#[case::branch(
    "c: 1.0.0; 1.1.0 <1.0.0; 1.0.1 <1.0.0; 1.2.0 <1.1.0 -1.0.1",
    &["* 1.2.0  p.v1.2.0  (head; skips 1)", "* 1.1.0  p.v1.1.0", "| * 1.0.1  p.v1.0.1  (skipped)", "|/", "* 1.0.0  p.v1.0.0"]
)]
#[case::branch_beside_another_chain(
    "c: 1.0.0; 2.0.0; 3.0.0 <1.0.0; 2.2.0 <2.0.0; 2.1.0 <1.0.0",
    &["* 2.2.0  p.v2.2.0  (head)", "* 2.0.0  p.v2.0.0", "* 3.0.0  p.v3.0.0  (head)", "| * 2.1.0  p.v2.1.0  (head)", "|/", "* 1.0.0  p.v1.0.0"]
)]
#[case::range_and_what_is_gone(
    "c: 1.0.0 <0.9.0 ~<1.0.0", &["* 1.0.0  p.v1.0.0  (head; replaces p.v0.9.0, which is not in the catalog; skipRange <1.0.0)"]
)]
#[case::cycle("c: 1.0.0 <1.1.0; 1.1.0 <1.0.0", &["* 1.1.0  p.v1.1.0", "* 1.0.0  p.v1.0.0"])]
fn draw_text_has_lane_for_each_chain(#[case] channels: &str, #[case] expected: &[&str]) {
    let text = drawn(GraphFormat::Text, channels);
    assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), expected, "{text}");
    assert!(text.starts_with("channel c (default)\n"), "{text}");
}

#[rstest]
#[case::mermaid(GraphFormat::Mermaid, &["graph LR", "subgraph c0[\"a\"]", "n0[\"p.v1.0.0\"]", "n0-- replace --> n1", "n0-- skipRange --> n1"])]
#[case::dot(GraphFormat::Dot, &["digraph \"p\" {", "label=\"a\"", "n0 [label=\"p.v1.0.0\"]", "n0 -> n1 [label=\"replace\"]"])]
fn draw_has_edges_of_each_channel(#[case] format: GraphFormat, #[case] parts: &[&str]) {
    let text = drawn(format, "a: 1.0.0; 1.1.0 <1.0.0 ~<1.1.0\nb: 1.0.0");
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    let nodes = text.matches("p.v1.0.0").count();
    assert_eq!(nodes, 2, "a node for each channel: {text}");
}

#[test]
fn draw_escapes_names() {
    let line = r#"{"entries":[{"name":"a\"]--> <b>#\u001b"}],"name":"c","schema":"olm.channel"}"#;
    let package = PackageParser::parse(format!("{line}\n").as_bytes());
    let drawn = |format| draw(format, "p", &package, &Bounds::default()).unwrap();
    for (format, escaped) in [
        (GraphFormat::Mermaid, r#"n0["a#34;]--#62; #60;b#62;#35;"#),
        (GraphFormat::Dot, r#"label="a\"]-->"#),
        (GraphFormat::Text, "a\"]--> <b>#"),
    ] {
        let text = drawn(format);
        assert!(text.contains(escaped) && !text.contains('\u{1b}'), "{text}");
    }
}

#[test]
fn wrapped_lines_fit_and_keep_all_words() {
    let text = "word ".repeat(60);
    let lines = wrapped(text.trim_end());
    assert!(
        lines.lines().all(|line| line.chars().count() <= 100),
        "{lines}"
    );
    assert!(lines.split_whitespace().eq(text.split_whitespace()));
    assert_eq!(wrapped(&"x".repeat(200)), format!("{}\n", "x".repeat(200)));
}
