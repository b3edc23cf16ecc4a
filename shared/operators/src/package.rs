use std::collections::BTreeMap;

use layout::Sha256;

use crate::Channel;

/// What the lines of one Package say. Of several Metas with one schema and name, which OLM refuses, all count together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Package {
    /// The channel that is meant where none is named.
    pub default_channel: Option<String>,
    /// Its channels by name.
    pub channels: BTreeMap<String, Channel>,
    /// Its bundles by name.
    pub bundles: BTreeMap<String, Bundle>,
    /// What is deprecated, and what to do instead.
    pub deprecations: BTreeMap<Deprecated, String>,
    /// The hashes of the lines of `olm.package`.
    pub package_lines: Vec<Sha256>,
    /// The hashes of the lines of `olm.deprecations`.
    pub deprecation_lines: Vec<Sha256>,
    /// The hashes of all other lines by schema, sorted.
    pub others: BTreeMap<String, Vec<Sha256>>,
    /// Lines that do not say what their schema promises. They are among the others too.
    pub unreadable: Vec<Unreadable>,
}

/// One `olm.bundle`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bundle {
    /// Its version, if it says one.
    pub version: Option<String>,
    /// The image of the bundle itself; empty if the catalog holds its content.
    pub image: String,
    /// The images that its operator runs, and mostly that of the bundle again.
    pub related_images: Vec<Image>,
    /// The hash of each line that describes it.
    pub lines: Vec<Sha256>,
}

/// One of `relatedImages`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Image {
    /// What the bundle calls it; often empty.
    pub name: String,
    /// The reference, as the bundle writes it.
    pub reference: String,
}

/// What a deprecation is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deprecated {
    /// `olm.package`, `olm.channel` or `olm.bundle`.
    pub schema: String,
    /// Its name; empty for the package.
    pub name: String,
}

/// A line that does not say what its schema promises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// What is wrong with it.
    pub reason: String,
}
