use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{Bundle, Channel, Package};

/// Which bundles of a catalog somebody wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// These Packages; all, if none is named.
    pub packages: BTreeSet<String>,
    /// The bundles of these channels; all bundles, if none is named.
    pub channels: BTreeSet<String>,
    /// Only the heads of the channels.
    pub heads_only: bool,
}

/// Why a Package cannot be chosen from.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ChoiceError {
    /// The Package that was named has none of the channels that were.
    #[error("package {package} has none of the channels asked for; it has {has:?}")]
    NoChannel {
        /// The Package.
        package: String,
        /// The channels that it has.
        has: Vec<String>,
    },
    /// Every entry of the channel is replaced or skipped by another one.
    #[error("channel {channel} of package {package} has no head")]
    NoHead {
        /// The Package.
        package: String,
        /// The channel.
        channel: String,
    },
    /// A channel or bundle that does not say what its schema promises.
    #[error("the {schema} {name:?} of package {package} cannot be read: {reason}")]
    Unreadable {
        /// The Package.
        package: String,
        /// Its schema.
        schema: String,
        /// Its name.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// Images, each once, and what needs them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs(BTreeMap<String, BTreeSet<Need>>);

/// What needs an image.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Need {
    /// The Catalog.
    pub catalog: String,
    /// The Package.
    pub package: String,
    /// The bundle.
    pub bundle: String,
    /// What the bundle calls the image; empty for the image of the bundle itself.
    pub name: String,
}

impl Choice {
    /// Whether bundles of that Package may be wanted.
    pub fn takes(&self, package: &str) -> bool {
        self.packages.is_empty() || self.packages.contains(package)
    }

    /// The channels that are chosen of a Package, none if no channel matters.
    ///
    /// # Errors
    /// [`ChoiceError::NoChannel`] if the Package is named and has none of the channels.
    pub fn channels<'a>(&self, name: &str, package: &'a Package) -> Result<Vec<(&'a str, &'a Channel)>, ChoiceError> {
        if self.channels.is_empty() && !self.heads_only {
            return Ok(Vec::new());
        }
        let wanted = |channel: &&String| self.channels.is_empty() || self.channels.contains(*channel);
        let channels = package.channels.iter().filter(|(channel, _)| wanted(channel));
        let channels: Vec<_> = channels.map(|(name, channel)| (name.as_str(), channel)).collect();
        if channels.is_empty() && !self.channels.is_empty() && self.packages.contains(name) {
            let (package, has) = (name.to_owned(), package.channels.keys().cloned().collect());
            return Err(ChoiceError::NoChannel { package, has });
        }
        Ok(channels)
    }

    /// The chosen bundles of a Package. An entry of a channel that has no bundle has no images either.
    ///
    /// # Errors
    /// [`ChoiceError`] where images would be left out although they may be needed.
    pub fn bundles<'a>(&self, name: &str, package: &'a Package) -> Result<Vec<(&'a str, &'a Bundle)>, ChoiceError> {
        check_readable(name, package)?;
        let all = package.bundles.iter().map(|(name, bundle)| (name.as_str(), bundle));
        if self.channels.is_empty() && !self.heads_only {
            return Ok(all.collect());
        }
        let mut chosen = BTreeSet::new();
        for (channel_name, channel) in self.channels(name, package)? {
            if !self.heads_only {
                chosen.extend(channel.entries.keys().map(String::as_str));
                continue;
            }
            let heads = channel.heads();
            if heads.is_empty() && !channel.entries.is_empty() {
                let (package, channel) = (name.to_owned(), channel_name.to_owned());
                return Err(ChoiceError::NoHead { package, channel });
            }
            chosen.extend(heads);
        }
        Ok(all.filter(|(name, _)| chosen.contains(name)).collect())
    }
}

impl Needs {
    /// Adds the images of the chosen bundles of one Package.
    ///
    /// # Errors
    /// As [`Choice::bundles`].
    pub fn add(&mut self, catalog: &str, name: &str, package: &Package, choice: &Choice) -> Result<(), ChoiceError> {
        for (bundle_name, bundle) in choice.bundles(name, package)? {
            let need = |image: &str| Need {
                catalog: catalog.to_owned(),
                package: name.to_owned(),
                bundle: bundle_name.to_owned(),
                name: image.to_owned(),
            };
            for image in &bundle.related_images {
                // Most bundles relate to their own image again, under no name or another.
                if image.reference != bundle.image {
                    self.need(&image.reference, need(&image.name));
                }
            }
            if !bundle.image.is_empty() {
                self.need(&bundle.image, need(""));
            }
        }
        Ok(())
    }

    /// Adds the needs of another catalog.
    pub fn merge(&mut self, other: Self) {
        for (image, needs) in other.0 {
            self.0.entry(image).or_default().extend(needs);
        }
    }

    fn need(&mut self, image: &str, need: Need) {
        self.0.entry(image.to_owned()).or_default().insert(need);
    }

    /// The images in byte order with what needs them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &BTreeSet<Need>)> {
        self.0.iter().map(|(image, needs)| (image.as_str(), needs))
    }

    /// How many images there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is needed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A bundle or channel that cannot be read may need any image.
fn check_readable(name: &str, package: &Package) -> Result<(), ChoiceError> {
    let matters = |schema: &str| matches!(schema, "olm.bundle" | "olm.channel");
    match package.unreadable.iter().find(|line| matters(&line.schema)) {
        None => Ok(()),
        Some(line) => Err(ChoiceError::Unreadable {
            package: name.to_owned(),
            schema: line.schema.clone(),
            name: line.name.clone(),
            reason: line.reason.clone(),
        }),
    }
}
