use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{Bundle, Channel, Package, UnreadableMeta};

/// Maximum size of all uses, in bytes: ten times those of the largest real catalog. Each has the
/// name of its bundle, which may have megabytes.
const USES_MAX: usize = 64 << 20;

/// Selection of bundles of a catalog. The default selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BundleSelection {
    /// Packages to select; all if empty.
    pub packages: BTreeSet<String>,
    /// Channels whose bundles are selected; if empty, all bundles are, also those of no channel.
    pub channels: BTreeSet<String>,
    /// Selects only the heads of the channels. Default false.
    pub heads_only: bool,
}

/// Error of a selection that would leave out images, and the reason: it names what does not exist
/// or cannot be read, or the names of the bundles and images exceed the memory for them.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct SelectionError(String);

/// Images that the selected bundles need, each once, with all its uses.
///
/// ```
/// use olm::{BundleSelection, PackageParser, RequiredImages};
///
/// let lines = br#"{"image":"r.example/db:1","name":"db.v1","package":"db","schema":"olm.bundle"}"#;
/// let package = PackageParser::parse(lines);
/// let mut images = RequiredImages::default();
/// images.add("demo", "db", &package, &BundleSelection::default())?;
/// let (image, uses) = images.images.first_key_value().unwrap();
/// assert_eq!(image, "r.example/db:1");
/// assert_eq!(uses.first().unwrap().bundle, "db.v1");
/// # Ok::<(), olm::SelectionError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequiredImages {
    /// Uses of each image, by its reference.
    pub images: BTreeMap<String, BTreeSet<ImageUse>>,
    /// Size of all uses, in bytes.
    size: usize,
}

/// Use of an image by one bundle.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ImageUse {
    /// Name of the Catalog that has the bundle.
    pub catalog: String,
    /// Name of the Package that has the bundle.
    pub package: String,
    /// Name of the bundle, such as `etcdoperator.v0.9.4`.
    pub bundle: String,
    /// Name of the image in the bundle; empty for the image of the bundle itself.
    pub name: String,
}

impl BundleSelection {
    /// Returns true if bundles of the Package may be selected.
    pub fn takes(&self, package: &str) -> bool {
        self.packages.is_empty() || self.packages.contains(package)
    }

    /// Returns the selected channels of a Package, or `None` if all bundles are selected whatever
    /// their channel.
    ///
    /// # Errors
    /// Fails if the Package was selected by its name and has none of the selected channels.
    pub fn channels<'a>(
        &self,
        name: &str,
        package: &'a Package,
    ) -> Result<Option<Vec<(&'a str, &'a Channel)>>, SelectionError> {
        if self.channels.is_empty() && !self.heads_only {
            return Ok(None);
        }
        let wanted =
            |channel: &&String| self.channels.is_empty() || self.channels.contains(*channel);
        let channels = package
            .channels
            .iter()
            .filter(|(channel, _)| wanted(channel));
        let channels: Vec<_> = channels
            .map(|(name, channel)| (name.as_str(), channel))
            .collect();
        if channels.is_empty() && !self.channels.is_empty() && self.packages.contains(name) {
            let has: Vec<&String> = package.channels.keys().collect();
            let problem =
                format!("package {name} has none of the channels asked for; it has {has:?}");
            return Err(SelectionError(problem));
        }
        Ok(Some(channels))
    }

    /// Returns the selected bundles of a Package. Entries of a channel without a bundle are
    /// skipped: they have no images.
    fn bundles<'a>(
        &self,
        name: &str,
        package: &'a Package,
    ) -> Result<Vec<(&'a str, &'a Bundle)>, SelectionError> {
        // A bundle or channel that cannot be parsed may need any image, and a missing image is
        // noticed only in the disconnected cluster.
        let matters =
            |line: &&UnreadableMeta| matches!(&*line.schema, "olm.bundle" | "olm.channel");
        if let Some(line) = package.unreadable.iter().find(matters) {
            return Err(SelectionError(format!(
                "the {} {:?} of package {name} cannot be read: {}",
                line.schema, line.name, line.reason
            )));
        }
        let all = package
            .bundles
            .iter()
            .map(|(name, bundle)| (name.as_str(), bundle));
        let Some(channels) = self.channels(name, package)? else {
            return Ok(all.collect());
        };
        let mut chosen = BTreeSet::new();
        for (channel_name, channel) in channels {
            if !self.heads_only {
                chosen.extend(channel.entries.keys().map(String::as_str));
                continue;
            }
            let heads = channel.heads();
            // A channel without a head is broken. Selecting nothing from it would miss its images
            // silently.
            if heads.is_empty() && !channel.entries.is_empty() {
                let problem = format!("channel {channel_name} of package {name} has no head");
                return Err(SelectionError(problem));
            }
            chosen.extend(heads);
        }
        Ok(all.filter(|(name, _)| chosen.contains(name)).collect())
    }
}

impl RequiredImages {
    /// Adds the images of the selected bundles of one Package.
    ///
    /// # Errors
    /// Fails if an image could be left out, or if the names of all bundles with their images take
    /// too much memory.
    pub fn add(
        &mut self,
        catalog: &str,
        name: &str,
        package: &Package,
        choice: &BundleSelection,
    ) -> Result<(), SelectionError> {
        for (bundle_name, bundle) in choice.bundles(name, package)? {
            // Most bundles list their own image among the related ones, without a name or under
            // any.
            let related = bundle
                .related_images
                .iter()
                .filter(|image| image.reference != bundle.image);
            let related = related.map(|image| (&image.reference, image.name.as_str()));
            let own = Some((&bundle.image, "")).filter(|(image, _)| !image.is_empty());
            for (image, name_in_bundle) in related.chain(own) {
                let need = ImageUse {
                    catalog: catalog.to_owned(),
                    package: name.to_owned(),
                    bundle: bundle_name.to_owned(),
                    name: name_in_bundle.to_owned(),
                };
                self.size += image.len()
                    + catalog.len()
                    + name.len()
                    + bundle_name.len()
                    + name_in_bundle.len();
                if self.size > USES_MAX {
                    let problem = format!(
                        "the names of the bundles with their images exceed the limit of {USES_MAX} bytes"
                    );
                    return Err(SelectionError(problem));
                }
                self.images.entry(image.clone()).or_default().insert(need);
            }
        }
        Ok(())
    }

    /// Adds the images of another catalog.
    pub fn merge(&mut self, other: Self) {
        self.size += other.size;
        for (image, needs) in other.images {
            self.images.entry(image).or_default().extend(needs);
        }
    }
}
