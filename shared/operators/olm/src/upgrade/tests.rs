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
        let (mut entry, mut words) = (ChannelEntry::default(), text.split(' '));
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
    let graph = UpgradeGraph::new(&package, &package.channels["c"]);
    let (from, to) = (format!("v{from}"), format!("v{to}"));
    let steps = graph.fewest_steps(&start(&package, &from), &to);
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
    let graph = UpgradeGraph::of_olm_v0(&package, &package.channels["c"]);
    let start = start(&package, &format!("v{from}"));
    let steps = graph.map_or_else(
        |error| error.to_string(),
        |graph| versions(&graph.first_steps(&start)),
    );
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
        let graph = UpgradeGraph::new(&package, &package.channels["c"]);
        let names: Vec<&String> = package.bundles.keys().collect();
        for (from, to) in names.iter().flat_map(|from| names.iter().map(move |to| (from, to))) {
            let steps = graph.fewest_steps(&start(&package, from), to);
            prop_assert_eq!(steps.map(|steps| steps.len()), brute_force(&package, from, to, &mut Vec::new()), "{} {}", from, to);
        }
    }
}
