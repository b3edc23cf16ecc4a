//! Properties of all selections and compositions.

use std::collections::{BTreeMap, BTreeSet};

use catalog_mirror_compose::{Composition, Selection};
use olm::{Channel, Package, PackageParser};
use proptest::{collection::vec, option, prelude::*};

use crate::support::{MemoryCatalog, compose, package, select, selection};

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
            let replaces = replaces.iter().filter(|replaced| **replaced != at).map(version);
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

fn selections() -> impl Strategy<Value = Selection> {
    let bound =
        |name| option::of(0..8_u32).prop_map(move |minor| field(minor, |minor| format!(", {name}: 1.{minor}.0")));
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
        selection(&format!("packages: [{{name: p{default}{rule}}}]"))
    })
}

fn field(value: Option<u32>, text: impl Fn(u32) -> String) -> String {
    value.map(text).unwrap_or_default()
}

fn apply(selection: &Selection, lines: &str) -> Option<String> {
    select(selection, "p", lines).ok()?
}

fn reached(channel: &Channel) -> BTreeSet<&String> {
    let heads = channel.heads();
    let mut open: Vec<&str> = heads.clone();
    let mut reached = BTreeSet::new();
    while let Some(name) = open.pop() {
        if let Some((name, entry)) = channel.entries.get_key_value(name)
            && reached.insert(name)
        {
            open.extend(entry.replaces.iter().chain(&entry.skips).map(String::as_str));
        }
    }
    assert_eq!(heads.len(), 1);
    reached
}

/// Channels that are not kept as they were.
fn cut<'a>(before: &Package, after: &'a Package) -> impl Iterator<Item = &'a Channel> {
    let changed = after
        .channels
        .iter()
        .filter(|(name, channel)| before.channels[*name].entries != channel.entries);
    changed.map(|(_, channel)| channel).collect::<Vec<_>>().into_iter()
}

proptest! {
    #[test]
    fn selection_of_its_own_result_changes_nothing(channels in channels(), selection in selections()) {
        let lines = lines("p", &channels);
        if let Some(kept) = apply(&selection, &lines) {
            prop_assert_eq!(apply(&selection, &kept), Some(kept));
        }
    }

    #[test]
    fn accepted_result_has_one_head_that_reaches_all(channels in channels(), selection in selections()) {
        let lines = lines("p", &channels);
        if let Some(kept) = apply(&selection, &lines) {
            let (before, after) = (PackageParser::parse(lines.as_bytes()), PackageParser::parse(kept.as_bytes()));
            for channel in cut(&before, &after) {
                let reached = reached(channel);
                prop_assert!(channel.entries.keys().all(|entry| reached.contains(entry)));
                prop_assert!(channel.entries.keys().all(|entry| after.bundles.contains_key(entry)));
            }
            let default = after.default_channel.as_ref().unwrap();
            prop_assert!(after.channels.contains_key(default) || kept == lines);
            // Lines are only left out, and the rest keeps its order.
            let names: Vec<&String> = before.bundles.keys().collect();
            prop_assert!(after.bundles.keys().all(|name| names.contains(&name)));
        }
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
        let composition: Composition = serde_saphyr::from_str(&yaml).unwrap();
        let result = |mut catalogs: [MemoryCatalog; 2]| {
            let texts: Vec<BTreeMap<String, String>> = catalogs.iter().map(|catalog| catalog.lines.clone()).collect();
            let composed = compose(&composition, &mut catalogs).ok()?;
            let lines = composed.packages.into_iter().map(|(name, lines)| {
                lines.unwrap_or_else(|input| texts[input][&name].clone())
            });
            Some(lines.collect::<String>())
        };
        let [one, two] = catalogs.clone();
        prop_assert_eq!(result(catalogs), result([two, one]));
    }
}
