//! Rules that the page has too: both are judged by one table, `tests/cases.json`.

use model::Facts;
use olm::{
    FirstSteps, Package, PackageParser, SEARCH, SEARCH_LIMIT_MAX, SearchIndex, SearchQuery,
    UpgradeGraph, UpgradeStep, VersionRange,
};
use serde_json::{Value, json};
use work::Budget;

fn cases() -> Value {
    serde_json::from_str(include_str!("../../../../../tests/cases.json")).unwrap()
}

fn rows(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[test]
fn ranges_have_the_versions_of_the_table() {
    for case in rows(&cases()["ranges"]) {
        let range = VersionRange::parse(text(&case["range"]));
        for (side, expected) in [("in", true), ("out", false)] {
            for version in rows(&case[side]) {
                let parsed = olm::parse_version(text(version)).unwrap();
                let found = range.as_ref().is_some_and(|range| range.contains(&parsed));
                assert_eq!(found, expected, "{case} {version}");
            }
        }
    }
}

/// Returns the package of a case, with one channel `c`.
fn package(entries: &Value) -> Package {
    let channel = json!({"schema": "olm.channel", "package": "p", "name": "c", "entries": entries});
    let mut lines = format!("{channel}\n");
    for entry in rows(entries) {
        let name = text(&entry["name"]);
        let value = json!({"packageName": "p", "version": &name[1..]});
        let properties = json!([{"type": "olm.package", "value": value}]);
        let bundle =
            json!({"schema": "olm.bundle", "package": "p", "name": name, "properties": properties});
        lines += &format!("{bundle}\n");
    }
    PackageParser::parse(lines.as_bytes())
}

/// Returns a way with its start, as the page has it.
fn way<'s>(from: &UpgradeStep, steps: impl IntoIterator<Item = &'s UpgradeStep>) -> Value {
    let steps = steps.into_iter().map(|step| step.bundle.clone());
    let mut names = vec![from.bundle.clone()];
    names.extend(steps);
    json!(names)
}

#[test]
fn upgrades_take_the_steps_of_the_table() {
    let budget = Budget::default();
    for case in rows(&cases()["upgrades"]) {
        let package = package(&case["entries"]);
        let channel = &package.channels["c"];
        let name = text(&case["from"]);
        let from = UpgradeStep::start(name, package.version_of(name));
        let graph = UpgradeGraph::new(&package, channel, &budget).unwrap();
        let fewest = graph.fewest_steps(&from, &budget).unwrap();
        let steps = fewest.to(text(&case["to"]));
        let steps = steps.map(|steps| way(&from, &steps));
        assert_eq!(json!(steps), case["steps"], "{}", case["case"]);
        let automatic = channel.olm_v0_order().ok().map(|order| {
            let graph = UpgradeGraph::in_order(&package, channel, &order, &budget).unwrap();
            let first = FirstSteps::new(graph, &budget).unwrap();
            let taken = first.way(&from, &budget).unwrap();
            way(&from, taken.steps())
        });
        assert_eq!(json!(automatic), case["automatic"], "{}", case["case"]);
    }
}

#[test]
fn search_finds_the_packages_of_the_table_in_their_order() {
    let search = &cases()["search"];
    let packages = &search["packages"];
    let document = json!({"version": SEARCH.version, "packages": packages});
    let facts: Facts<model::SearchPackage> = serde_json::from_value(document).unwrap();
    let index = SearchIndex::new(facts);
    for case in rows(&search["queries"]) {
        let query = SearchQuery {
            text: text(&case["q"]).to_owned(),
            limit: SEARCH_LIMIT_MAX,
            ..SearchQuery::default()
        };
        let found = index.find(&query).unwrap().results;
        let names: Vec<&String> = found.iter().map(|hit| &hit.package).collect();
        assert_eq!(json!(names), case["found"], "{}", case["q"]);
    }
}
