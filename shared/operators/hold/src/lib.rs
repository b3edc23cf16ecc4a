#![doc = include_str!("../README.md")]

mod gone;

use std::collections::{BTreeMap, BTreeSet};

use model::text::line;
use olm::{Bundle, Channel, Package, UpgradeGraph, UpgradeStep, comparable_version};
use strum::{EnumString, IntoStaticStr, VariantArray};
use work::{Budget, OverBudget};

pub use self::gone::check_gone;

/// Smallest number of packages that are many. Less is a normal update of a small catalog.
const MANY_MIN: usize = 4;

/// Part of the packages, as 1 of this number, that are many. Real vendors change a quarter of them
/// at once.
const MANY_PART: usize = 3;

/// Smallest number of packages with changed bundles that are several. One is a vendor who built a
/// bundle again.
const SEVERAL_MIN: usize = 2;

/// Maximum number of packages that a reason names.
const EXAMPLES_MAX: usize = 5;

/// Maximum length of a foreign name in a reason, in characters.
const NAME_CHARS: usize = 100;

/// Rule by which new content is held back. As text it is the word of the configuration.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[strum(serialize_all = "kebab-case")]
pub enum HoldRule {
    /// The entries or heads of channels differ in a third or more of the packages, and in at least
    /// four. A package that is gone counts.
    ManyChannels,
    /// Bundles of at least two packages keep their names and get another image or version.
    ManyBundles,
    /// A third or more of the packages, and at least four, are deprecated: the package, a channel
    /// or the head of a channel.
    ManyDeprecated,
    /// A bundle keeps its name and gets another image or version.
    Bundle,
    /// The head of a channel moves to a lower version.
    Head,
    /// A channel is gone.
    Channel,
    /// A package is gone.
    Package,
    /// An installed version has no way to the head of a channel any more.
    Installed,
    /// The validation finds more errors than before.
    Validation,
}

/// Installed version that must keep a way to the head of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledVersion {
    /// Name of the package.
    pub package: String,
    /// Channel, if one was chosen.
    pub channel: Option<String>,
    /// Bundle or version that is installed.
    pub start: UpgradeStep,
}

/// Comparison of new content with the content before, package by package.
#[derive(Debug)]
pub struct HoldComparison<'r> {
    rules: &'r BTreeSet<HoldRule>,
    installed: &'r [InstalledVersion],
    /// Number of packages before.
    packages: usize,
    /// Differences by the rule that counts them, one text for each package.
    found: BTreeMap<HoldRule, Vec<String>>,
}

/// Bundle with the same name in both states.
struct SameBundle<'a> {
    name: &'a str,
    old: &'a Bundle,
    new: &'a Bundle,
}

/// Channel with the same name in both states.
struct SameChannel<'a> {
    name: &'a str,
    old: &'a Channel,
    new: &'a Channel,
}

impl HoldRule {
    /// All rules.
    pub const ALL: &[Self] = <Self as VariantArray>::VARIANTS;

    /// Rules that hold by default.
    pub const DEFAULT: [Self; 2] = [Self::ManyChannels, Self::ManyBundles];

    /// Returns the word of the configuration.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns true if the rule is one about the number of packages that differ, which says
    /// nothing about all updates of a long time.
    pub const fn is_about_one_update(self) -> bool {
        matches!(self, Self::ManyChannels | Self::ManyDeprecated)
    }

    /// Returns the smallest number of packages that is a reason, of those in the state before.
    const fn packages_min(self, packages: usize) -> usize {
        match self {
            Self::ManyChannels | Self::ManyDeprecated => {
                let part = packages.div_ceil(MANY_PART);
                if part > MANY_MIN { part } else { MANY_MIN }
            }
            Self::ManyBundles => SEVERAL_MIN,
            _ => 1,
        }
    }

    /// Returns the difference that counts, of several packages.
    const fn what(self) -> &'static str {
        match self {
            Self::ManyChannels => "the channels of {} change at once",
            Self::ManyBundles | Self::Bundle => "bundles of {} change in place",
            Self::ManyDeprecated => "{} are deprecated at once",
            Self::Head => "heads of {} move to a lower version",
            Self::Channel => "channels of {} are gone",
            Self::Package => "{} are gone",
            Self::Installed => "installed versions of {} have no way any more",
            Self::Validation => "the validation is worse",
        }
    }
}

impl<'r> HoldComparison<'r> {
    /// Starts a comparison with a state of so many packages.
    pub const fn new(
        rules: &'r BTreeSet<HoldRule>,
        installed: &'r [InstalledVersion],
        packages: usize,
    ) -> Self {
        Self {
            rules,
            installed,
            packages,
            found: BTreeMap::new(),
        }
    }

    /// Returns true if a rule could hold content in which so many packages differ, `gone` of them
    /// being gone. If not, no package needs to be read.
    pub fn can_hold(&self, differing: usize, gone: usize) -> bool {
        self.rules.iter().any(|rule| {
            let most = match rule {
                HoldRule::Package => gone,
                HoldRule::Validation => 0,
                _ => differing,
            };
            most >= rule.packages_min(self.packages)
        })
    }

    /// Returns true if a rule needs the content of a package that is gone.
    pub fn needs_gone(&self, package: &str) -> bool {
        self.rules.contains(&HoldRule::Installed) && self.installed_of(package).next().is_some()
    }

    /// Adds a package that both states have, or that is gone. One that is new is never a reason.
    ///
    /// # Errors
    /// A budget that is used up.
    pub fn add(
        &mut self,
        name: &str,
        old: &Package,
        new: Option<&Package>,
        budget: &Budget,
    ) -> Result<(), OverBudget> {
        if self.rules.contains(&HoldRule::Installed) {
            let lost = self.lost_way_text(name, old, new, budget)?;
            self.push(name, HoldRule::Installed, lost);
        }
        let Some(new) = new else {
            self.add_gone(name);
            return Ok(());
        };
        self.push(name, HoldRule::ManyChannels, channels_text(old, new));
        let in_place = in_place_text(old, new);
        self.push(name, HoldRule::ManyBundles, in_place.clone());
        self.push(name, HoldRule::Bundle, in_place);
        self.push(name, HoldRule::ManyDeprecated, deprecated_text(old, new));
        self.push(name, HoldRule::Head, heads_back_text(old, new));
        self.push(name, HoldRule::Channel, channels_gone_text(old, new));
        Ok(())
    }

    /// Adds a package that is gone, whose content is not known.
    pub fn add_gone(&mut self, name: &str) {
        let gone = || Some("is gone".to_owned());
        self.push(name, HoldRule::ManyChannels, gone());
        self.push(name, HoldRule::Package, gone());
    }

    /// Returns the reasons to hold the new content, one text for each rule; none for an update.
    pub fn reasons(mut self) -> Vec<String> {
        let packages = self.packages;
        self.found
            .retain(|rule, found| found.len() >= rule.packages_min(packages));
        if self.found.contains_key(&HoldRule::ManyBundles) {
            // The same bundles.
            self.found.remove(&HoldRule::Bundle);
        }
        let reasons = self.found.iter();
        reasons
            .map(|(rule, found)| reason(*rule, found, packages))
            .collect()
    }

    fn installed_of(&self, package: &str) -> impl Iterator<Item = &'r InstalledVersion> {
        let all = self.installed.iter();
        all.filter(move |installed| installed.package == package)
    }

    /// Describes the first installed version that loses its way. One is enough: a reason counts
    /// packages.
    fn lost_way_text(
        &self,
        name: &str,
        old: &Package,
        new: Option<&Package>,
        budget: &Budget,
    ) -> Result<Option<String>, OverBudget> {
        for installed in self.installed_of(name) {
            let start = known_start(&installed.start, old);
            let channel = installed.channel.as_deref();
            if !has_way(old, channel, &start, budget)? {
                continue;
            }
            let keeps_way = match new {
                Some(new) => has_way(new, channel, &start, budget)?,
                None => false,
            };
            if !keeps_way {
                let version = shown(start.label());
                return Ok(Some(format!("{version} has no way to a head, and had one")));
            }
        }
        Ok(None)
    }

    fn push(&mut self, package: &str, rule: HoldRule, text: Option<String>) {
        if let Some(text) = text
            && self.rules.contains(&rule)
        {
            let found = self.found.entry(rule).or_default();
            found.push(format!("{}: {text}", shown(package)));
        }
    }
}

/// Returns what a rule found, with the first packages.
fn reason(rule: HoldRule, found: &[String], packages: usize) -> String {
    let count = found.len();
    let noun = if packages == 1 { "package" } else { "packages" };
    let what = rule
        .what()
        .replace("{}", &format!("{count} of {packages} {noun}"));
    let examples = found[..count.min(EXAMPLES_MAX)].join(", ");
    let rest = match count.saturating_sub(EXAMPLES_MAX) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!("{what} ({}): {examples}{rest}", rule.as_str())
}

fn shown(name: &str) -> String {
    line(name, NAME_CHARS)
}

/// Returns the channels of a package that both states have.
fn same_channels<'a>(
    old: &'a Package,
    new: &'a Package,
) -> impl Iterator<Item = SameChannel<'a>> + Clone {
    old.channels.iter().filter_map(|(name, old)| {
        let new = new.channels.get(name)?;
        Some(SameChannel { name, old, new })
    })
}

/// Describes the first difference between the channels of a package.
fn channels_text(old: &Package, new: &Package) -> Option<String> {
    let mut same = same_channels(old, new);
    let heads = |channel: &Channel| shown(&channel.heads().join(" and "));
    let moved = same.clone().find(|channel| {
        channel.old.entries != channel.new.entries && channel.old.heads() != channel.new.heads()
    });
    if let Some(channel) = moved {
        let name = shown(channel.name);
        let before = heads(channel.old);
        let after = heads(channel.new);
        return Some(format!("{name} has the head {after}, was {before}"));
    }
    if let Some(gone) = channels_gone_text(old, new) {
        return Some(gone);
    }
    if let Some(channel) = same.find(|channel| channel.old.entries != channel.new.entries) {
        let name = shown(channel.name);
        let before = channel.old.entries.len();
        let after = channel.new.entries.len();
        return Some(format!(
            "{name} has other entries, {after} of them, were {before}"
        ));
    }
    let mut added = new.channels.keys();
    let added = added.find(|name| !old.channels.contains_key(*name))?;
    Some(format!("the channel {} is new", shown(added)))
}

/// Names the channels that are gone.
fn channels_gone_text(old: &Package, new: &Package) -> Option<String> {
    let gone: Vec<String> = old
        .channels
        .keys()
        .filter(|name| !new.channels.contains_key(*name))
        .map(|name| shown(name))
        .collect();
    match &gone[..] {
        [] => None,
        [one] => Some(format!("the channel {one} is gone")),
        [first, ..] => Some(format!("{} channels are gone, such as {first}", gone.len())),
    }
}

/// Describes the first bundle that has the same name and another image or version.
fn in_place_text(old: &Package, new: &Package) -> Option<String> {
    let same = old.bundles.iter().filter_map(|(name, old)| {
        let new = new.bundles.get(name)?;
        Some(SameBundle { name, old, new })
    });
    let changed: Vec<SameBundle<'_>> = same
        .filter(|bundle| {
            bundle.old.image != bundle.new.image || bundle.old.version != bundle.new.version
        })
        .collect();
    let first = changed.first()?;
    let name = shown(first.name);
    let text = if first.old.image == first.new.image {
        let version = |bundle: &Bundle| shown(bundle.version.as_deref().unwrap_or("none"));
        let before = version(first.old);
        let after = version(first.new);
        format!("{name} has the version {after}, was {before}")
    } else {
        let before = shown(&first.old.image);
        let after = shown(&first.new.image);
        format!("{name} has the image {after}, was {before}")
    };
    match changed.len() - 1 {
        0 => Some(text),
        more => Some(format!("{text}, and {more} more bundles")),
    }
}

/// Describes the first channel whose head has a lower version than before.
fn heads_back_text(old: &Package, new: &Package) -> Option<String> {
    for channel in same_channels(old, new) {
        let head = |package: &Package, channel: &Channel| {
            let heads = channel.heads().into_iter();
            let versions = heads.filter_map(|head| comparable_version(package.version_of(head)?));
            versions.max()
        };
        if let Some(before) = head(old, channel.old)
            && let Some(after) = head(new, channel.new)
            && after < before
        {
            let name = shown(channel.name);
            let before = shown(&before.to_string());
            let after = shown(&after.to_string());
            return Some(format!(
                "the head of {name} has the version {after}, was {before}"
            ));
        }
    }
    None
}

/// Describes the first deprecation that is new: of the package, of a channel or of a head.
fn deprecated_text(old: &Package, new: &Package) -> Option<String> {
    let is_new = |schema: &str, name: &str| {
        new.deprecation(schema, name).is_some() && old.deprecation(schema, name).is_none()
    };
    if is_new("olm.package", "") {
        return Some("the package is deprecated".to_owned());
    }
    for (name, channel) in &new.channels {
        if is_new("olm.channel", name) {
            return Some(format!("the channel {} is deprecated", shown(name)));
        }
        for head in channel.heads() {
            if is_new("olm.bundle", head) {
                return Some(format!("the head {} is deprecated", shown(head)));
            }
        }
    }
    None
}

/// Returns a start with the name and the version of its bundle, as far as the package tells them.
fn known_start(start: &UpgradeStep, package: &Package) -> UpgradeStep {
    let mut known = start.clone();
    if known.bundle.is_empty() {
        let wanted = known.version.as_deref().and_then(comparable_version);
        let bundle = package.bundles.iter().find(|(_, bundle)| {
            let version = bundle.version.as_deref();
            version == known.version.as_deref()
                || wanted.is_some() && version.and_then(comparable_version) == wanted
        });
        known.bundle = bundle.map(|(name, _)| name.clone()).unwrap_or_default();
    }
    if known.version.is_none() {
        known.version = package.version_of(&known.bundle).map(str::to_owned);
    }
    known
}

/// Returns true if a way leads from a bundle to the head of the channel, or of one of all. Of several
/// heads, which only a broken channel has, the one with the highest version counts.
fn has_way(
    package: &Package,
    channel: Option<&str>,
    start: &UpgradeStep,
    budget: &Budget,
) -> Result<bool, OverBudget> {
    let wanted = package
        .channels
        .iter()
        .filter(|(name, _)| channel.is_none_or(|channel| channel == name.as_str()));
    for (_, channel) in wanted {
        let heads = channel.heads().into_iter();
        let head = heads.max_by_key(|head| package.version_of(head).and_then(comparable_version));
        let Some(head) = head else {
            continue;
        };
        if head == start.bundle {
            return Ok(true);
        }
        let graph = UpgradeGraph::new(package, channel, budget)?;
        if graph.fewest_steps(start, budget)?.to(head).is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests;
