use std::collections::{BTreeMap, BTreeSet, HashSet};

use olm::Channel;
use semver::Version;

use crate::error::{listed, no_bundle, no_default_channel, shown};
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
        let named = self.selected_bundles.iter();
        let mut selector = PackageSelector {
            package,
            selection: self,
            named: named.map(|bundle| bundle.name.as_str()).collect(),
            channels: BTreeMap::new(),
            explanation,
        };
        selector.check_names()?;
        for (name, channel) in &package.channels {
            selector.add_channel(name, channel)?;
        }
        if selector.channels.is_empty() && !package.channels.is_empty() {
            let first = package.channels.keys().next();
            let rule = first.and_then(|channel| self.rule(channel));
            return Err(takes_nothing(
                &format!("package {}", self.name),
                rule.as_ref(),
            ));
        }
        let decisions = selector
            .explanation
            .decisions
            .as_ref()
            .map(|_| selector.decisions());
        let rest = Remaining {
            name: &self.name,
            package,
            default_channel: selector.default_channel()?,
            bundles: selector.channels.values().flatten().copied().collect(),
            channels: selector.channels,
        };
        Ok((rest, decisions.unwrap_or_default()))
    }
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
        let mut channels = self.selection.channels.iter().map(|channel| &channel.name);
        if let Some(channel) =
            channels.find(|channel| !self.package.channels.contains_key(*channel))
        {
            let name = &self.selection.name;
            let has = listed(&self.package.channels.keys().collect::<Vec<_>>());
            return Err(format!(
                "package {name} has no channel {channel}; it has {has}"
            ));
        }
        let channels = self.package.channels.values();
        let entries = channels.flat_map(|channel| channel.entries.keys());
        let entries: HashSet<&str> = entries.map(String::as_str).collect();
        let is_there =
            |bundle: &&str| self.package.bundles.contains_key(*bundle) && entries.contains(bundle);
        let missing = self.named.iter().find(|bundle| !is_there(bundle));
        missing.map_or(Ok(()), |bundle| {
            Err(no_bundle(&self.selection.name, bundle))
        })
    }

    fn add_channel(&mut self, name: &'a str, channel: &'a Channel) -> Result<(), String> {
        let Some(rule) = self.selection.rule(name) else {
            return Ok(());
        };
        let mut kept = self.take_entries(channel, &rule);
        if kept.is_empty() {
            // A channel that the user names is wanted. One of all channels may have no version in
            // the range.
            return if !self.selection.channels.is_empty() && !channel.entries.is_empty() {
                Err(takes_nothing(&self.place(name), Some(&rule)))
            } else {
                Ok(())
            };
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
            let place = || format!("{}: with {}", self.place(name), described(&rule));
            checked.map_err(|fault| ADVICE.error(&place(), Some(channel), &kept, fault))?;
        }
        let mut missing = kept
            .iter()
            .filter(|entry| !self.package.bundles.contains_key(**entry));
        if let Some(bundle) = missing.next().filter(|_| !is_whole) {
            return Err(no_bundle(&self.selection.name, bundle));
        }
        self.channels.insert(name, kept);
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

    /// Takes also what lies between the kept entries.
    fn connect(
        &mut self,
        name: &str,
        channel: &'a Channel,
        rule: &EntryRule,
        kept: &mut KeptEntries<'a>,
    ) {
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
        self.version(bundle)
            .is_some_and(|version| range.contains(&version))
    }

    fn place(&self, channel: &str) -> String {
        format!("package {}, channel {channel}", self.selection.name)
    }

    /// Returns the default channel if it must be changed.
    fn default_channel(&self) -> Result<Option<&'a str>, String> {
        let original = self.package.default_channel.as_deref();
        let wanted = self.selection.default_channel.as_deref().or(original);
        let kept = wanted.and_then(|channel| self.channels.get_key_value(channel));
        match kept {
            Some((channel, _)) if self.package.has_package => {
                Ok(Some(*channel).filter(|channel| Some(*channel) != original))
            }
            _ => Err(no_default_channel(
                &self.selection.name,
                wanted,
                &self.channels,
            )),
        }
    }

    /// Gives each bundle the reasons of the channels that take it, or those of the others if none
    /// does.
    fn decisions(&self) -> Vec<Decision> {
        // By bundle, those of the channels that take it apart from the others.
        let mut reasons: BTreeMap<(&str, bool), Vec<String>> = BTreeMap::new();
        for (name, channel) in &self.package.channels {
            let (rule, kept) = (self.selection.rule(name), self.channels.get(name.as_str()));
            for entry in channel.entries.keys().map(String::as_str) {
                let is_kept = kept.is_some_and(|kept| kept.contains(entry));
                let reason = self.reason(rule.as_ref(), &shown(name), entry, is_kept);
                let reasons = reasons.entry((entry, is_kept)).or_default();
                // The reason of `selectedBundles` is the same in each channel.
                if reasons.last() != Some(&reason) {
                    reasons.push(reason);
                }
            }
        }
        let bundles = self.package.bundles.iter().map(|(bundle, version)| {
            let [ins, outs] =
                [true, false].map(|is_kept| reasons.remove(&(bundle.as_str(), is_kept)));
            let (kept, reasons) = (ins.is_some(), ins.or(outs));
            let reason =
                reasons.map_or_else(|| "in no channel".to_owned(), |reasons| listed(&reasons));
            Decision {
                bundle: bundle.clone(),
                version: version.clone(),
                ..Decision::of_package(&self.selection.name, kept, reason)
            }
        });
        bundles.collect()
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
