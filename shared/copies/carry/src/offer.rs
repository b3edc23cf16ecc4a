//! The part of a catalog that may be offered to clusters: bundles whose images are all there.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use compose::{Composition, CompositionInput, PackageSelection, Removal, Selection, check_removal};
use model::ImageReference;
use model::text::chain;
use olm::{ImageUse, RequiredImages};
use serde::{Deserialize, Serialize};

use crate::{CarriedImage, SayLine, printable};

/// Cause for an image that neither was copied nor failed: another version of the program made the
/// list, or it was changed by hand.
const NOT_CARRIED: &str = "it was not carried";

/// Image that could not be had.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MissingImage {
    /// Reference in the registry that it should come from.
    pub image: String,
    /// Cause, for people.
    pub cause: String,
    /// True if the image is there, and something that is attached to it is not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attached: bool,
    /// Bundles that need it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub needed_by: BTreeSet<ImageUse>,
}

impl MissingImage {
    /// Creates the description of an image by the reference of a catalog.
    pub fn new(reference: &str, cause: impl Into<String>) -> Self {
        Self {
            image: ImageReference::new(reference).to_string(),
            cause: cause.into(),
            attached: false,
            needed_by: BTreeSet::new(),
        }
    }

    /// Returns true if this is about an entry of a list.
    pub fn is(&self, image: &CarriedImage) -> bool {
        self.image == image.image && self.attached == image.attached
    }

    /// Says that the image failed, and adds it to a list.
    pub fn report(self, missing: &mut Vec<Self>, say: SayLine<'_>) {
        say(&format!("failed: {}", self.line()));
        missing.push(self);
    }

    /// Returns the line about it for people.
    pub fn line(&self) -> String {
        let what = if self.attached {
            "what is attached to "
        } else {
            ""
        };
        let cause = printable(&self.cause);
        format!("{what}{}: {cause}", printable(&self.image))
    }
}

/// Adds the bundles that need each image.
pub fn name_uses(missing: &mut [MissingImage], needs: &RequiredImages) {
    let mut uses: BTreeMap<String, BTreeSet<ImageUse>> = BTreeMap::new();
    for (reference, needed_by) in &needs.images {
        let image = ImageReference::new(reference).to_string();
        uses.entry(image)
            .or_default()
            .extend(needed_by.iter().cloned());
    }
    for missing in missing {
        if let Some(needed_by) = uses.get(&missing.image) {
            missing.needed_by.clone_from(needed_by);
        }
    }
}

/// Images that a place has, and the causes for which it lacks others.
#[derive(Debug, Default)]
pub struct ImageSupply {
    present: BTreeSet<String>,
    causes: BTreeMap<String, String>,
}

impl ImageSupply {
    /// Creates the supply of a place that has all of these images but the missing ones.
    pub fn new(images: &[CarriedImage], missing: &[MissingImage]) -> Self {
        let mut supply = Self::default();
        // An additional image that lies elsewhere is of no use to a catalog.
        for image in images.iter().filter(|image| image.target.is_none()) {
            supply.add(&image.image);
        }
        for missing in missing.iter().filter(|missing| !missing.attached) {
            supply.miss(missing);
        }
        supply
    }

    /// Adds an image that is there.
    pub(crate) fn add(&mut self, reference: &str) {
        let image = ImageReference::new(reference).to_string();
        self.present.insert(image);
    }

    /// Adds an image that is missing.
    pub(crate) fn miss(&mut self, missing: &MissingImage) {
        self.present.remove(&missing.image);
        self.causes
            .insert(missing.image.clone(), missing.cause.clone());
    }

    /// Returns the cause for which an image of a catalog is not there, or `None` if it is.
    pub fn lack(&self, reference: &str) -> Option<&str> {
        let image = ImageReference::new(reference).to_string();
        if self.present.contains(&image) {
            return None;
        }
        Some(self.causes.get(&image).map_or(NOT_CARRIED, String::as_str))
    }
}

/// Reason for which a bundle cannot be offered.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BundleGap {
    /// Name of the bundle; empty if the whole package is meant.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub bundle: String,
    /// Reference of the image that is missing; empty if another fault is meant.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// Cause, for people.
    pub cause: String,
}

impl BundleGap {
    /// Returns the reason for which a whole package cannot be offered.
    pub const fn of_package(cause: String) -> Self {
        Self {
            bundle: String::new(),
            image: String::new(),
            cause,
        }
    }
}

/// Gap of a package, and what follows from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OfferGap {
    /// Name of the package.
    pub package: String,
    /// Bundle and cause.
    #[serde(flatten)]
    pub gap: BundleGap,
    /// Content that is offered instead, for people.
    pub effect: String,
}

impl fmt::Display for OfferGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = format!("package {}", self.package);
        if !self.gap.bundle.is_empty() {
            line += &format!(", bundle {}", self.gap.bundle);
        }
        if !self.gap.image.is_empty() {
            line += &format!(", image {}", self.gap.image);
        }
        line += &format!(": {}; {}", self.gap.cause, self.effect);
        f.write_str(&printable(&line))
    }
}

/// Part of a package that gaps leave.
#[derive(Debug, PartialEq, Eq)]
pub enum PackageRest {
    /// Everything: there is no gap.
    Whole,
    /// Everything but some bundles, without which OLM still accepts its channels.
    Without(Removal),
    /// Nothing, because OLM would not accept what is left. Holds the reason for people.
    Broken(String),
}

impl PackageRest {
    /// Returns what is left of the package in these lines.
    pub fn of(package: &str, lines: &[u8], gaps: &BTreeSet<BundleGap>) -> Self {
        if gaps.is_empty() {
            return Self::Whole;
        }
        if gaps.iter().any(|gap| gap.bundle.is_empty()) {
            return Self::Broken("OLM does not accept it".to_owned());
        }
        let bundles: BTreeSet<&String> = gaps.iter().map(|gap| &gap.bundle).collect();
        let removal = Removal {
            package: package.to_owned(),
            bundles: bundles.into_iter().cloned().collect(),
            ..Removal::default()
        };
        match check_removal(lines, &removal) {
            Ok(()) => Self::Without(removal),
            Err(error) => Self::Broken(format!(
                "OLM does not accept what is left: {}",
                chain(&error)
            )),
        }
    }
}

/// Part of a catalog that is offered, and the reasons for what is not.
#[derive(Debug, Default)]
pub struct OfferedPart {
    /// Packages that are taken from the delivered state.
    delivered: Vec<String>,
    /// Packages that stay as the target has them.
    earlier: Vec<String>,
    /// Bundles that are left out of delivered packages.
    removals: Vec<Removal>,
    /// Gaps of the packages that are not offered as they were delivered.
    pub gaps: Vec<OfferGap>,
}

impl OfferedPart {
    /// Adds a package with what is left of it. `has_earlier` is true if the target has the package,
    /// and all images that it needs there.
    pub fn add(
        &mut self,
        package: &str,
        gaps: &BTreeSet<BundleGap>,
        rest: PackageRest,
        has_earlier: bool,
    ) {
        let effect = match rest {
            PackageRest::Whole => {
                self.delivered.push(package.to_owned());
                return;
            }
            PackageRest::Without(removal) => {
                self.delivered.push(package.to_owned());
                self.removals.push(removal);
                "the bundle is left out".to_owned()
            }
            PackageRest::Broken(reason) if has_earlier => {
                self.earlier.push(package.to_owned());
                format!("the package stays as the target has it, because {reason}")
            }
            PackageRest::Broken(reason) => format!("the package is left out, because {reason}"),
        };
        for gap in gaps {
            self.gaps.push(OfferGap {
                package: package.to_owned(),
                gap: gap.clone(),
                effect: effect.clone(),
            });
        }
    }

    /// Returns the packages that stay as the target has them.
    pub fn earlier(&self) -> &[String] {
        &self.earlier
    }

    /// Returns true if the delivered state is offered as it is.
    pub const fn is_whole(&self) -> bool {
        self.gaps.is_empty()
    }

    /// Returns true if no package is left.
    pub const fn is_empty(&self) -> bool {
        self.delivered.is_empty() && self.earlier.is_empty()
    }

    /// Returns the composition of the part from a delivered state, `NAME@CONTENT-HASH`, and from
    /// the image that the target has.
    pub fn composition(&self, delivered: &str, earlier: Option<&str>) -> Composition {
        let mut inputs = Vec::new();
        if !self.delivered.is_empty() {
            inputs.push(CompositionInput {
                catalog: Some(delivered.to_owned()),
                source: None,
                select: Some(whole_packages(&self.delivered)),
            });
        }
        if let Some(earlier) = earlier.filter(|_| !self.earlier.is_empty()) {
            inputs.push(CompositionInput {
                catalog: None,
                source: Some(earlier.to_owned()),
                select: Some(whole_packages(&self.earlier)),
            });
        }
        Composition {
            inputs,
            remove: self.removals.clone(),
            ..Composition::default()
        }
    }
}

/// Returns the selection of all bundles of some packages.
fn whole_packages(names: &[String]) -> Selection {
    let packages = names.iter().map(|name| PackageSelection {
        name: name.clone(),
        ..PackageSelection::default()
    });
    Selection {
        full: true,
        packages: packages.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a package with one channel of these entries, each `NAME` or `NAME<REPLACED`.
    fn package(entries: &str) -> String {
        let mut channel = Vec::new();
        let mut lines = String::from(r#"{"schema":"olm.package","name":"p","defaultChannel":"s"}"#);
        for entry in entries.split(' ') {
            let (name, replaces) = entry.split_once('<').unwrap_or((entry, ""));
            let replaces = match replaces {
                "" => String::new(),
                replaces => format!(r#","replaces":"{replaces}""#),
            };
            channel.push(format!(r#"{{"name":"{name}"{replaces}}}"#));
            lines +=
                &format!("\n{{\"schema\":\"olm.bundle\",\"name\":\"{name}\",\"package\":\"p\"}}");
        }
        let entries = channel.join(",");
        lines += &format!(
            "\n{{\"schema\":\"olm.channel\",\"name\":\"s\",\"package\":\"p\",\"entries\":[{entries}]}}"
        );
        lines
    }

    fn gaps(bundles: &str) -> BTreeSet<BundleGap> {
        let gap = |bundle: &str| BundleGap {
            bundle: bundle.trim_matches('*').to_owned(),
            image: "q.io/a:1".to_owned(),
            cause: "it is gone".to_owned(),
        };
        bundles.split_whitespace().map(gap).collect()
    }

    /// Entries of a channel, bundles with a gap (`*` for the whole package), and what is left.
    #[test]
    fn rest_is_what_olm_accepts_without_the_bundles() {
        for (entries, missing, expected) in [
            ("a b<a c<b", "", "whole"),
            ("a b<a c<b", "c", "without c"),
            ("a b<a c<b", "b c", "without b c"),
            ("a b<a c<b", "a", "without a"),
            ("a b<a c<b", "b", "broken"),
            ("a b<a c<b", "a b c", "broken"),
            ("a", "a", "broken"),
            ("a b<a", "*", "broken"),
            ("a b<a", "* b", "broken"),
        ] {
            let rest = PackageRest::of("p", package(entries).as_bytes(), &gaps(missing));
            let found = match rest {
                PackageRest::Whole => "whole".to_owned(),
                PackageRest::Without(removal) => format!("without {}", removal.bundles.join(" ")),
                PackageRest::Broken(_) => "broken".to_owned(),
            };
            assert_eq!(found, expected, "{entries} without {missing}");
        }
    }

    #[test]
    fn part_composes_delivered_and_earlier_packages() {
        let mut part = OfferedPart::default();
        let broken = || PackageRest::Broken("it breaks".to_owned());
        let removal = Removal {
            package: "b".to_owned(),
            bundles: vec!["b.v1".to_owned()],
            ..Removal::default()
        };
        part.add("a", &BTreeSet::new(), PackageRest::Whole, false);
        assert!(part.is_whole());
        let lost = gaps("b.v1");
        part.add("b", &lost, PackageRest::Without(removal.clone()), false);
        part.add("c", &lost, broken(), true);
        part.add("d", &gaps("*"), broken(), false);
        let composition = part.composition("all@00", Some("r.io/all@sha256:00"));
        let named = |at: usize| -> Vec<&str> {
            let select = composition.inputs[at].select.as_ref().unwrap();
            select
                .packages
                .iter()
                .map(|package| &*package.name)
                .collect()
        };
        assert_eq!((named(0), named(1)), (vec!["a", "b"], vec!["c"]));
        assert_eq!(composition.remove, [removal]);
        composition.check().unwrap();
        let lines: Vec<String> = part.gaps.iter().map(OfferGap::to_string).collect();
        assert_eq!(
            lines,
            [
                "package b, bundle b.v1, image q.io/a:1: it is gone; the bundle is left out",
                "package c, bundle b.v1, image q.io/a:1: it is gone; the package stays as the target has it, because it breaks",
                "package d, image q.io/a:1: it is gone; the package is left out, because it breaks",
            ]
        );
    }

    #[test]
    fn supply_has_what_was_listed_and_did_not_fail() {
        let image = |text: &str| CarriedImage {
            image: text.to_owned(),
            digest: String::new(),
            ..CarriedImage::default()
        };
        let listed = ["q.io/a:1", "q.io/b:1", "docker.io/library/c:latest"].map(image);
        let attached = MissingImage {
            attached: true,
            ..MissingImage::new("q.io/a:1", "403")
        };
        let missing = [attached, MissingImage::new("q.io/b:1", "it is broken")];
        let supply = ImageSupply::new(&listed, &missing);
        assert_eq!(supply.lack("q.io/a:1"), None);
        assert_eq!(supply.lack("c"), None);
        assert_eq!(supply.lack("q.io/b:1"), Some("it is broken"));
        assert_eq!(supply.lack("q.io/d:1"), Some(NOT_CARRIED));
    }
}
