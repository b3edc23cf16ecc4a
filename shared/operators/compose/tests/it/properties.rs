//! Properties of all selections and compositions.

use std::collections::{BTreeMap, BTreeSet};

use olm::{Channel, PackageParser};
use proptest::{collection::vec, option, prelude::*};

use crate::support::{MemoryCatalog, compose, package, select};

/// Entries of a channel: for each version the place that it replaces and the places that it skips.
type Graph = Vec<(Option<usize>, Vec<usize>)>;

fn graph() -> impl Strategy<Value = Graph> {
    vec((option::of(0..8_usize), vec(0..8_usize, 0..3)), 1..8)
}

fn lines(name: &str, channels: &BTreeMap<String, Graph>) -> String {
    let version = |at: &usize| format!("1.{at}.0");
    let channels = channels.iter().map(|(channel, graph)| {
        let entries = graph.iter().enumerate().map(|(at, (replaces, skips))| {
            // Mostly an update replaces an older version; the rest are cycles and gaps.
            let replaces = replaces.map(|replaced| match replaced % 3 {
                0 => replaced,
                _ => at.saturating_sub(1),
            });
            let replaces = replaces
                .iter()
                .filter(|replaced| **replaced != at)
                .map(version);
            let skips = skips.iter().map(|skipped| format!("-{}", version(skipped)));
            let updates: Vec<String> = replaces.chain(skips).collect();
            format!("{}<{}", version(&at), updates.join(","))
        });
        format!("{channel}: {}", entries.collect::<Vec<_>>().join(" "))
    });
    package(name, &channels.collect::<Vec<_>>().join("; "))
}

fn channels() -> impl Strategy<Value = BTreeMap<String, Graph>> {
    vec(graph(), 1..4).prop_map(|graphs| {
        let named = graphs
            .into_iter()
            .enumerate()
            .map(|(at, graph)| (format!("c{at}"), graph));
        named.collect()
    })
}

fn selections() -> impl Strategy<Value = String> {
    let bound = |name| {
        option::of(0..8_u32)
            .prop_map(move |minor| field(minor, |minor| format!(", {name}: 1.{minor}.0")))
    };
    let versions = prop_oneof![
        Just(", full: true".to_owned()),
        (bound("minVersion"), bound("maxVersion")).prop_map(|(min, max)| min + &max),
    ];
    let place = option::of(0..3_u32);
    (versions, place.clone(), place).prop_map(|(versions, default, channel)| {
        let default = field(default, |at| format!(", defaultChannel: c{at}"));
        let rule = match channel {
            Some(at) => format!(", channels: [{{name: c{at}{versions}}}]"),
            None => versions,
        };
        format!("packages: [{{name: p{default}{rule}}}]")
    })
}

fn field(value: Option<u32>, text: impl Fn(u32) -> String) -> String {
    value.map(text).unwrap_or_default()
}

fn reached(channel: &Channel) -> BTreeSet<&String> {
    let heads = channel.heads();
    let mut open: Vec<&str> = heads.clone();
    let mut reached = BTreeSet::new();
    while let Some(name) = open.pop() {
        if let Some((name, entry)) = channel.entries.get_key_value(name)
            && reached.insert(name)
        {
            open.extend(
                entry
                    .replaces
                    .iter()
                    .chain(&entry.skips)
                    .map(String::as_str),
            );
        }
    }
    assert_eq!(heads.len(), 1);
    reached
}

proptest! {
    #[test]
    fn selection_keeps_valid_channels_and_changes_its_own_result_no_more(channels in channels(), selection in selections()) {
        let lines = lines("p", &channels);
        let Ok(composed) = select(&selection, &[("p", &lines)]) else {
            return Ok(());
        };
        let kept = &composed.packages["p"];
        let again = select(&selection, &[("p", kept)]);
        prop_assert_eq!(again.map(|again| again.packages), Ok(composed.packages.clone()));
        let (before, after) = (PackageParser::parse(lines.as_bytes()), PackageParser::parse(kept.as_bytes()));
        for (name, channel) in &after.channels {
            // A channel that is kept as it was may be invalid.
            if before.channels[name].entries != channel.entries {
                let reached = reached(channel);
                prop_assert!(channel.entries.keys().all(|entry| reached.contains(entry)));
                prop_assert!(channel.entries.keys().all(|entry| after.bundles.contains_key(entry)));
            }
        }
        let default = after.default_channel.as_ref().unwrap();
        prop_assert!(after.channels.contains_key(default) || *kept == lines);
        // Lines are only left out.
        prop_assert!(after.bundles.keys().all(|name| before.bundles.contains_key(name)));
    }

    #[test]
    fn order_of_disjoint_inputs_changes_nothing(
        packages in vec(channels(), 2..5),
        globals in vec(vec(0..4_u8, 0..3), 2),
        heads in any::<bool>(),
    ) {
        let mut catalogs = [MemoryCatalog::default(), MemoryCatalog::default()];
        for (at, channels) in packages.iter().enumerate() {
            let name = format!("p{at}");
            catalogs[at % 2].lines.insert(name.clone(), lines(&name, channels));
        }
        for (catalog, globals) in catalogs.iter_mut().zip(&globals) {
            let lines: BTreeSet<String> = globals.iter().map(|at| format!("{{\"schema\":\"s{at}\"}}\n")).collect();
            if !lines.is_empty() {
                catalog.lines.insert(String::new(), lines.into_iter().collect());
            }
        }
        let select = if heads { "{}" } else { "{full: true}" };
        let yaml = format!("inputs: [{{catalog: a, select: {select}}}, {{catalog: b, select: {select}}}]");
        let result = |mut catalogs: [MemoryCatalog; 2]| compose(&yaml, &mut catalogs).ok().map(|composed| composed.packages);
        let [one, two] = catalogs.clone();
        prop_assert_eq!(result(catalogs), result([two, one]));
    }
}
