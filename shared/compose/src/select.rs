use std::collections::{BTreeMap, HashSet};

use olm::Channel;
use semver::Version;

use crate::{
    Decision, Explanation, Selection, VersionConstraint,
    error::{listed, no_bundle, no_default_channel, shown},
    kept_channel::{self, BrokenWords, KeptEntries},
    outline::PackageOutline,
    rewrite::Remaining,
    selection::{EntryRule, PackageRule},
};

impl Selection {
    /// Applies the selection to a package that it takes. Returns the part that it takes, and the reason for each bundle if reasons are
    /// wanted.
    pub(crate) fn apply<'a>(
        &'a self,
        name: &'a str,
        package: &'a PackageOutline,
        explanation: &mut Explanation,
    ) -> Result<(Remaining<'a>, Vec<Decision>), String> {
        package.check_readable(name)?;
        let rule = &self.rule(name).unwrap_or_default();
        let mut selector = PackageSelector {
            name,
            package,
            rule,
            channels: BTreeMap::new(),
            explanation,
        };
        selector.check_names()?;
        for (name, channel) in &package.channels {
            selector.add_channel(name, channel)?;
        }
        if selector.channels.is_empty() && !package.channels.is_empty() {
            let first = package.channels.keys().next();
            let rule = first.and_then(|channel| rule.of_channel(channel));
            return Err(takes_nothing(&format!("package {name}"), rule.as_ref()));
        }
        let decisions = selector.explanation.decisions.as_ref().map(|_| selector.decisions());
        let rest = Remaining {
            name,
            package,
            default_channel: selector.default_channel()?,
            bundles: selector.channels.values().flatten().copied().collect(),
            channels: selector.channels,
        };
        Ok((rest, decisions.unwrap_or_default()))
    }
}

struct PackageSelector<'s, 'a> {
    name: &'a str,
    package: &'a PackageOutline,
    rule: &'s PackageRule<'a>,
    channels: BTreeMap<&'a str, KeptEntries<'a>>,
    explanation: &'s mut Explanation,
}

impl<'a> PackageSelector<'_, 'a> {
    fn check_names(&self) -> Result<(), String> {
        let mut channels = self.rule.channels();
        if let Some(channel) = channels.find(|channel| !self.package.channels.contains_key(*channel)) {
            let has = listed(&self.package.channels.keys().collect::<Vec<_>>());
            return Err(format!("package {} has no channel {channel}; it has {has}", self.name));
        }
        let Some(bundles) = &self.rule.bundles else {
            return Ok(());
        };
        let channels = self.package.channels.values();
        let entries = channels.flat_map(|channel| channel.entries.keys());
        let entries: HashSet<&str> = entries.map(String::as_str).collect();
        let is_there = |bundle: &&str| self.package.bundles.contains_key(*bundle) && entries.contains(bundle);
        match bundles.iter().find(|bundle| !is_there(bundle)) {
            None => Ok(()),
            Some(bundle) => Err(no_bundle(self.name, bundle)),
        }
    }

    fn add_channel(&mut self, name: &'a str, channel: &'a Channel) -> Result<(), String> {
        let Some(rule) = self.rule.of_channel(name) else {
            return Ok(());
        };
        let mut kept = self.take_entries(name, channel, &rule)?;
        if kept.is_empty() {
            // A channel that the user names is wanted. One of all channels may have no version in the range.
            let named = self.rule.channels().next().is_some();
            return if named && !channel.entries.is_empty() {
                Err(takes_nothing(&self.place(name), Some(&rule)))
            } else {
                Ok(())
            };
        }
        // A channel that is kept as it is stays as valid or invalid as its catalog has it.
        if kept.len() != channel.entries.len() {
            let mut checked = kept_channel::check(channel, &kept);
            if checked.is_err() && matches!(rule, EntryRule::Range(_)) {
                self.connect(name, channel, &rule, &mut kept);
                checked = kept_channel::check(channel, &kept);
            }
            checked.map_err(|fault| words(&rule).error(&self.place(name), Some(channel), &kept, fault))?;
            if let Some(bundle) = kept.iter().find(|entry| !self.package.bundles.contains_key(**entry)) {
                return Err(no_bundle(self.name, bundle));
            }
        }
        self.channels.insert(name, kept);
        Ok(())
    }

    fn take_entries(&self, name: &str, channel: &'a Channel, rule: &EntryRule<'_>) -> Result<KeptEntries<'a>, String> {
        let all = channel.entries.keys().map(String::as_str);
        Ok(match rule {
            EntryRule::All => all.collect(),
            EntryRule::Named(names) => all.filter(|entry| names.contains(entry)).collect(),
            EntryRule::Range(range) => all.filter(|entry| self.is_in(range, entry)).collect(),
            EntryRule::Head => {
                let (heads, all) = (KeptEntries::from_iter(channel.heads()), all.collect());
                if heads.len() != 1 && !channel.entries.is_empty() {
                    let checked = kept_channel::check(channel, &all);
                    checked.map_err(|fault| words(rule).error(&self.place(name), Some(channel), &all, fault))?;
                }
                heads
            }
        })
    }

    /// Takes also what lies between the kept entries.
    fn connect(&mut self, name: &str, channel: &'a Channel, rule: &EntryRule<'_>, kept: &mut KeptEntries<'a>) {
        let between = kept_channel::between(channel, kept);
        if !between.is_empty() {
            kept.extend(&between);
            let (place, bundles) = (self.place(&shown(name)), listed(&between));
            self.explanation.notice(format!(
                "{place}: {bundles} taken too, because they connect the selected {}",
                described(rule)
            ));
        }
    }

    fn version(&self, bundle: &str) -> Option<Version> {
        self.package.bundles.get(bundle)?.as_deref()?.parse().ok()
    }

    fn is_in(&self, range: &VersionConstraint, bundle: &str) -> bool {
        self.version(bundle).is_some_and(|version| range.contains(&version))
    }

    fn place(&self, channel: &str) -> String {
        format!("package {}, channel {channel}", self.name)
    }

    /// Returns the default channel if it must be changed.
    fn default_channel(&self) -> Result<Option<&'a str>, String> {
        let original = self.package.default_channel.as_deref();
        let wanted = self.rule.default_channel().or(original);
        let has_package = self.package.has_package;
        match wanted {
            Some(channel) if self.channels.contains_key(channel) && has_package => {
                Ok((Some(channel) != original).then_some(channel))
            }
            _ => Err(no_default_channel(self.name, wanted, &self.channels)),
        }
    }

    /// Gives each bundle the reasons of the channels that take it, or those of the others if none does.
    fn decisions(&self) -> Vec<Decision> {
        let mut reasons: BTreeMap<&str, [Vec<String>; 2]> = BTreeMap::new();
        for (name, channel) in &self.package.channels {
            let (rule, kept) = (self.rule.of_channel(name), self.channels.get(name.as_str()));
            for entry in channel.entries.keys().map(String::as_str) {
                let is_kept = kept.is_some_and(|kept| kept.contains(entry));
                let reason = self.reason(rule.as_ref(), &shown(name), entry, is_kept);
                let reasons = &mut reasons.entry(entry).or_default()[usize::from(is_kept)];
                // The reason of `selectedBundles` is the same in each channel.
                if reasons.last() != Some(&reason) {
                    reasons.push(reason);
                }
            }
        }
        let bundles = self.package.bundles.iter().map(|(bundle, version)| {
            let [outs, ins] = reasons.remove(bundle.as_str()).unwrap_or_default();
            let (kept, reasons) = (!ins.is_empty(), if ins.is_empty() { outs } else { ins });
            let reason = match reasons.is_empty() {
                true => "in no channel".to_owned(),
                false => listed(&reasons),
            };
            Decision {
                bundle: bundle.clone(),
                version: version.clone(),
                ..Decision::of_package(self.name, kept, reason)
            }
        });
        bundles.collect()
    }

    /// Returns the reason for which a channel takes an entry, or does not.
    fn reason(&self, rule: Option<&EntryRule<'_>>, channel: &str, entry: &str, is_kept: bool) -> String {
        match (rule, is_kept) {
            (None, _) => format!("channel {channel} is not selected"),
            (Some(EntryRule::All), _) => format!("full: true in {channel}"),
            (Some(EntryRule::Head), true) => format!("head of {channel}"),
            (Some(EntryRule::Head), false) => format!("not the head of {channel}"),
            (Some(EntryRule::Named(_)), true) => "in selectedBundles".to_owned(),
            (Some(EntryRule::Named(_)), false) => "not in selectedBundles".to_owned(),
            (Some(rule @ EntryRule::Range(range)), _) => match self.version(entry) {
                Some(version) if range.contains(&version) => format!("in the range {range} of {channel}"),
                _ if is_kept => format!("connects the {} of {channel}", described(rule)),
                Some(_) => format!("outside of the range {range} of {channel}"),
                None => "its version is not semver".to_owned(),
            },
        }
    }
}

/// Returns the problem of a rule that takes nothing from a channel that is named, or from the whole package.
fn takes_nothing(place: &str, rule: Option<&EntryRule<'_>>) -> String {
    let rule = rule.map(described).unwrap_or_default();
    format!("{place}: {rule} takes no bundle; remove it from the selection, or choose other versions")
}

fn words(rule: &EntryRule<'_>) -> BrokenWords {
    BrokenWords {
        selection: described(rule),
        connect: "select also what connects them",
        otherwise: "the catalog has the channel so: select other channels, or bundles by name",
    }
}

fn described(rule: &EntryRule<'_>) -> String {
    match rule {
        EntryRule::All => "full: true".to_owned(),
        EntryRule::Head => "heads only".to_owned(),
        EntryRule::Range(range) => format!("versions {range}"),
        EntryRule::Named(_) => "selectedBundles".to_owned(),
    }
}
