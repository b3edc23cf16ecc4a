//! Compares two Snapshots, and two states of a Package.

use std::collections::{BTreeMap, BTreeSet};

use model::{Sha256, ShardRef, Snapshot};

use crate::{
    Bundle, BundleChange, BundleSummary, CHANGES_VERSION, Changes, Channel, ChannelChange,
    ChannelSummary, Deprecation, Differences, OtherChange, Package, PackageChange, PackageSummary,
    ValueChange,
};

/// Package whose Shard differs between two Snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangedShard<'a> {
    /// Name of the Package; empty for the global group.
    pub name: &'a str,
    /// Shard in the older Snapshot, if it has one.
    pub old: Option<&'a ShardRef>,
    /// Shard in the newer Snapshot, if it has one.
    pub new: Option<&'a ShardRef>,
}

/// Returns the Packages whose Shards differ: the global group first, then in byte order of their
/// names.
pub fn changed_shards<'a>(old: &'a Snapshot, new: &'a Snapshot) -> Vec<ChangedShard<'a>> {
    // The global group has an empty name and sorts before all others.
    let mut shards: BTreeMap<&str, [Option<&ShardRef>; 2]> = BTreeMap::new();
    for (at, snapshot) in [old, new].into_iter().enumerate() {
        for shard in snapshot.shards() {
            shards.entry(&shard.name).or_default()[at] = Some(shard);
        }
    }
    // Equal hashes mean equal lines, so a Package whose Shard did not change is never read.
    shards.retain(|_, sides| {
        let [old, new] = sides.map(|shard| shard.map(|shard| shard.lines.sha256));
        old != new
    });
    let changed = shards
        .into_iter()
        .map(|(name, [old, new])| ChangedShard { name, old, new });
    changed.collect()
}

impl ChangedShard<'_> {
    /// Returns the number of bytes of lines to read to compare both states of the Package.
    pub fn size(&self) -> u64 {
        self.old
            .into_iter()
            .chain(self.new)
            .map(|shard| shard.lines.size)
            .sum()
    }
}

impl Changes {
    /// Creates a document without changes between two states.
    pub fn new(from: Sha256, to: Sha256) -> Self {
        Self {
            format_version: CHANGES_VERSION,
            from,
            to,
            complete: true,
            packages: Differences::default(),
            global: None,
        }
    }

    /// Adds the changes of one Package. Call it in the order of
    /// [`changed_shards()`](crate::changed_shards()).
    pub fn add(&mut self, name: &str, old: Option<&Package>, new: Option<&Package>) {
        let nothing = Package::default();
        let change = match (old, new) {
            // Beside an empty package all parts are new.
            (Some(only), None) if !name.is_empty() => PackageChange::between(name, &nothing, only),
            // The global group always exists; one without lines has no Shard.
            _ => PackageChange::between(name, old.unwrap_or(&nothing), new.unwrap_or(&nothing)),
        };
        self.push(change, old.is_some(), new.is_some());
    }

    /// Adds a Package that differs but is not compared, for example because it is too large.
    pub fn omit(&mut self, differing: &ChangedShard<'_>) {
        self.complete = false;
        let change = PackageChange {
            name: differing.name.to_owned(),
            omitted: true,
            ..PackageChange::default()
        };
        self.push(change, differing.old.is_some(), differing.new.is_some());
    }

    fn push(&mut self, change: PackageChange, was_there: bool, is_there: bool) {
        if change.name.is_empty() {
            self.global = Some(change);
        } else if was_there && is_there {
            self.packages.changed.push(change);
        } else if is_there {
            self.packages.added.push(change.into());
        } else {
            self.packages.removed.push(change.into());
        }
    }

    /// Returns true if no change was added.
    pub fn is_empty(&self) -> bool {
        self.packages == Differences::default() && self.global.is_none()
    }

    /// Returns the document as JSON with a newline at the end.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(self).expect("it holds only lists and texts");
        bytes.push(b'\n');
        bytes
    }
}

impl From<PackageChange> for PackageSummary {
    /// Returns what is new.
    fn from(all: PackageChange) -> Self {
        Self {
            name: all.name,
            omitted: all.omitted,
            default_channel: all.default_channel.and_then(|channel| channel.to),
            channels: all.channels.added,
            bundles: all.bundles.added,
            deprecations: all.deprecations.added,
        }
    }
}

impl PackageChange {
    fn between(name: &str, old: &Package, new: &Package) -> Self {
        let mut change = Self {
            package: old.package_lines != new.package_lines,
            default_channel: ValueChange::between(
                old.default_channel.clone(),
                new.default_channel.clone(),
            ),
            channels: Differences::between(
                [&old.channels, &new.channels],
                ChannelSummary::of,
                ChannelChange::between,
            ),
            bundles: Differences::between(
                [&old.bundles, &new.bundles],
                BundleSummary::of,
                BundleChange::between,
            ),
            deprecations: Differences::between(
                [&old.deprecations, &new.deprecations],
                |target, message| Deprecation {
                    target,
                    message: message.clone(),
                },
                |target, old, new| {
                    let message = ValueChange {
                        from: Some(old.clone()),
                        to: Some(new.clone()),
                    };
                    Deprecation { target, message }
                },
            ),
            others: others(old, new),
            ..Self::default()
        };
        // The bytes of the Shards differ. If no field does, only the order of the lines can.
        change.reordered = change == Self::default();
        change.name = name.to_owned();
        change
    }
}

impl<Summary, Change> Differences<Summary, Change> {
    /// Compares two maps, the older first. `summary` describes a value that only one of them has,
    /// and `change` one that differs.
    fn between<K: Ord + Clone, V: PartialEq>(
        [old, new]: [&BTreeMap<K, V>; 2],
        summary: fn(K, &V) -> Summary,
        change: fn(K, &V, &V) -> Change,
    ) -> Self {
        let only = |of: &BTreeMap<K, V>, other: &BTreeMap<K, V>| {
            let entries = of.iter().filter(|(key, _)| !other.contains_key(key));
            entries
                .map(|(key, value)| summary(key.clone(), value))
                .collect()
        };
        let both = old
            .iter()
            .filter_map(|(key, value)| Some((key, value, new.get(key)?)));
        let differ = both.filter(|(_, old, new)| old != new);
        Self {
            added: only(new, old),
            removed: only(old, new),
            changed: differ
                .map(|(key, old, new)| change(key.clone(), old, new))
                .collect(),
        }
    }
}

impl ChannelSummary {
    fn of(name: String, channel: &Channel) -> Self {
        let heads = owned(channel.heads());
        Self { name, heads }
    }
}

impl ChannelChange {
    fn between(name: String, old: &Channel, new: &Channel) -> Self {
        Self {
            name,
            heads: ValueChange::between(owned(old.heads()), owned(new.heads())),
            entries: Differences::between(
                [&old.entries, &new.entries],
                |name, _| name,
                |name, _, _| name,
            ),
        }
    }
}

impl BundleSummary {
    fn of(name: String, bundle: &Bundle) -> Self {
        Self {
            name,
            version: bundle.version.clone(),
            image: bundle.image.clone(),
        }
    }
}

impl BundleChange {
    fn between(name: String, old: &Bundle, new: &Bundle) -> Self {
        let [before, after] = [old, new].map(|bundle| {
            let images = bundle.related_images.iter();
            images
                .map(|image| image.reference.clone())
                .collect::<BTreeSet<String>>()
        });
        Self {
            name,
            version: ValueChange::between(old.version.clone(), new.version.clone()),
            // Related images are compared as a set of references: their names and order do not
            // change what is pulled.
            image: ValueChange::between(Some(old.image.clone()), Some(new.image.clone())),
            images_added: after.difference(&before).cloned().collect(),
            images_removed: before.difference(&after).cloned().collect(),
        }
    }
}

impl<T: PartialEq> ValueChange<T> {
    fn between(from: T, to: T) -> Option<Self> {
        (from != to).then_some(Self { from, to })
    }
}

/// Counts the metas that can only be compared by their bytes: other schemas, and an
/// `olm.deprecations` whose bytes differ although its entries do not.
fn others(old: &Package, new: &Package) -> Vec<OtherChange> {
    let none = Vec::new();
    let schemas: BTreeSet<&String> = old.others.keys().chain(new.others.keys()).collect();
    let changes = schemas.into_iter().map(|schema| {
        let lines = [old, new].map(|package| package.others.get(schema).unwrap_or(&none));
        other(schema, lines)
    });
    let mut changes: Vec<OtherChange> = changes
        .filter(|change| change.added + change.removed > 0)
        .collect();
    // Equal messages in other bytes, such as another order, would otherwise look like no change at
    // all.
    if old.deprecations == new.deprecations && old.deprecation_lines != new.deprecation_lines {
        let lines = [old, new].map(|package| &package.deprecation_lines);
        changes.push(other("olm.deprecations", lines));
    }
    changes
}

/// Counts the hashes that one list has more often than the other.
fn other(schema: &str, [old, new]: [&Vec<Sha256>; 2]) -> OtherChange {
    // Hashes may repeat: a broken catalog can hold the same line several times.
    let mut counts: BTreeMap<Sha256, i64> = BTreeMap::new();
    new.iter()
        .for_each(|hash| *counts.entry(*hash).or_default() += 1);
    old.iter()
        .for_each(|hash| *counts.entry(*hash).or_default() -= 1);
    let sum = |sign: i64| {
        counts
            .values()
            .map(|count| (sign * count).max(0).unsigned_abs())
            .sum()
    };
    OtherChange {
        schema: schema.to_owned(),
        added: sum(1),
        removed: sum(-1),
    }
}

fn owned(names: Vec<&str>) -> Vec<String> {
    names.into_iter().map(str::to_owned).collect()
}
