use std::collections::BTreeMap;

use rstest::rstest;

use super::*;
use crate::{Installed, testing::lines};

/// Returns a package in catalogs with `&&` between: `-` for none, else channels as in [`lines`] with `|` between, then documents after
/// a `+` each.
fn set(catalog: &str, text: &str) -> PackageSet {
    let package = |text: &str| {
        let (channels, documents) = text.split_once('+').unwrap_or((text, ""));
        let documents: Vec<String> = documents.split('+').map(|one| one.replace('\n', "")).collect();
        let lines = lines(&channels.replace('|', "\n")) + &documents.join("\n");
        PlannedPackage::parse(lines.as_bytes())
    };
    let packages = text.split("&&").filter(|text| *text != "-");
    let packages = packages.map(|text| (catalog.to_owned(), package(text)));
    BTreeMap::from([("p".to_owned(), packages.collect())])
}

fn planned(installed: &str, from: &str, to: &str) -> UpgradePlan {
    UpgradePlan::new(PlanInput {
        installed: &Installed::parse(installed).unwrap().operators,
        from: &set("old", from),
        to: &set("new", to),
        cluster: Some("4.21".parse().unwrap()),
        on: "2026-11-26".parse().unwrap(),
    })
}

const LINE: &str = "c: 1.0.0; 1.1.0 <1.0.0; 1.2.0 <1.1.0";
const NO_WAY: &str = "after the upgrade, channel c has no way to its head from any version before";

#[rstest]
#[case::at_the_head_of_both("p 1.2.0", LINE, LINE, "cluster first [] []")]
#[case::nothing_now("p 1.0.0", "c: 1.0.0", LINE, "cluster first [] [1.1.0 1.2.0]")]
#[case::now_leads_beyond("p 1.0.0", "c: 1.0.0; 1.0.1 <1.0.0", LINE, "cluster first [1.0.1] [1.1.0 1.2.0]")]
#[case::now_is_for_older_clusters(
    "p 1.0.0",
    "c: 1.0.0; 1.1.0 <1.0.0 @4.20",
    LINE,
    "cluster first [1.1.0] [1.1.0 1.2.0]"
)]
#[case::unknown_here("p 1.0.0", "c: 0.9.0", LINE, "cluster first [] [1.1.0 1.2.0]")]
#[case::not_in_the_present_catalog("p 1.0.0 c", "-", LINE, "cluster first [] [1.1.0 1.2.0]")]
#[case::build_metadata("p 1.0.0+1 c", "c: 1.0.0+1", "c: 1.1.0 ~1.0.0", "cluster first [] [1.1.0]")]
#[case::channel_is_gone(
    "p 1.0.0 a",
    "a: 1.0.0",
    "c: 1.0.0; 1.1.0 <1.0.0|b: 1.0.0",
    "cluster first to c [] [1.1.0]"
)]
#[case::default_does_not_lead("p 1.0.0 a", "a: 1.0.0", "c: 2.0.0|b: 1.0.0", "cluster first to b [] []")]
#[case::two_catalogs_one_knows_it("p 1.0.0", "c: 1.0.0", "c: 1.0.0&&c: 2.0.0", "cluster first [] []")]
#[case::same_steps("p 1.0.0", LINE, LINE, "either most 1.2.0 [1.1.0 1.2.0] [1.1.0 1.2.0]")]
#[case::by_range(
    "p 1.0.0",
    LINE,
    "c: 1.3.0 ~>=1.0.0_<1.3.0",
    "either most 1.2.0 [1.1.0 1.2.0] [1.3.0]"
)]
#[case::not_beyond(
    "p 1.0.0",
    LINE,
    "c: 1.3.0 ~>=1.0.0_<1.2.0",
    "either most 1.1.0 [1.1.0 1.2.0] [1.3.0]"
)]
#[case::for_this_cluster(
    "p 1.0.0",
    "c: 1.0.0 @4.21; 1.1.0 <1.0.0",
    LINE,
    "either most 1.1.0 [1.1.0] [1.1.0 1.2.0]"
)]
#[case::start_is_named_only("p 1.0.0", LINE, "c: 1.1.0 <1.0.0", "either most 1.1.0 [1.1.0 1.2.0] [1.1.0]")]
#[case::stops_cluster(
    "p 1.0.0",
    "c: 1.0.0 @4.20; 1.1.0 <1.0.0",
    LINE,
    "operator first least 1.1.0 most 1.1.0 [1.1.0] [1.2.0]"
)]
#[case::start_is_gone(
    "p 1.0.0",
    LINE,
    "c: 1.2.0; 1.3.0 <1.2.0",
    "operator first least 1.2.0 most 1.2.0 [1.1.0 1.2.0] [1.3.0]"
)]
#[case::up_to_the_middle(
    "p 1.0.0",
    "c: 1.0.0; 1.1.0 <1.0.0; 1.2.0 <1.1.0 @4.20",
    "c: 1.1.0; 1.3.0 <1.1.0 -1.2.0",
    "operator first least 1.1.0 most 1.1.0 [1.1.0 1.2.0] [1.3.0]"
)]
#[case::no_semver("p one", LINE, LINE, &format!("no way [] []: {NO_WAY}"))]
#[case::range_unreadable("p 1.0.0", "c: 1.0.0", "c: 1.1.0 ~^1.0.0", &format!("no way [] []: {NO_WAY}"))]
#[case::another_channel_leads("p 1.0.0 c", "c: 1.0.0", "c: 2.0.0|d: 1.0.0", &format!("no way [] []: {NO_WAY}; channel d has one"))]
#[case::stops_cluster_for_ever(
    "p 1.0.0",
    "c: 1.0.0 @4.20; 1.1.0 <1.0.0 @4.20",
    LINE,
    "no way [1.1.0] []: 1.1.0 stops the upgrade of the cluster: its olm.maxOpenShiftVersion is 4.20"
)]
#[case::property_with_patch(
    "p 1.0.0",
    "c: 1.0.0 @4.20.1",
    "c: 1.0.0",
    "no way [] []: 1.0.0 stops the upgrade of the cluster: its olm.maxOpenShiftVersion cannot be read: \"4.20.1\" is not a version of \
     OpenShift such as 4.21"
)]
#[case::package_is_gone(
    "p 1.0.0",
    LINE,
    "-",
    "no way [1.1.0 1.2.0] []: the catalog after the upgrade does not have the package"
)]
#[case::nowhere("p 1.0.0", "-", "-", "no way [] []: the catalogs do not have the package")]
#[case::no_channel_leads(
    "p 1.0.0 a",
    "a: 1.0.0",
    "c: 2.0.0",
    "no way [] []: channel a is gone after the upgrade, and no other one leads on"
)]
#[case::two_heads(
    "p 1.0.0",
    "c: 1.0.0",
    "c: 1.0.0; 1.1.0 <1.0.0; 1.2.0 <1.0.0",
    "no way [] []: channel c is broken after the upgrade: it has 2 heads: p.v1.2.0, p.v1.1.0"
)]
#[case::no_head(
    "p 1.0.0",
    "c: 1.0.0",
    "c: 1.0.0 <1.1.0; 1.1.0 <1.0.0",
    "no way [] []: channel c is broken after the upgrade: no entry is a head"
)]
#[case::two_catalogs(
    "p 1.0.0",
    "c: 1.0.0",
    "c: 1.0.0&&c: 1.0.0",
    "no way [] []: several catalogs have the package: new, new"
)]
fn plan_of_situation_has_verdict(
    #[case] installed: &str,
    #[case] from: &str,
    #[case] to: &str,
    #[case] expected: &str,
) {
    let plan = planned(installed, from, to);
    let row = &plan.operators[0];
    let labels = |steps: &[UpgradeStep]| steps.iter().map(UpgradeStep::label).collect::<Vec<_>>().join(" ");
    let word = |name: &str, value: Option<&String>| value.map(|value| format!("{name}{value}")).unwrap_or_default();
    let moved = row
        .target_channel
        .as_ref()
        .filter(|_| row.channel != row.target_channel);
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
    assert_eq!(text, expected);
    assert_eq!(plan.is_possible(), row.verdict != UpgradeOrder::NoWay);
    assert_eq!(row.reason.is_some(), row.verdict == UpgradeOrder::NoWay);
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
    assert_eq!(row.missing, ["API g/v1 K", "package q >=1.0.0"]);
    assert_eq!(
        row.deprecations,
        ["package: gone soon", "channel c: use d", "bundle p.v1.0.0: old"]
    );
    assert_eq!(row.notes().len(), 5, "{:?}", row.notes());
}

#[test]
fn image_set_has_steps_and_heads() {
    let old = "c: 1.0.0 @4.20; 1.1.0 <1.0.0";
    let image_set = crate::image_set(&planned("p 1.0.0", old, LINE), &set("old", old));
    let range = |at: usize| {
        let operator = &image_set["mirror"]["operators"][at];
        let channel = &operator["packages"][0]["channels"][0];
        format!(
            "{} {} {}",
            operator["catalog"], channel["minVersion"], channel["maxVersion"]
        )
    };
    assert_eq!(
        [range(0), range(1)],
        [r#""new" "1.2.0" "1.2.0""#, r#""old" "1.1.0" "1.1.0""#]
    );
}
