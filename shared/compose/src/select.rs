use std::collections::{BTreeMap, BTreeSet};

use olm::{Bundle, Channel, Package};
use semver::Version;

use crate::{
    Decision, Notice, PackageLines, SelectError, Selection,
    error::ChannelFault,
    kept_channel::{self, KeptEntries},
    rewrite::{Remaining, rewrite},
    selection::{EntryRule, PackageRule},
};

/// Part of a package that a selection takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// All lines, so that the package's shard can be used again.
    Whole,
    /// Some lines, in canonical form.
    Lines(Vec<u8>),
}

/// Result of a selection in one package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectedPackage {
    /// Part of the package that is taken.
    pub kept: Kept,
    /// Reason for each bundle; empty if the package is taken without being read.
    pub decisions: Vec<Decision>,
    /// Documents that were dropped.
    pub notices: Vec<Notice>,
}

impl Selection {
    /// Applies the selection to the canonical lines of one package. Returns `None` if the package is not selected.
    ///
    /// ```
    /// use catalog_mirror_compose::{Kept, Selection};
    ///
    /// let lines = concat!(
    ///     r#"{"defaultChannel":"a","name":"db","schema":"olm.package"}"#, "\n",
    ///     r#"{"entries":[{"name":"db.v1"},{"name":"db.v2","replaces":"db.v1"}],"name":"a","package":"db","schema":"olm.channel"}"#, "\n",
    ///     r#"{"name":"db.v1","package":"db","schema":"olm.bundle"}"#, "\n",
    ///     r#"{"name":"db.v2","package":"db","schema":"olm.bundle"}"#, "\n",
    /// );
    /// let selected = Selection::default().apply("db", lines.as_bytes())?.unwrap();
    /// let Kept::Lines(heads) = selected.kept else { panic!() };
    /// assert_eq!(String::from_utf8(heads).unwrap(), concat!(
    ///     r#"{"defaultChannel":"a","name":"db","schema":"olm.package"}"#, "\n",
    ///     r#"{"entries":[{"name":"db.v2","replaces":"db.v1"}],"name":"a","package":"db","schema":"olm.channel"}"#, "\n",
    ///     r#"{"name":"db.v2","package":"db","schema":"olm.bundle"}"#, "\n",
    /// ));
    /// # Ok::<(), catalog_mirror_compose::SelectError>(())
    /// ```
    ///
    /// # Errors
    /// Fails if the selection names what is not there, or if the rest would not be a valid package.
    pub fn apply(&self, package: &str, lines: &[u8]) -> Result<Option<SelectedPackage>, SelectError> {
        self.apply_to(package, &mut lines.into())
    }

    /// Applies the selection to lines that may be in a file, as [`Self::apply`] does.
    pub(crate) fn apply_to(
        &self,
        package: &str,
        lines: &mut PackageLines<'_>,
    ) -> Result<Option<SelectedPackage>, SelectError> {
        let Some(rule) = self.rule(package) else {
            return Ok(None);
        };
        rule.check()?;
        if rule.takes_whole() {
            return Ok(Some(SelectedPackage {
                kept: Kept::Whole,
                decisions: Vec::new(),
                notices: Vec::new(),
            }));
        }
        let content = lines.parse();
        let content = content.map_err(|source| SelectError::Read(package.to_owned(), source))?;
        check_readable(package, &content)?;
        PackageSelector::new(package, &content, rule)?.finish(lines).map(Some)
    }
}

/// Refuses a package with a document of OLM that does not fit its schema.
pub(crate) fn check_readable(package: &str, content: &Package) -> Result<(), SelectError> {
    match content.unreadable.first() {
        None => Ok(()),
        Some(meta) => Err(SelectError::Unreadable(package.to_owned(), meta.clone())),
    }
}

struct PackageSelector<'a> {
    name: &'a str,
    package: &'a Package,
    rule: PackageRule<'a>,
    versions: BTreeMap<&'a str, Option<Version>>,
    channels: BTreeMap<&'a str, KeptEntries<'a>>,
    /// For each bundle the reasons for which channels take it, and those for which channels do not.
    reasons: BTreeMap<&'a str, [Vec<String>; 2]>,
}

impl<'a> PackageSelector<'a> {
    fn new(name: &'a str, package: &'a Package, rule: PackageRule<'a>) -> Result<Self, SelectError> {
        let version = |bundle: &Bundle| bundle.version.as_deref().and_then(|version| version.parse().ok());
        let versions = package
            .bundles
            .iter()
            .map(|(name, bundle)| (name.as_str(), version(bundle)));
        let reasons = package.bundles.keys().map(|name| (name.as_str(), Default::default()));
        let mut selector = Self {
            name,
            package,
            rule,
            versions: versions.collect(),
            channels: BTreeMap::new(),
            reasons: reasons.collect(),
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
        let in_channel = |bundle: &str| {
            let mut channels = self.package.channels.values();
            channels.any(|channel| channel.entries.contains_key(bundle))
        };
        let mut bundles = self.rule.bundles();
        match bundles.find(|bundle| !self.package.bundles.contains_key(*bundle) || !in_channel(bundle)) {
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
                self.say(entry, false, || format!("channel {name} is not selected"));
            }
            return Ok(());
        };
        let kept = self.take_entries(name, channel, &rule)?;
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
            kept_channel::check(channel, &kept).map_err(|fault| self.broken(name, channel, &kept, &rule, fault))?;
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
            return Err(self.broken(name, channel, &all().collect(), rule, fault));
        }
        let mut kept = KeptEntries::new();
        for entry in all() {
            let (taken, why): (bool, String) = match rule {
                EntryRule::All => (true, format!("full: true in {name}")),
                EntryRule::Head if heads.contains(entry) => (true, format!("head of {name}")),
                EntryRule::Head => (false, format!("not the head of {name}")),
                EntryRule::Named(names) if names.contains(entry) => (true, "in selectedBundles".to_owned()),
                EntryRule::Named(_) => (false, "not in selectedBundles".to_owned()),
                EntryRule::Range(range) => match self.versions.get(entry).and_then(Option::as_ref) {
                    None => (false, "its version is not semver".to_owned()),
                    Some(version) if range.contains(version) => (true, format!("in the range {range} of {name}")),
                    Some(_) => (false, format!("outside of the range {range} of {name}")),
                },
            };
            if taken {
                kept.insert(entry);
            }
            self.say(entry, taken, || why);
        }
        Ok(kept)
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

    fn broken(
        &self,
        name: &str,
        channel: &Channel,
        kept: &KeptEntries<'_>,
        rule: &EntryRule<'_>,
        fault: ChannelFault,
    ) -> SelectError {
        SelectError::Broken {
            place: self.place(name),
            selection: described(rule),
            advice: match kept_channel::connecting(channel, kept, &fault) {
                Some(missing) => format!("select also what connects them: {missing}"),
                None => "the catalog has the channel so: select other channels, or bundles by name".to_owned(),
            },
            fault,
        }
    }

    /// Returns the default channel if it must be changed.
    fn default_channel(&self) -> Result<Option<&'a str>, SelectError> {
        let original = self.package.default_channel.as_deref();
        let wanted = self.rule.default_channel().or(original);
        let has_package = !self.package.package_lines.is_empty();
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

    fn finish(self, lines: &mut PackageLines<'_>) -> Result<SelectedPackage, SelectError> {
        let rest = Remaining {
            default_channel: self.default_channel()?,
            bundles: self.channels.values().flatten().copied().collect(),
            channels: self.channels,
        };
        let mut notices = Vec::new();
        let kept = rewrite(self.name, self.package, lines, &rest, &mut notices);
        let kept = kept.map_err(|source| SelectError::Rewrite(self.name.to_owned(), source))?;
        let decisions = self.reasons.into_iter().map(|(bundle, [ins, outs])| {
            let kept = rest.bundles.contains(bundle);
            let reasons = if kept { ins } else { outs };
            Decision {
                package: self.name.to_owned(),
                bundle: bundle.to_owned(),
                version: self
                    .package
                    .bundles
                    .get(bundle)
                    .and_then(|bundle| bundle.version.clone()),
                kept,
                reason: if reasons.is_empty() {
                    "in no channel".to_owned()
                } else {
                    reasons.join(", ")
                },
            }
        });
        Ok(SelectedPackage {
            decisions: decisions.collect(),
            kept: kept.map_or(Kept::Whole, Kept::Lines),
            notices,
        })
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
