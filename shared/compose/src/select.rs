use std::collections::{BTreeMap, BTreeSet, HashSet};

use olm::Channel;
use semver::Version;

use crate::{
    Decision, Notice, SelectError, Selection,
    error::{ChannelFault, listed, shown},
    kept_channel::{self, BrokenWords, KeptEntries},
    outline::PackageOutline,
    rewrite::Remaining,
    selection::{EntryRule, PackageRule},
};

/// Part of a package that a selection takes.
pub(crate) struct SelectedPart<'a> {
    pub(crate) rest: Remaining<'a>,
    /// Reason for each bundle; empty if they are not wanted.
    pub(crate) decisions: Vec<Decision>,
    pub(crate) notices: Vec<Notice>,
}

impl Selection {
    /// Applies the selection to a package that it takes. Explains each bundle if `explains` is true.
    pub(crate) fn apply<'a>(
        &'a self,
        name: &'a str,
        package: &'a PackageOutline,
        explains: bool,
    ) -> Result<SelectedPart<'a>, SelectError> {
        let rule = self.rule(name).unwrap_or_default();
        package.check_readable(name)?;
        PackageSelector::new(name, package, &rule, explains)?.finish()
    }
}

struct PackageSelector<'s, 'a> {
    name: &'a str,
    package: &'a PackageOutline,
    rule: &'s PackageRule<'a>,
    channels: BTreeMap<&'a str, KeptEntries<'a>>,
    /// For each bundle the reasons for which channels take it, and those for which channels do not.
    reasons: BTreeMap<&'a str, [Vec<String>; 2]>,
    notices: Vec<Notice>,
}

impl<'s, 'a> PackageSelector<'s, 'a> {
    fn new(
        name: &'a str,
        package: &'a PackageOutline,
        rule: &'s PackageRule<'a>,
        explains: bool,
    ) -> Result<Self, SelectError> {
        let explained = package.bundles.keys().filter(|_| explains);
        let mut selector = Self {
            name,
            package,
            rule,
            channels: BTreeMap::new(),
            reasons: explained.map(|name| (name.as_str(), Default::default())).collect(),
            notices: Vec::new(),
        };
        selector.check_names()?;
        for (name, channel) in &package.channels {
            selector.add_channel(name, channel)?;
        }
        if selector.channels.is_empty() && !package.channels.is_empty() {
            let selection = package
                .channels
                .keys()
                .next()
                .and_then(|channel| rule.of_channel(channel));
            let described = selection.map_or_else(String::new, |rule| described(&rule));
            return Err(SelectError::Nothing(format!("package {name}"), described));
        }
        Ok(selector)
    }

    fn check_names(&self) -> Result<(), SelectError> {
        let mut channels = self.rule.channels();
        if let Some(channel) = channels.find(|channel| !self.package.channels.contains_key(*channel)) {
            let has = self.package.channels.keys().cloned().collect();
            return Err(SelectError::NoChannel(self.name.to_owned(), channel.to_owned(), has));
        }
        let Some(bundles) = self.rule.bundles() else {
            return Ok(());
        };
        let entries = self
            .package
            .channels
            .values()
            .flat_map(|channel| channel.entries.keys());
        let entries: HashSet<&str> = entries.map(String::as_str).collect();
        let is_there = |bundle: &&str| self.package.bundles.contains_key(*bundle) && entries.contains(bundle);
        match bundles.iter().find(|bundle| !is_there(bundle)) {
            None => Ok(()),
            Some(bundle) => Err(self.no_bundle(bundle)),
        }
    }

    fn no_bundle(&self, bundle: &str) -> SelectError {
        SelectError::NoBundle(self.name.to_owned(), bundle.to_owned())
    }

    fn add_channel(&mut self, name: &'a str, channel: &'a Channel) -> Result<(), SelectError> {
        let Some(rule) = self.rule.of_channel(name) else {
            for entry in channel.entries.keys() {
                self.say(entry, false, || format!("channel {} is not selected", shown(name)));
            }
            return Ok(());
        };
        let mut kept = self.take_entries(name, channel, &rule)?;
        if kept.is_empty() {
            // A channel that the user names is wanted. One of all channels may have no version in the range.
            let named = self.rule.channels().next().is_some();
            return if named && !channel.entries.is_empty() {
                Err(SelectError::Nothing(self.place(name), described(&rule)))
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
            checked.map_err(|fault| words(&rule).error(self.place(name), Some(channel), &kept, fault))?;
            if let Some(bundle) = kept.iter().find(|entry| !self.package.bundles.contains_key(**entry)) {
                return Err(self.no_bundle(bundle));
            }
        }
        self.channels.insert(name, kept);
        Ok(())
    }

    fn take_entries(
        &mut self,
        name: &str,
        channel: &'a Channel,
        rule: &EntryRule<'_>,
    ) -> Result<KeptEntries<'a>, SelectError> {
        let all = || channel.entries.keys().map(String::as_str);
        let heads: KeptEntries<'_> = match rule {
            EntryRule::Head => channel.heads().into_iter().collect(),
            _ => BTreeSet::new(),
        };
        if matches!(rule, EntryRule::Head) && heads.len() != 1 && !channel.entries.is_empty() {
            let fault = if heads.is_empty() {
                ChannelFault::NoHead
            } else {
                ChannelFault::Heads(heads.iter().map(|head| (*head).to_owned()).collect())
            };
            return Err(words(rule).error(self.place(name), Some(channel), &all().collect(), fault));
        }
        let mut kept = KeptEntries::new();
        let shown_name = shown(name);
        for entry in all() {
            let (taken, why) = match rule {
                EntryRule::All => (true, "full: true in"),
                EntryRule::Head if heads.contains(entry) => (true, "head of"),
                EntryRule::Head => (false, "not the head of"),
                EntryRule::Named(names) if names.contains(entry) => (true, "in selectedBundles"),
                EntryRule::Named(_) => (false, "not in selectedBundles"),
                EntryRule::Range(range) => match self.version(entry) {
                    None => (false, "its version is not semver"),
                    Some(version) if range.contains(&version) => (true, "in the range"),
                    Some(_) => (false, "outside of the range"),
                },
            };
            if taken {
                kept.insert(entry);
            }
            self.say(entry, taken, || match rule {
                EntryRule::Range(range) if why.ends_with("range") => format!("{why} {range} of {shown_name}"),
                EntryRule::All | EntryRule::Head => format!("{why} {shown_name}"),
                _ => why.to_owned(),
            });
        }
        Ok(kept)
    }

    /// Takes also what lies between the kept entries.
    fn connect(&mut self, name: &str, channel: &'a Channel, rule: &EntryRule<'_>, kept: &mut KeptEntries<'a>) {
        let selection = described(rule);
        let between = kept_channel::between(channel, kept);
        for entry in &between {
            self.say(entry, true, || format!("connects the {selection} of {}", shown(name)));
        }
        if !between.is_empty() {
            kept.extend(&between);
            self.notices.push(Notice::Connecting {
                place: self.place(&shown(name)),
                bundles: listed(&between),
                selection,
            });
        }
    }

    fn version(&self, bundle: &str) -> Option<Version> {
        self.package.bundles.get(bundle)?.as_deref()?.parse().ok()
    }

    fn say(&mut self, entry: &str, taken: bool, why: impl FnOnce() -> String) {
        if let Some([ins, outs]) = self.reasons.get_mut(entry) {
            let reasons = if taken { ins } else { outs };
            let why = why();
            // The reason of `selectedBundles` is the same in each channel.
            if reasons.last() != Some(&why) {
                reasons.push(why);
            }
        }
    }

    fn place(&self, channel: &str) -> String {
        format!("package {}, channel {channel}", self.name)
    }

    /// Returns the default channel if it must be changed.
    fn default_channel(&self) -> Result<Option<&'a str>, SelectError> {
        let original = self.package.default_channel.as_deref();
        let wanted = self.rule.default_channel().or(original);
        let has_package = self.package.has_package;
        match wanted {
            Some(channel) if self.channels.contains_key(channel) && has_package => {
                Ok((Some(channel) != original).then_some(channel))
            }
            _ => {
                let left = self.channels.keys().map(|name| (*name).to_owned()).collect();
                let wanted = wanted.map(str::to_owned);
                Err(SelectError::DefaultChannel(self.name.to_owned(), wanted, left))
            }
        }
    }

    fn finish(self) -> Result<SelectedPart<'a>, SelectError> {
        let rest = Remaining {
            default_channel: self.default_channel()?,
            bundles: self.channels.values().flatten().copied().collect(),
            channels: self.channels,
        };
        let decisions = self.reasons.into_iter().map(|(bundle, [ins, outs])| {
            let kept = rest.bundles.contains(bundle);
            let reasons = if kept { ins } else { outs };
            Decision {
                package: self.name.to_owned(),
                bundle: bundle.to_owned(),
                version: self.package.bundles[bundle].clone(),
                kept,
                reason: if reasons.is_empty() {
                    "in no channel".to_owned()
                } else {
                    listed(&reasons)
                },
            }
        });
        Ok(SelectedPart {
            decisions: decisions.collect(),
            notices: self.notices,
            rest,
        })
    }
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
