use std::collections::{BTreeMap, BTreeSet};

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
                source: format!("r.example/{catalog}{number}:v1"),
                cluster_names: BTreeSet::from([format!("cs-{catalog}{number}")]),
                packages: BTreeMap::from([("p".to_owned(), package)]),
            }
        })
        .collect()
}

fn planned(installed: &str, from: &str, to: &str) -> UpgradePlan {
    let mut installed = Installed::parse(installed, &Budget::default()).unwrap();
    let from = set("old", from);
    let to = set("new", to);
    installed.find_packages(&from);
    let input = PlanInput {
        installed: &installed.operators,
        from: &from,
        to: &to,
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
at the head of both / p 1.2.0 / LINE / LINE => stays [] []
by bundle / p p.v1.0.0 / LINE / LINE => either most 1.2.0 [1.1.0 1.2.0] [1.1.0 1.2.0]
by bundle alone / p.v1.0.0 / LINE / LINE => either most 1.2.0 [1.1.0 1.2.0] [1.1.0 1.2.0]
as kubectl prints a name / clusterserviceversion.operators.coreos.com/p.v1.1.0 / LINE / LINE => either most 1.2.0 [1.2.0] [1.2.0]
nothing now / p 1.0.0 / c: 1.0.0 / LINE => cluster first [] [1.1.0 1.2.0]
now leads beyond / p 1.0.0 / c: 1.0.0; 1.0.1 <1.0.0 / LINE => cluster first [1.0.1] [1.1.0 1.2.0]
now is for older clusters / p 1.0.0 / c: 1.0.0; 1.1.0 <1.0.0 @4.20 / LINE => cluster first [1.1.0] [1.1.0 1.2.0]
unknown here / p 1.0.0 / c: 0.9.0 / LINE => cluster first [] [1.1.0 1.2.0]
not in the present catalog / p 1.0.0 c / - / LINE => cluster first [] [1.1.0 1.2.0]
build metadata / p 1.0.0+1 c / c: 1.0.0+1 / c: 1.1.0 ~1.0.0 => cluster first [] [1.1.0]
channel is gone / p 1.0.0 a / a: 1.0.0 / c: 1.0.0; 1.1.0 <1.0.0|b: 1.0.0 => cluster first to c [] [1.1.0]
default does not lead / p 1.0.0 a / a: 1.0.0 / c: 2.0.0|b: 1.0.0 => stays to b [] []
two catalogs one knows it / p 1.0.0 / c: 1.0.0 / c: 1.0.0&&c: 2.0.0 => stays [] []
two catalogs / p 1.0.0 / c: 1.0.0 / c: 1.0.0&&c: 1.0.0 => stays [] []
same steps / p 1.0.0 / LINE / LINE => either most 1.2.0 [1.1.0 1.2.0] [1.1.0 1.2.0]
by range / p 1.0.0 / LINE / c: 1.3.0 ~>=1.0.0_<1.3.0 => either most 1.2.0 [1.1.0 1.2.0] [1.3.0]
not beyond / p 1.0.0 / LINE / c: 1.3.0 ~>=1.0.0_<1.2.0 => either most 1.1.0 [1.1.0 1.2.0] [1.3.0]
for this cluster / p 1.0.0 / c: 1.0.0 @4.21; 1.1.0 <1.0.0 / LINE => either most 1.1.0 [1.1.0] [1.1.0 1.2.0]
start is named only / p 1.0.0 / LINE / c: 1.1.0 <1.0.0 => either most 1.1.0 [1.1.0 1.2.0] [1.1.0]
stops cluster / p 1.0.0 / c: 1.0.0 @4.20; 1.1.0 <1.0.0 / LINE => operator first least 1.1.0 most 1.1.0 [1.1.0] [1.2.0]
start is gone / p 1.0.0 / LINE / c: 1.2.0; 1.3.0 <1.2.0 => operator first least 1.2.0 most 1.2.0 [1.1.0 1.2.0] [1.3.0]
up to the middle / p 1.0.0 / c: 1.0.0; 1.1.0 <1.0.0; 1.2.0 <1.1.0 @4.20 / c: 1.1.0; 1.3.0 <1.1.0 -1.2.0 => operator first least \
    1.1.0 most 1.1.0 [1.1.0 1.2.0] [1.3.0]
no semver / p one / LINE / LINE => no way [] []: package p has no version and no bundle \"one\", and no entry updates it
unknown version / p 1.0.9 / LINE / LINE => no way [] []: package p has no version and no bundle \"1.0.9\" (did you mean 1.0.0?), \
    and no entry updates it
unknown bundle / q.v1.0.0 / LINE / LINE => no way [] []: no Subscription, label or annotation names its package, and no catalog \
    has its bundle
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
    a head";

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

/// Returns a Subscription with its ClusterServiceVersion.
fn subscription(fields: &str, version: &str) -> String {
    let group = r#""apiVersion":"operators.coreos.com/v1alpha1""#;
    format!(
        r#"{{{group},"kind":"Subscription","metadata":{{"name":"s","namespace":"n"}},"spec":{{"channel":"c","name":"p",{fields}}},
        "status":{{"installedCSV":"p.v{version}"}}}}
        {{{group},"kind":"ClusterServiceVersion","metadata":{{"name":"p.v{version}","namespace":"n"}},"spec":{{"version":"{version}"}}}}"#
    )
}

/// Returns a ClusterExtension.
fn extension(catalog: &str, version: &str) -> String {
    format!(
        r#"{{"apiVersion":"olm.operatorframework.io/v1","kind":"ClusterExtension","metadata":{{"name":"e"}},
        "spec":{{"source":{{"catalog":{{"packageName":"p"{catalog}}}}}}},
        "status":{{"install":{{"bundle":{{"name":"p.v{version}","version":"{version}"}}}}}}}}"#
    )
}

const AUTOMATIC: &str = r#""installPlanApproval":"Automatic""#;
const STOPPING: &str = "c: 1.0.0; 1.1.0 <1.0.0 @4.20";
const BEYOND: &str = "c: 1.0.0; 1.0.1 <1.0.0";
const MIDDLE: &str = "c: 1.0.0; 1.1.0 <1.0.0; 1.2.0 <1.1.0 @4.20";

#[rstest]
#[case::automatic(
    subscription(AUTOMATIC, "1.0.0"),
    STOPPING,
    "cluster first",
    "set approval to Manual: 1.1.0 would stop the upgrade"
)]
#[case::automatic_by_default(
    subscription(r#""source":"x""#, "1.0.0"),
    STOPPING,
    "cluster first",
    "set approval to Manual: 1.1.0 would stop the upgrade"
)]
#[case::manual(
    subscription(r#""installPlanApproval":"Manual""#, "1.0.0"),
    STOPPING,
    "cluster first",
    ""
)]
#[case::no_approval("p 1.0.0 c".to_owned(), STOPPING, "cluster first", "")]
#[case::automatic_that_stops_nothing(subscription(AUTOMATIC, "1.0.0"), LINE, "either", "")]
#[case::automatic_beyond(
    subscription(AUTOMATIC, "1.0.0"),
    BEYOND,
    "cluster first",
    "set approval to Manual: no way leads on from 1.0.1 after the upgrade"
)]
#[case::automatic_over_the_middle(
    subscription(AUTOMATIC, "1.0.0"),
    MIDDLE,
    "either",
    "set approval to Manual: 1.2.0 would stop the upgrade"
)]
#[case::extension(
    extension(r#","channels":["c"]"#, "1.0.0"),
    STOPPING,
    "cluster first",
    "pin the ClusterExtension to version 1.0.0: 1.1.0 would stop the upgrade"
)]
#[case::pinned_extension(
    extension(r#","channels":["c"],"version":"1.0.0""#, "1.0.0"),
    STOPPING,
    "cluster first",
    "its ClusterExtension asks for version \"1.0.0\": let spec.source.catalog.version allow 1.1.0"
)]
#[case::range_of_extension(
    extension(r#","version":">=1.0.0 <2.0.0""#, "1.0.0"),
    LINE,
    "either",
    ""
)]
#[case::range_of_extension_without_last(
    extension(r#","version":"<1.2.0""#, "1.0.0"),
    LINE,
    "either",
    "its ClusterExtension asks for version \"<1.2.0\": let spec.source.catalog.version allow 1.2.0"
)]
#[case::pinned_extension_at_its_last_version(
    extension(r#","version":"1.2.0""#, "1.2.0"),
    LINE,
    "stays",
    "its ClusterExtension pins version 1.2.0"
)]
fn plan_tells_what_moves_by_itself(
    #[case] installed: String,
    #[case] from: &str,
    #[case] verdict: &str,
    #[case] remarks: &str,
) {
    let plan = planned(&installed, from, LINE);
    let row = &plan.operators[0];
    assert_eq!(row.verdict.as_str(), verdict);
    assert_eq!(row.remarks.join("; "), remarks);
}

#[test]
fn operators_of_one_package_are_told_apart_by_namespace() {
    let first = subscription(AUTOMATIC, "1.0.0");
    let second = first.replace(r#""namespace":"n""#, r#""namespace":"m""#);
    let plan = planned(&format!("{first}\n{second}"), LINE, LINE);
    let labels: Vec<&str> = plan
        .operators
        .iter()
        .map(|row| row.label.as_str())
        .collect();
    assert_eq!(labels, ["n/p", "m/p"]);
    assert_eq!(planned(&first, LINE, LINE).operators[0].label, "p");
    // A list has no namespaces.
    let listed = planned("p 1.0.0 c\np 1.1.0 c\n", LINE, LINE);
    assert_eq!(listed.operators[1].label, "p");
}

const LATER: &str = "c: 1.0.0; 3.0.0 <1.0.0 ~<3.0.0";

/// Source of the operator, its version, the catalogs after the upgrade, and the version in the end
/// with the remarks.
#[rstest]
#[case::name(subscription(r#""source":"new-2""#, "1.0.0"), "3.0.0")]
#[case::name_of_the_first(subscription(r#""source":"new""#, "1.0.0"), "1.2.0")]
#[case::name_of_manifest(subscription(r#""source":"cs-new-2""#, "1.0.0"), "3.0.0")]
#[case::other_version_of_name(
    subscription(r#""source":"cs-new-2-v4-20""#, "1.0.0"),
    "1.2.0 several catalogs have the package: new, new-2; new is taken: choose by --source cs-new-2-v4-20=CATALOG"
)]
#[case::selector(
    extension(
        r#","selector":{"matchLabels":{"olm.operatorframework.io/metadata.name":"cs-new-2"}}"#,
        "1.0.0"
    ),
    "3.0.0"
)]
#[case::selector_by_expression(
    extension(r#","selector":{"matchExpressions":[{"key":"olm.operatorframework.io/metadata.name","operator":"In","values":["new-2"]}]}"#, "1.0.0"), "3.0.0"
)]
#[case::unknown_source(
    subscription(r#""source":"x""#, "1.0.0"),
    "1.2.0 several catalogs have the package: new, new-2; new is taken: choose by --source x=CATALOG"
)]
#[case::no_source("p 1.0.0 c".to_owned(), "1.2.0 several catalogs have the package: new, new-2; new is taken")]
fn source_of_operator_decides_among_catalogs(#[case] installed: String, #[case] expected: &str) {
    let plan = planned(&installed, LINE, &format!("{LINE}&&{LATER}"));
    let row = &plan.operators[0];
    let found = format!("{} {}", row.last.label(), row.remarks.join("; "));
    assert_eq!(found.trim_end(), expected);
}

/// Source of the operator, and the catalog after the upgrade from 4.20 to 4.21.
#[rstest]
#[case::name("community-4-20", "community-4-21")]
#[case::manifest("cs-redhat-index-v4-20", "redhat-4-21")]
#[case::present_catalog_goes_on("team", "community-4-21")]
fn catalog_with_next_version_goes_on(#[case] source: &str, #[case] expected: &str) {
    let catalogs = |version: &str| {
        let mut catalogs = set("x", &format!("{LINE}&&{LINE}"));
        for (catalog, name) in catalogs.iter_mut().zip(["redhat", "community"]) {
            catalog.name = format!("{name}-{version}");
            catalog.cluster_names = BTreeSet::from([format!("cs-{name}-index-v{version}")]);
        }
        catalogs
    };
    let to = catalogs("4-21");
    let mut from = catalogs("4-20");
    from[1].cluster_names.insert("team".to_owned());
    let text = subscription(&format!(r#""source":"{source}""#), "1.0.0");
    let installed = Installed::parse(&text, &Budget::default()).unwrap();
    let input = PlanInput {
        installed: &installed.operators,
        from: &from,
        to: &to,
        cluster: None,
        on: "2026-11-26".parse().unwrap(),
    };
    let plan = UpgradePlan::new(input, &Bounds::default()).unwrap();
    let row = &plan.operators[0];
    assert_eq!(row.catalog.as_deref(), Some(expected));
    assert_eq!(row.remarks, [""; 0]);
}

#[test]
fn catalog_of_source_without_package_is_told() {
    let mut catalogs = set("new", LINE);
    catalogs.push(PlanCatalog {
        name: "team".to_owned(),
        ..PlanCatalog::default()
    });
    let text = subscription(r#""source":"team""#, "1.0.0");
    let installed = Installed::parse(&text, &Budget::default()).unwrap();
    let input = PlanInput {
        installed: &installed.operators,
        from: &catalogs,
        to: &catalogs,
        cluster: None,
        on: "2026-11-26".parse().unwrap(),
    };
    let plan = UpgradePlan::new(input, &Bounds::default()).unwrap();
    let reason = "the catalog of its source does not have the package after the upgrade; there is one in new";
    assert_eq!(plan.operators[0].reason.as_deref(), Some(reason));
    let left_out: Vec<String> = plan.left_out().collect();
    assert_eq!(left_out, [format!("p is left out: {reason}")]);
}

#[rstest]
#[case::one(r#","channels":["a"]"#, "1.0.0 a")]
#[case::two(r#","channels":["a","b"]"#, "1.1.0 b")]
#[case::one_is_gone(r#","channels":["gone","a"]"#, "1.0.0 a")]
#[case::none("", "1.2.0 c")]
#[case::all_are_gone(r#","channels":["gone","too"]"#, "1.0.0 gone")]
fn each_channel_of_extension_counts(#[case] channels: &str, #[case] expected: &str) {
    let to = "a: 1.0.0|b: 1.0.0; 1.1.0 <1.0.0|c: 1.0.0; 1.2.0 <1.0.0";
    let plan = planned(&extension(channels, "1.0.0"), to, to);
    let row = &plan.operators[0];
    let channel = row.target_channel.as_deref().unwrap_or("gone");
    assert_eq!(format!("{} {channel}", row.last.label()), expected);
    assert_eq!(row.verdict == UpgradeOrder::NoWay, channel == "gone");
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
        json!({"catalog": format!("r.example/{name}:v1"), "packages": [{"name": "p", "defaultChannel": "c", "channels": [channel]}]})
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
