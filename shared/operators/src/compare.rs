//! From two Packages to what changed.

use std::collections::{BTreeMap, BTreeSet};

use layout::Sha256;

use crate::{
    Bundle, BundleChange, BundleChanges, BundleSummary, CHANGES_VERSION, Changes, Channel, ChannelChange,
    ChannelChanges, ChannelSummary, Deprecated, DeprecationChange, DeprecationChanges, DeprecationSummary, Differing,
    EntryChanges, Heads, OtherChange, Package, PackageChange, PackageChanges, PackageSummary, TextChange,
};

impl Changes {
    /// Between these two states, nothing yet.
    pub fn new(from: Sha256, to: Sha256) -> Self {
        Self {
            format_version: CHANGES_VERSION,
            from,
            to,
            complete: true,
            packages: PackageChanges::default(),
            global: None,
        }
    }

    /// Adds what became of a Package that differs, in the order of [`differing()`](crate::differing()).
    pub fn add(&mut self, name: &str, old: Option<&Package>, new: Option<&Package>) {
        let nothing = Package::default();
        match (old, new) {
            _ if name.is_empty() => {
                let (old, new) = (old.unwrap_or(&nothing), new.unwrap_or(&nothing));
                self.global = Some(PackageChange::between(name, old, new));
            }
            (Some(old), Some(new)) => self.packages.changed.push(PackageChange::between(name, old, new)),
            (None, Some(new)) => self.packages.added.push(PackageSummary::new(name, new)),
            (Some(old), None) => self.packages.removed.push(PackageSummary::new(name, old)),
            (None, None) => {}
        }
    }

    /// Adds a Package of which only is told that it differs.
    pub fn omit(&mut self, differing: &Differing<'_>) {
        self.complete = false;
        let (name, omitted) = (differing.name.to_owned(), true);
        let change = |name| PackageChange {
            name,
            omitted,
            ..PackageChange::default()
        };
        let summary = |name| PackageSummary {
            name,
            omitted,
            ..PackageSummary::default()
        };
        match (differing.old, differing.new) {
            _ if name.is_empty() => self.global = Some(change(name)),
            (Some(_), Some(_)) => self.packages.changed.push(change(name)),
            (None, _) => self.packages.added.push(summary(name)),
            (Some(_), None) => self.packages.removed.push(summary(name)),
        }
    }

    /// Whether the two states are the same.
    pub fn is_empty(&self) -> bool {
        self.packages == PackageChanges::default() && self.global.is_none()
    }

    /// The document, ending in a newline.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(self).expect("it holds only lists and texts");
        bytes.push(b'\n');
        bytes
    }
}

impl PackageSummary {
    fn new(name: &str, package: &Package) -> Self {
        Self {
            name: name.to_owned(),
            omitted: false,
            default_channel: package.default_channel.clone(),
            channels: package.channels.iter().map(ChannelSummary::new).collect(),
            bundles: package.bundles.iter().map(BundleSummary::new).collect(),
            deprecations: package.deprecations.iter().map(DeprecationSummary::new).collect(),
        }
    }
}

impl PackageChange {
    fn between(name: &str, old: &Package, new: &Package) -> Self {
        let mut change = Self {
            name: name.to_owned(),
            package: old.package_lines != new.package_lines,
            default_channel: TextChange::between(old.default_channel.as_ref(), new.default_channel.as_ref()),
            channels: ChannelChanges::between(&old.channels, &new.channels),
            bundles: BundleChanges::between(&old.bundles, &new.bundles),
            deprecations: DeprecationChanges::between(&old.deprecations, &new.deprecations),
            others: others(old, new),
            ..Self::default()
        };
        let nothing = Self {
            name: name.to_owned(),
            ..Self::default()
        };
        change.reordered = change == nothing;
        change
    }
}

/// What two maps have, and what only one of them has.
struct Split<'a, K, V> {
    added: Vec<(&'a K, &'a V)>,
    removed: Vec<(&'a K, &'a V)>,
    changed: Vec<(&'a K, &'a V, &'a V)>,
}

impl<'a, K: Ord, V: PartialEq> Split<'a, K, V> {
    fn between(old: &'a BTreeMap<K, V>, new: &'a BTreeMap<K, V>) -> Self {
        let both = old.iter().filter_map(|(key, value)| Some((key, value, new.get(key)?)));
        Self {
            added: new.iter().filter(|(key, _)| !old.contains_key(key)).collect(),
            removed: old.iter().filter(|(key, _)| !new.contains_key(key)).collect(),
            changed: both.filter(|(_, old, new)| old != new).collect(),
        }
    }
}

impl ChannelChanges {
    fn between(old: &BTreeMap<String, Channel>, new: &BTreeMap<String, Channel>) -> Self {
        let split = Split::between(old, new);
        Self {
            added: split.added.into_iter().map(ChannelSummary::new).collect(),
            removed: split.removed.into_iter().map(ChannelSummary::new).collect(),
            changed: split.changed.into_iter().map(ChannelChange::new).collect(),
        }
    }
}

impl ChannelSummary {
    fn new((name, channel): (&String, &Channel)) -> Self {
        Self {
            name: name.clone(),
            heads: owned(channel.heads()),
        }
    }
}

impl ChannelChange {
    fn new((name, old, new): (&String, &Channel, &Channel)) -> Self {
        let heads = Heads {
            from: owned(old.heads()),
            to: owned(new.heads()),
        };
        let split = Split::between(&old.entries, &new.entries);
        Self {
            name: name.clone(),
            heads: Some(heads).filter(|heads| heads.from != heads.to),
            entries: EntryChanges {
                added: split.added.into_iter().map(|(name, _)| name.clone()).collect(),
                removed: split.removed.into_iter().map(|(name, _)| name.clone()).collect(),
                changed: split.changed.into_iter().map(|(name, _, _)| name.clone()).collect(),
            },
        }
    }
}

impl BundleChanges {
    fn between(old: &BTreeMap<String, Bundle>, new: &BTreeMap<String, Bundle>) -> Self {
        let split = Split::between(old, new);
        Self {
            added: split.added.into_iter().map(BundleSummary::new).collect(),
            removed: split.removed.into_iter().map(BundleSummary::new).collect(),
            changed: split.changed.into_iter().map(BundleChange::new).collect(),
        }
    }
}

impl BundleSummary {
    fn new((name, bundle): (&String, &Bundle)) -> Self {
        Self {
            name: name.clone(),
            version: bundle.version.clone(),
            image: bundle.image.clone(),
        }
    }
}

impl BundleChange {
    fn new((name, old, new): (&String, &Bundle, &Bundle)) -> Self {
        let references = |bundle: &Bundle| -> BTreeSet<String> {
            let images = bundle.related_images.iter();
            images.map(|image| image.reference.clone()).collect()
        };
        let (before, after) = (references(old), references(new));
        Self {
            name: name.clone(),
            version: TextChange::between(old.version.as_ref(), new.version.as_ref()),
            image: TextChange::between(Some(&old.image), Some(&new.image)),
            images_added: after.difference(&before).cloned().collect(),
            images_removed: before.difference(&after).cloned().collect(),
        }
    }
}

impl TextChange {
    fn between(from: Option<&String>, to: Option<&String>) -> Option<Self> {
        (from != to).then(|| Self {
            from: from.cloned(),
            to: to.cloned(),
        })
    }
}

impl DeprecationChanges {
    fn between(old: &BTreeMap<Deprecated, String>, new: &BTreeMap<Deprecated, String>) -> Self {
        let split = Split::between(old, new);
        Self {
            added: split.added.into_iter().map(DeprecationSummary::new).collect(),
            removed: split.removed.into_iter().map(DeprecationSummary::new).collect(),
            changed: split.changed.into_iter().map(DeprecationChange::new).collect(),
        }
    }
}

impl DeprecationSummary {
    fn new((what, message): (&Deprecated, &String)) -> Self {
        Self {
            schema: what.schema.clone(),
            name: what.name.clone(),
            message: message.clone(),
        }
    }
}

impl DeprecationChange {
    fn new((what, old, new): (&Deprecated, &String, &String)) -> Self {
        Self {
            schema: what.schema.clone(),
            name: what.name.clone(),
            message: TextChange {
                from: Some(old.clone()),
                to: Some(new.clone()),
            },
        }
    }
}

/// Metas that only their bytes tell apart. An `olm.deprecations` that says the same in other words is one of them.
fn others(old: &Package, new: &Package) -> Vec<OtherChange> {
    let none = Vec::new();
    let schemas: BTreeSet<&String> = old.others.keys().chain(new.others.keys()).collect();
    let changes = schemas.into_iter().map(|schema| {
        let (old, new) = (&old.others, &new.others);
        other(
            schema,
            old.get(schema).unwrap_or(&none),
            new.get(schema).unwrap_or(&none),
        )
    });
    let mut changes: Vec<OtherChange> = changes.filter(|change| change.added + change.removed > 0).collect();
    if old.deprecations == new.deprecations && old.deprecation_lines != new.deprecation_lines {
        changes.push(other(
            "olm.deprecations",
            &old.deprecation_lines,
            &new.deprecation_lines,
        ));
    }
    changes
}

/// Counts what only one of two lists has, as often as it has it more often.
fn other(schema: &str, old: &[Sha256], new: &[Sha256]) -> OtherChange {
    let mut counts: BTreeMap<Sha256, i64> = BTreeMap::new();
    for hash in new {
        *counts.entry(*hash).or_default() += 1;
    }
    for hash in old {
        *counts.entry(*hash).or_default() -= 1;
    }
    let sum = |of: fn(i64) -> i64| counts.values().map(|count| of(*count).max(0).unsigned_abs()).sum();
    OtherChange {
        schema: schema.to_owned(),
        added: sum(|count| count),
        removed: sum(|count| -count),
    }
}

fn owned(names: Vec<&str>) -> Vec<String> {
    names.into_iter().map(str::to_owned).collect()
}
