//! Properties that hold for any two packages.

use std::collections::{BTreeMap, BTreeSet};

use model::Sha256;
use olm::{Changes, PackageChange, PackageParser, ValueChange};
use proptest::{collection::btree_map, prelude::*, sample::subsequence};

/// Contents of lines by the index of their schema and their name.
type Metas = BTreeMap<(usize, u8), u8>;

const SCHEMAS: [&str; 4] = [
    "olm.channel",
    "olm.bundle",
    "olm.deprecations",
    "example.other",
];

fn line(schema: usize, name: u8, content: u8) -> String {
    let schema_name = SCHEMAS[schema];
    match schema {
        0 => format!(
            r#"{{"entries":[{{"name":"e9"}},{{"name":"e{content}","replaces":"e9"}}],"name":"n{name}","schema":"{schema_name}"}}"#
        ),
        1 => format!(
            r#"{{"image":"r.example/i:{content}","name":"n{name}","schema":"{schema_name}"}}"#
        ),
        2 => format!(
            r#"{{"entries":[{{"message":"m{content}","reference":{{"name":"n{name}","schema":"olm.bundle"}}}}],"schema":"{schema_name}"}}"#
        ),
        _ => format!(r#"{{"name":"n{name}","schema":"{schema_name}","text":{content}}}"#),
    }
}

fn text(metas: &Metas) -> String {
    let lines = metas
        .iter()
        .map(|((schema, name), content)| line(*schema, *name, *content));
    lines.map(|line| line + "\n").collect()
}

fn metas() -> impl Strategy<Value = Metas> {
    btree_map((0..4_usize, 0..5_u8), 0..3_u8, 0..12)
}

fn between(old: &Metas, new: &Metas) -> PackageChange {
    let [old, new] = [old, new].map(|metas| PackageParser::parse(text(metas).as_bytes()));
    let mut changes = Changes::new(Sha256::of(b"a"), Sha256::of(b"b"));
    changes.add("p", Some(&old), Some(&new));
    changes.packages.changed.remove(0)
}

/// Returns the names of one schema.
fn names(metas: &Metas, schema: usize) -> BTreeSet<String> {
    let of_schema = metas.keys().filter(|(of, _)| *of == schema);
    of_schema.map(|(_, name)| format!("n{name}")).collect()
}

/// Returns the name and both contents of what both states have of a schema and what differs.
fn differing(old: &Metas, new: &Metas, schema: usize) -> impl Iterator<Item = (String, [u8; 2])> {
    let both = old
        .iter()
        .filter_map(move |(key, old)| Some((key, [*old, *new.get(key)?])));
    both.filter(move |(key, [old, new])| key.0 == schema && old != new)
        .map(|(key, contents)| (format!("n{}", key.1), contents))
}

proptest! {
    #[test]
    fn equal_packages_are_only_reordered(metas in metas()) {
        let nothing = PackageChange { name: "p".into(), reordered: true, ..PackageChange::default() };
        prop_assert_eq!(between(&metas, &metas), nothing);
    }

    #[test]
    fn different_packages_never_look_equal(old in metas(), new in metas()) {
        let change = between(&old, &new);
        prop_assert_eq!(change.reordered, old == new);
    }

    #[test]
    fn changes_lead_from_the_old_to_the_new_state(old in metas(), new in metas()) {
        let change = between(&old, &new);
        let mut channels = names(&old, 0);
        change.channels.removed.iter().for_each(|gone| assert!(channels.remove(&gone.name)));
        channels.extend(change.channels.added.into_iter().map(|channel| channel.name));
        prop_assert_eq!(channels, names(&new, 0));
        let mut bundles = names(&old, 1);
        change.bundles.removed.iter().for_each(|gone| assert!(bundles.remove(&gone.name)));
        bundles.extend(change.bundles.added.into_iter().map(|bundle| bundle.name));
        prop_assert_eq!(bundles, names(&new, 1));
        let changed: Vec<String> = change.bundles.changed.into_iter().map(|bundle| bundle.name).collect();
        let expected: Vec<String> = differing(&old, &new, 1).map(|(name, _)| name).collect();
        prop_assert_eq!(changed, expected);
        let changed = change.channels.changed.into_iter().map(|channel| (channel.name, channel.heads));
        let expected = differing(&old, &new, 0).map(|(name, contents)| {
            let [from, to] = contents.map(|content| vec![format!("e{content}")]);
            (name, Some(ValueChange { from, to }))
        });
        prop_assert_eq!(changed.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }

    #[test]
    fn changes_back_mirror_the_changes_forward(old in metas(), new in metas()) {
        let (there, back) = (between(&old, &new), between(&new, &old));
        prop_assert_eq!(there.channels.added, back.channels.removed);
        prop_assert_eq!(there.bundles.removed, back.bundles.added);
        prop_assert_eq!(there.deprecations.added, back.deprecations.removed);
    }

    #[test]
    fn chunk_borders_do_not_change_the_package(metas in metas(), cuts in subsequence((0..2000_usize).collect::<Vec<_>>(), 0..9)) {
        let lines = text(&metas);
        let mut reader = PackageParser::default();
        let mut start = 0;
        for cut in cuts.into_iter().filter(|cut| *cut < lines.len()) {
            reader.push(&lines.as_bytes()[start..cut]);
            start = cut;
        }
        reader.push(&lines.as_bytes()[start..]);
        prop_assert_eq!(reader.finish(), PackageParser::parse(lines.as_bytes()));
    }

    #[test]
    fn parser_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200), json in "\\{\"schema\":\"olm.(bundle|channel|package|deprecations)\",\\PC{0,40}\\}") {
        PackageParser::parse(&bytes);
        PackageParser::parse(json.as_bytes());
    }
}
