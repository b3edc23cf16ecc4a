use std::collections::{HashSet, VecDeque};
use std::iter;
use std::ops::RangeBounds;

use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::Bundle;

/// Builds a package with one channel from entries written as `1.2.0 <1.1.0 -1.0.0 ~>=0.9.0`: a
/// version, what it replaces, what it skips, and its range with `_` for spaces. A bundle has the
/// name `v` and its version.
fn package(entries: &[&str]) -> Package {
    let mut package = Package::default();
    let mut channel = Channel::default();
    for text in entries {
        let mut entry = ChannelEntry::default();
        let mut words = text.split(' ');
        let version = words.next().unwrap();
        for word in words {
            let name = format!("v{}", &word[1..]);
            match word.as_bytes()[0] {
                b'<' => entry.replaces = Some(name),
                b'-' => drop(entry.skips.insert(name)),
                _ => entry.skip_range = Some(word[1..].replace('_', " ")),
            }
        }
        let bundle = Bundle {
            version: Some(version.to_owned()),
            ..Bundle::default()
        };
        package.bundles.insert(format!("v{version}"), bundle);
        channel.entries.insert(format!("v{version}"), entry);
    }
    package.channels.insert("c".to_owned(), channel);
    package
}

fn start(package: &Package, bundle: &str) -> UpgradeStep {
    UpgradeStep::start(bundle, package.version_of(bundle))
}

fn graph(package: &Package) -> UpgradeGraph<'_> {
    UpgradeGraph::new(package, &package.channels["c"], &Budget::default()).unwrap()
}

/// Returns the steps of OLM v0 in the channel, or the reason for which it has none.
fn olm_v0(package: &Package) -> Result<FirstSteps<'_>, String> {
    let channel = &package.channels["c"];
    let order = channel.olm_v0_order().map_err(|fault| fault.to_string())?;
    let budget = Budget::default();
    let graph = UpgradeGraph::in_order(package, channel, &order, &budget).unwrap();
    Ok(FirstSteps::new(graph, &budget).unwrap())
}

fn versions(steps: &[UpgradeStep]) -> String {
    UpgradeStep::labels(steps).replace(" -> ", " ")
}

#[rstest]
#[case::newest_first(
    &["1.0.0", "1.1.0 <1.0.0", "1.2.0 -1.0.0", "1.3.0 <1.2.0 -1.1.0"], "1.0.0", "1.3.0", Some("1.2.0 1.3.0")
)]
#[case::no_longer_there(&["1.1.0 <1.0.0"], "1.0.0", "1.1.0", Some("1.1.0"))]
#[case::range_unreadable(&["1.0.0", "1.1.0 ~^1.0.0"], "1.0.0", "1.1.0", None)]
#[case::build_metadata(&["1.0.0+7", "1.1.0 ~1.0.0"], "1.0.0+7", "1.1.0", Some("1.1.0"))]
#[case::no_semver(&["one", "1.1.0 ~<2.0.0"], "one", "1.1.0", None)]
fn fewest_steps_follow_all_rules(
    #[case] entries: &[&str],
    #[case] from: &str,
    #[case] to: &str,
    #[case] expected: Option<&str>,
) {
    let package = package(entries);
    let graph = graph(&package);
    let start = start(&package, &format!("v{from}"));
    let fewest = graph.fewest_steps(&start, &Budget::default()).unwrap();
    let steps = fewest.to(&format!("v{to}"));
    assert_eq!(steps.map(|steps| versions(&steps)).as_deref(), expected);
}

#[rstest]
#[case::one_by_one(&["1.0.0", "1.1.0 <1.0.0", "1.2.0 <1.1.0"], "1.0.0", "1.1.0 1.2.0")]
#[case::as_far_as_possible(&["1.0.0", "1.1.0 <1.0.0", "1.2.0 <1.1.0 -1.0.0"], "1.0.0", "1.2.0")]
#[case::not_to_skipped(&["1.0.0", "1.1.0 <1.0.0", "1.2.0 <1.1.0 -1.1.0"], "1.0.0", "")]
#[case::not_beside_the_chain(&["1.0.0", "1.1.0 -1.0.0", "1.2.0 -1.1.0"], "1.0.0", "")]
#[case::own_range(&["1.0.0", "1.1.0 <1.0.0 ~<2.0.0"], "1.0.0", "1.1.0")]
#[case::own_range_before_older(&["1.0.0 ~>=0.5.0", "1.1.0 <1.0.0 ~<2.0.0"], "1.1.0", "")]
#[case::forth_and_back(&["1.0.0 ~>1.0.0", "1.1.0 <1.0.0 ~<1.1.0"], "1.0.0", "1.1.0")]
#[case::no_head(&["1.0.0 <1.1.0", "1.1.0 <1.0.0"], "1.0.0", "no entry is a head")]
#[case::two_heads(&["1.0.0", "1.1.0"], "1.0.0", "it has 2 heads: v1.0.0, v1.1.0")]
#[case::cycle(
    &["1.0.0 <1.1.0", "1.1.0 <1.0.0", "1.2.0 <1.1.0"], "1.0.0", "its entries replace each other in a cycle at v1.1.0"
)]
fn olm_v0_steps_follow_the_chain(
    #[case] entries: &[&str],
    #[case] from: &str,
    #[case] expected: &str,
) {
    let package = package(entries);
    let start = start(&package, &format!("v{from}"));
    let steps = match olm_v0(&package) {
        Ok(steps) => {
            let way = steps.way(&start, &Budget::default()).unwrap();
            assert_eq!(way.steps().count(), way.len());
            versions(&Vec::from_iter(way.steps().cloned()))
        }
        Err(fault) => fault,
    };
    assert_eq!(steps, expected);
}

/// Returns the length of the shortest way that visits no bundle twice, by trying all of them.
fn brute_force(package: &Package, at: &str, to: &str, passed: &mut Vec<String>) -> Option<usize> {
    if at == to {
        return Some(0);
    }
    passed.push(at.to_owned());
    let version = package.version_of(at).and_then(comparable_version);
    let leads = |entry: &ChannelEntry| {
        let range = entry.skip_range.as_deref().and_then(VersionRange::parse);
        let contains = |range: VersionRange| range.contains(version.as_ref().unwrap());
        entry.replaces.as_deref() == Some(at)
            || entry.skips.contains(at)
            || range.is_some_and(contains)
    };
    let entries = &package.channels["c"].entries;
    let next = entries
        .iter()
        .filter(|(_, entry)| leads(entry))
        .map(|(name, _)| name);
    let next: Vec<&String> = next.filter(|name| !passed.contains(name)).collect();
    let lengths = next
        .into_iter()
        .filter_map(|name| brute_force(package, name, to, passed));
    let fewest = lengths.min();
    passed.pop();
    fewest.map(|steps| steps + 1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn fewest_steps_equal_brute_force(
        entries in prop::collection::vec((0..7_u8, prop::collection::vec(0..7_u8, 0..2), 0..7_u8, 0..4_u8), 1..7),
    ) {
        let entries = entries.iter().enumerate().map(|(number, (replaces, skips, low, width))| {
            let skips: String = skips.iter().map(|skip| format!(" -{skip}.0.0")).collect();
            format!("{number}.0.0 <{replaces}.0.0{skips} ~>={low}.0.0_<{}.0.0", low + width)
        });
        let entries: Vec<String> = entries.collect();
        let package = package(&entries.iter().map(String::as_str).collect::<Vec<_>>());
        let graph = graph(&package);
        let names: Vec<&String> = package.bundles.keys().collect();
        for from in &names {
            let start = start(&package, from);
            let fewest = graph.fewest_steps(&start, &Budget::default()).unwrap();
            for to in &names {
                let expected = brute_force(&package, from, to, &mut Vec::new());
                prop_assert_eq!(fewest.to(to).map(|steps| steps.len()), expected, "{} {}", from, to);
            }
        }
    }
}

/// Ranges of all forms, with pre-releases and with gaps.
fn range() -> impl Strategy<Value = String> {
    let version = prop_oneof![
        (0..4_u8, 0..3_u8).prop_map(|(major, minor)| format!("{major}.{minor}.0")),
        (0..4_u8, 0..3_u8, 0..3_u8)
            .prop_map(|(major, minor, number)| format!("{major}.{minor}.0-rc.{number}")),
        (0..4_u8).prop_map(|major| format!("{major}.x")),
    ];
    let operator = prop::sample::select(vec!["", "<", "<=", ">", ">=", "!", "="]);
    let condition =
        (operator, version).prop_map(|(operator, version)| operator.to_owned() + &version);
    let alternative = prop::collection::vec(condition, 1..4).prop_map(|all| all.join("_"));
    prop::collection::vec(alternative, 1..4).prop_map(|all| all.join("_||_"))
}

/// Text of an entry of [`package`], without its version.
fn rules() -> impl Strategy<Value = String> {
    let name = (0..4_u8, 0..3_u8).prop_map(|(major, minor)| format!("{major}.{minor}.0"));
    let replaces = prop::option::of(name.clone().prop_map(|name| format!(" <{name}")));
    let skips = prop::collection::vec(name.prop_map(|name| format!(" -{name}")), 0..3);
    let range = prop::option::of(range().prop_map(|range| format!(" ~{range}")));
    (replaces, skips, range).prop_map(|(replaces, skips, range)| {
        replaces.unwrap_or_default() + &skips.concat() + &range.unwrap_or_default()
    })
}

/// Packages whose versions are numbers and pre-releases, in any order.
fn packages() -> impl Strategy<Value = Package> {
    let versions: Vec<String> = (0..12)
        .map(|number| format!("{}.{}.0", number / 3, number % 3))
        .chain((0..8).map(|number| format!("{}.1.0-rc.{}", number / 2, number % 2)))
        .collect();
    let some = prop::sample::subsequence(versions, 1..9);
    (some, prop::collection::vec(rules(), 9)).prop_map(|(versions, rules)| {
        let entries: Vec<String> = versions
            .iter()
            .zip(rules)
            .map(|(version, rules)| version.clone() + &rules)
            .collect();
        package(&entries.iter().map(String::as_str).collect::<Vec<_>>())
    })
}

/// Returns true if a version is in a range, by all its intervals one after the other.
fn is_in_range(range: Option<&str>, version: Option<&Version>) -> bool {
    let range = range.and_then(VersionRange::parse);
    range.zip(version).is_some_and(|(range, version)| {
        let mut intervals = range.intervals().iter();
        intervals.any(|interval| RangeBounds::contains(interval, version))
    })
}

/// Returns the steps from a bundle by asking each entry.
fn asked_one_by_one(graph: &UpgradeGraph<'_>, from: &UpgradeStep) -> Vec<UpgradeStep> {
    let version = from.version.as_deref().and_then(comparable_version);
    let steps = graph.entries.iter().map(|entry| {
        let range = entry.entry.skip_range.as_deref();
        let rules = [
            (UpgradeRule::Skips, entry.entry.skips.contains(&from.bundle)),
            (UpgradeRule::SkipRange, is_in_range(range, version.as_ref())),
            (
                UpgradeRule::Replaces,
                entry.entry.replaces.as_ref() == Some(&from.bundle),
            ),
        ];
        let holding = rules.into_iter().filter(|(_, holds)| *holds);
        UpgradeStep {
            by: holding.map(|(rule, _)| rule).collect(),
            ..UpgradeStep::start(entry.name, entry.version)
        }
    });
    steps.filter(|step| !step.by.is_empty()).collect()
}

/// Returns the steps if each leads to the first entry, by asking each entry at each step.
fn walked_one_by_one(graph: &UpgradeGraph<'_>, from: &UpgradeStep) -> Vec<UpgradeStep> {
    let mut way = vec![from.clone()];
    let mut passed = HashSet::from([from.bundle.clone()]);
    while let Some(step) = asked_one_by_one(graph, &way[way.len() - 1])
        .into_iter()
        .next()
    {
        if !passed.insert(step.bundle.clone()) {
            break;
        }
        way.push(step);
    }
    way.split_off(1)
}

/// Returns the fewest steps by a search that asks each entry at each step.
fn searched_one_by_one(
    graph: &UpgradeGraph<'_>,
    from: &UpgradeStep,
    to: &str,
) -> Option<Vec<UpgradeStep>> {
    // The start of the first step to each bundle.
    let mut before: HashMap<String, UpgradeStep> = HashMap::new();
    let mut open = VecDeque::from([from.clone()]);
    while let Some(at) = open.pop_front() {
        if at.bundle == to {
            let way = iter::successors(Some(at), |step| before.remove(&step.bundle));
            let mut way: Vec<UpgradeStep> = way.collect();
            way.reverse();
            return Some(way.split_off(1));
        }
        for step in asked_one_by_one(graph, &at) {
            if step.bundle != from.bundle && !before.contains_key(&step.bundle) {
                before.insert(step.bundle.clone(), at.clone());
                open.push_back(step);
            }
        }
    }
    None
}

/// Returns starts of ways: each bundle with its version and with that of another one, one that no
/// entry has, and versions alone.
fn starts(package: &Package) -> Vec<UpgradeStep> {
    let versions = [
        "0.0.1",
        "1.1.0-rc.0",
        "1.1.0",
        "2.0.0",
        "3.2.0+build",
        "one",
    ];
    let mut names: Vec<&str> = package.bundles.keys().map(String::as_str).collect();
    names.extend(["", "gone"]);
    names
        .iter()
        .flat_map(|name| {
            let own = UpgradeStep::start(name, package.version_of(name));
            let others = versions.map(|version| UpgradeStep::start(name, Some(version)));
            others.into_iter().chain([own])
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn updates_equal_those_of_each_entry_asked_alone(package in packages()) {
        let graph = graph(&package);
        for start in starts(&package) {
            prop_assert_eq!(graph.updates(&start), asked_one_by_one(&graph, &start), "{:?}", start);
        }
    }

    #[test]
    fn fewest_steps_equal_those_of_a_search(package in packages()) {
        let graph = graph(&package);
        for start in starts(&package) {
            let fewest = graph.fewest_steps(&start, &Budget::default()).unwrap();
            prop_assert_eq!(fewest.is_any(), asked_one_by_one(&graph, &start).iter().any(|step| step.bundle != start.bundle));
            for to in graph.entries.iter().map(|entry| entry.name).chain(["", "gone"]) {
                prop_assert_eq!(fewest.to(to), searched_one_by_one(&graph, &start, to), "{:?} to {}", start, to);
            }
        }
    }

    #[test]
    fn first_steps_equal_those_of_a_walk(package in packages()) {
        let budget = Budget::default();
        // The newest first, so that entries also update each other.
        let all = FirstSteps::new(graph(&package), &budget).unwrap();
        for steps in [Some(all), olm_v0(&package).ok()].into_iter().flatten() {
            let starts = starts(&package);
            let mut leading = Vec::new();
            for start in &starts {
                let walked = walked_one_by_one(steps.graph(), start);
                let way = steps.way(start, &budget).unwrap();
                prop_assert_eq!(way.steps().cloned().collect::<Vec<_>>(), walked.clone(), "{:?}", start);
                let names = way.entries().map(|number| steps.graph().entries[number].name);
                prop_assert!(names.eq(walked.iter().map(|step| step.bundle.as_str())));
                let last = walked.last().unwrap_or(start);
                let leads = Some(&*last.bundle) == steps.head();
                prop_assert_eq!(steps.leads_to_head(start, &budget).unwrap(), leads, "{:?}", start);
                leading.push(leads);
            }
            // Of every bundle only the last start counts, as a name is asked once.
            let own: Vec<&UpgradeStep> = starts
                .iter()
                .filter(|start| start.version.as_deref() == package.version_of(&start.bundle))
                .collect();
            for some in [&own[..], &own[..1], &own[own.len() - 1..]] {
                let any = some.iter().any(|start| steps.leads_to_head(start, &budget).unwrap());
                let asked = UpgradeStarts::new(some.iter().copied());
                prop_assert_eq!(asked.any_leads_to_head(&steps, &budget).unwrap(), any);
            }
            for (start, leads) in starts.iter().zip(leading) {
                let asked = UpgradeStarts::new([start]);
                prop_assert_eq!(asked.any_leads_to_head(&steps, &budget).unwrap(), leads, "{:?}", start);
            }
        }
    }

    #[test]
    fn hits_are_those_of_a_walk(package in packages(), holds in prop::collection::vec(any::<bool>(), 9)) {
        let budget = Budget::default();
        let steps = FirstSteps::new(graph(&package), &budget).unwrap();
        let entries = steps.graph().entries.len();
        let hits = steps.hits(holds[..entries].to_vec());
        for start in starts(&package) {
            let way = steps.way(&start, &budget).unwrap();
            let walked: Vec<WayHit> = way
                .entries()
                .zip(1..)
                .filter(|(entry, _)| holds[*entry])
                .map(|(entry, steps)| WayHit { steps, entry })
                .collect();
            prop_assert_eq!(hits.first_on(&way), walked.first().copied(), "{:?}", start);
            prop_assert_eq!(hits.last_on(&way), walked.last().copied(), "{:?}", start);
            prop_assert_eq!(way.last(), way.entries().last().map(|entry| way.bundle(entry)));
        }
    }

    #[test]
    fn range_contains_what_one_of_its_intervals_contains(text in range()) {
        let text = text.replace('_', " ");
        let Some(range) = VersionRange::parse(&text) else { return Ok(()) };
        for start in starts(&Package::default()) {
            let version = start.version.as_deref().and_then(comparable_version);
            if let Some(version) = &version {
                prop_assert_eq!(range.contains(version), is_in_range(Some(&text), Some(version)), "{} {}", text, version);
            }
        }
    }
}

#[test]
fn graph_accepts_exactly_its_steps() {
    let package = package(&[
        "1.0.0",
        "1.1.0 <1.0.0 ~<1.1.0_||_>2.0.0",
        "1.2.0 <1.1.0 -1.0.0",
    ]);
    let steps = |budget: &Budget| {
        let graph = UpgradeGraph::new(&package, &package.channels["c"], budget)?;
        let start = start(&package, "v1.0.0");
        drop(graph.fewest_steps(&start, budget)?);
        FirstSteps::new(graph, budget)?.way(&start, budget)
    };
    let whole = Budget::default();
    assert_eq!(steps(&whole).unwrap().len(), 1);
    let exactly = Budget::new(whole.used(), work::MemoryPool::default());
    steps(&exactly).unwrap();
    for less in 0..whole.used() {
        let budget = Budget::new(less, work::MemoryPool::default());
        assert_eq!(steps(&budget).unwrap_err(), OverBudget::Steps(less));
    }
}
