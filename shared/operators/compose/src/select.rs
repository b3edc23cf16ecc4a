use std::collections::{BTreeMap, BTreeSet, HashSet};

use model::text;
use olm::Channel;
use semver::Version;

use crate::error::{TEXT_CHARS, listed, no_bundle, no_default_channel};
use crate::kept_channel::{self, BrokenAdvice, KeptEntries};
use crate::outline::{PackageOutline, Remaining};
use crate::selection::EntryRule;
use crate::{Decision, Explanation, PackageSelection, VersionConstraint};

const ADVICE: BrokenAdvice = BrokenAdvice {
    connect: "select also what connects them",
    otherwise: "the catalog has the channel so: select other channels, or bundles by name",
};

impl PackageSelection {
    /// Applies the selection to its package. Returns the part that it takes, and the reason for
    /// each bundle if reasons are wanted.
    pub(crate) fn apply<'a>(
        &'a self,
        package: &'a PackageOutline,
        explanation: &mut Explanation,
    ) -> Result<(Remaining<'a>, Vec<Decision>), String> {
        package.check_readable(&self.name)?;
        let mut named = BTreeSet::new();
        for bundle in &self.selected_bundles {
            named.insert(bundle.name.as_str());
        }
        let mut selector = PackageSelector {
            package,
            selection: self,
            named,
            channels: BTreeMap::new(),
            explanation,
        };
        selector.check_names()?;
        for (name, channel) in &package.channels {
            selector.add_channel(name, channel)?;
        }
        if selector.channels.is_empty() && !package.channels.is_empty() {
            let mut channels = package.channels.keys();
            let rule = channels.find_map(|channel| self.rule(channel));
            let place = format!("package {}", self.name);
            return Err(takes_nothing(&place, rule.as_ref()));
        }
        let mut decisions = Vec::new();
        if selector.explanation.decisions.is_some() {
            decisions = selector.decisions();
        }
        let rest = Remaining {
            name: &self.name,
            package,
            default_channel: selector.default_channel()?,
            bundles: selector.channels.values().flatten().copied().collect(),
            channels: selector.channels,
        };
        Ok((rest, decisions))
    }
}

/// Reasons of the channels that have an entry for one bundle.
#[derive(Default)]
struct BundleReasons {
    /// Of those that take it.
    taken: Vec<String>,
    /// Of the others.
    left_out: Vec<String>,
}

struct PackageSelector<'s, 'a> {
    package: &'a PackageOutline,
    selection: &'a PackageSelection,
    /// Names of `selectedBundles`.
    named: BTreeSet<&'a str>,
    channels: BTreeMap<&'a str, KeptEntries<'a>>,
    explanation: &'s mut Explanation,
}

impl<'a> PackageSelector<'_, 'a> {
    fn check_names(&self) -> Result<(), String> {
        let name = &self.selection.name;
        for channel in &self.selection.channels {
            if self.package.channels.contains_key(&channel.name) {
                continue;
            }
            let has = listed(&self.package.channels.keys().collect::<Vec<_>>());
            return Err(format!(
                "package {name} has no channel {}; it has {has}",
                channel.name
            ));
        }

        let mut entries: HashSet<&str> = HashSet::new();
        for channel in self.package.channels.values() {
            entries.extend(channel.entries.keys().map(String::as_str));
        }
        for bundle in &self.named {
            if !self.package.bundles.contains_key(*bundle) || !entries.contains(bundle) {
                return Err(no_bundle(name, bundle));
            }
        }
        Ok(())
    }

    fn add_channel(&mut self, name: &'a str, channel: &'a Channel) -> Result<(), String> {
        let Some(rule) = self.selection.rule(name) else {
            return Ok(());
        };
        let mut kept = self.take_entries(channel, &rule);
        if kept.is_empty() {
            return self.leave_out(name, channel, &rule);
        }
        // A channel that is kept as it is stays as valid or invalid as its catalog has it. A head
        // that is wanted must be there.
        let is_whole = kept.len() == channel.entries.len();
        if !is_whole || rule == EntryRule::Head {
            let mut checked = kept_channel::check(channel, &kept);
            if checked.is_err() && matches!(rule, EntryRule::Range(_)) {
                self.connect(name, channel, &rule, &mut kept);
                checked = kept_channel::check(channel, &kept);
            }
            checked.map_err(|fault| {
                let place = format!("{}: with {}", self.place(name), described(&rule));
                ADVICE.error(&place, Some(channel), &kept, fault)
            })?;
        }
        if !is_whole {
            for entry in &kept {
                if !self.package.bundles.contains_key(*entry) {
                    return Err(no_bundle(&self.selection.name, entry));
                }
            }
        }
        self.channels.insert(name, kept);
        Ok(())
    }

    /// Leaves a channel out of which nothing is taken. One of all channels may have no version in
    /// the range; one that is named too, if the range is that of the package, as oc-mirror v2 has
    /// it.
    fn leave_out(&mut self, name: &str, channel: &Channel, rule: &EntryRule) -> Result<(), String> {
        if self.selection.channels.is_empty() || channel.entries.is_empty() {
            return Ok(());
        }
        if !self.selection.has_range() {
            return Err(takes_nothing(&self.place(name), Some(rule)));
        }
        self.explanation.notice(format!(
            "{}: left out, because {} takes no bundle of it",
            self.place(&text::line(name, TEXT_CHARS)),
            described(rule)
        ));
        Ok(())
    }

    fn take_entries(&self, channel: &'a Channel, rule: &EntryRule) -> KeptEntries<'a> {
        let all = channel.entries.keys().map(String::as_str);
        match rule {
            EntryRule::All => all.collect(),
            EntryRule::Named => all.filter(|entry| self.named.contains(entry)).collect(),
            EntryRule::Range(range) => all.filter(|entry| self.is_in(range, entry)).collect(),
            EntryRule::Head => match channel.heads()[..] {
                [head] => KeptEntries::from([head]),
                // Their check says what is wrong.
                _ => all.collect(),
            },
        }
    }

    /// Takes also what connects the kept entries.
    fn connect(
        &mut self,
        name: &str,
        channel: &'a Channel,
        rule: &EntryRule,
        kept: &mut KeptEntries<'a>,
    ) {
        let connecting = kept_channel::connecting(channel, kept);
        if connecting.is_empty() {
            return;
        }
        kept.extend(&connecting);
        self.explanation.notice(format!(
            "{}: {} taken too, because they connect the selected {}",
            self.place(&text::line(name, TEXT_CHARS)),
            listed(&connecting),
            described(rule)
        ));
    }

    fn version(&self, bundle: &str) -> Option<Version> {
        self.package.bundles.get(bundle)?.as_deref()?.parse().ok()
    }

    fn is_in(&self, range: &VersionConstraint, bundle: &str) -> bool {
        self.version(bundle)
            .is_some_and(|version| range.contains(&version))
    }

    fn place(&self, channel: &str) -> String {
        format!("package {}, channel {channel}", self.selection.name)
    }

    /// Returns the default channel if it must be changed.
    fn default_channel(&mut self) -> Result<Option<&'a str>, String> {
        let original = self.package.default_channel.as_deref();
        let wanted = self.selection.default_channel.as_deref().or(original);
        if let Some(wanted) = wanted
            && let Some((channel, _)) = self.channels.get_key_value(wanted)
            && self.package.has_package
        {
            if original == Some(wanted) {
                return Ok(None);
            }
            return Ok(Some(*channel));
        }
        let name = &self.selection.name;
        let is_free = self.selection.default_channel.is_none() && self.package.has_package;
        if let (Some((channel, _)), 1) = (self.channels.first_key_value(), self.channels.len())
            && is_free
            && !self.selection.channels.is_empty()
        {
            let channel: &'a str = channel;
            self.explanation.notice(format!(
                "package {name}: {} becomes its default channel, because no other channel is selected",
                text::line(channel, TEXT_CHARS)
            ));
            return Ok(Some(channel));
        }
        Err(no_default_channel(name, wanted, &self.channels))
    }

    /// Gives each bundle the reasons of the channels that take it, or those of the others if none
    /// does.
    fn decisions(&self) -> Vec<Decision> {
        let mut by_bundle: BTreeMap<&str, BundleReasons> = BTreeMap::new();
        for (name, channel) in &self.package.channels {
            let rule = self.selection.rule(name);
            let kept = self.channels.get(name.as_str());
            let name = text::line(name, TEXT_CHARS);
            for entry in channel.entries.keys() {
                let is_kept = kept.is_some_and(|kept| kept.contains(entry.as_str()));
                let reason = self.reason(rule.as_ref(), &name, entry, is_kept);
                let reasons = by_bundle.entry(entry).or_default();
                let reasons = match is_kept {
                    true => &mut reasons.taken,
                    false => &mut reasons.left_out,
                };
                // The reason of `selectedBundles` is the same in each channel.
                if reasons.last() != Some(&reason) {
                    reasons.push(reason);
                }
            }
        }

        let mut decisions = Vec::new();
        for (bundle, version) in &self.package.bundles {
            let reasons = by_bundle.remove(bundle.as_str()).unwrap_or_default();
            let kept = !reasons.taken.is_empty();
            let reason = if kept {
                listed(&reasons.taken)
            } else if reasons.left_out.is_empty() {
                "in no channel".to_owned()
            } else {
                listed(&reasons.left_out)
            };
            decisions.push(Decision {
                package: self.selection.name.clone(),
                bundle: bundle.clone(),
                version: version.clone(),
                kept,
                reason,
            });
        }
        decisions
    }

    /// Returns the reason for which a channel takes an entry, or does not.
    fn reason(
        &self,
        rule: Option<&EntryRule>,
        channel: &str,
        entry: &str,
        is_kept: bool,
    ) -> String {
        match (rule, is_kept) {
            (None, _) => format!("channel {channel} is not selected"),
            (Some(EntryRule::All), _) => format!("full: true in {channel}"),
            (Some(EntryRule::Head), true) => format!("head of {channel}"),
            (Some(EntryRule::Head), false) => format!("not the head of {channel}"),
            (Some(EntryRule::Named), true) => "in selectedBundles".to_owned(),
            (Some(EntryRule::Named), false) => "not in selectedBundles".to_owned(),
            (Some(rule @ EntryRule::Range(range)), _) => match self.version(entry) {
                Some(version) if range.contains(&version) => {
                    format!("in the range {range} of {channel}")
                }
                _ if is_kept => format!("connects the {} of {channel}", described(rule)),
                Some(_) => format!("outside of the range {range} of {channel}"),
                None => "its version is not semver".to_owned(),
            },
        }
    }
}

/// Returns the problem of a rule that takes nothing from a channel that is named, or from the whole
/// package.
fn takes_nothing(place: &str, rule: Option<&EntryRule>) -> String {
    let rule = rule.map(described).unwrap_or_default();
    format!(
        "{place}: {rule} takes no bundle; remove it from the selection, or choose other versions"
    )
}

fn described(rule: &EntryRule) -> String {
    match rule {
        EntryRule::All => "full: true".to_owned(),
        EntryRule::Head => "heads only".to_owned(),
        EntryRule::Range(range) => format!("versions {range}"),
        EntryRule::Named => "selectedBundles".to_owned(),
    }
}
