use std::collections::BTreeSet;

use model::text::did_you_mean;
use olm::{BundleSelection, Package, RequiredImages, SelectionError};
use serde_json::Value;

use crate::{CarryError, OperatorImageSet, imageset::package_entry};

/// Images of the catalogs that were read so far, and names that occur in them.
#[derive(Default)]
pub struct FoundImages {
    /// Images with the bundles that need them.
    pub needs: RequiredImages,
    /// Configuration that selects them.
    pub image_set: OperatorImageSet,
    /// Names of all packages, chosen or not.
    packages: BTreeSet<String>,
    channels: BTreeSet<String>,
}

impl FoundImages {
    /// Adds the names of all packages of a catalog.
    pub fn add_names<'a>(&mut self, packages: impl Iterator<Item = &'a String>) {
        self.packages.extend(packages.cloned());
    }

    /// Returns the chosen part of a package, or `None` if no channel of it was chosen.
    ///
    /// # Errors
    /// A channel without one head, if only heads are chosen.
    pub fn add_package(
        &mut self,
        name: &str,
        package: &Package,
        choice: &BundleSelection,
    ) -> Result<Option<Value>, SelectionError> {
        let chosen = choice.channels(name, package)?;
        let is_chosen = chosen.as_ref().is_none_or(|channels| !channels.is_empty());
        let channels: Vec<&str> = chosen.into_iter().flatten().map(|(channel, _)| channel).collect();
        self.channels.extend(channels.iter().map(|&channel| channel.to_owned()));
        Ok(is_chosen.then(|| package_entry(name, package.default_channel.as_ref(), &channels)))
    }

    /// Refuses names that occur nowhere. Most of them are misspelt.
    ///
    /// # Errors
    /// The first such name, with a similar one.
    pub fn check_choice(&self, choice: &BundleSelection) -> Result<(), CarryError> {
        if let Some(package) = choice.packages.difference(&self.packages).next() {
            let similar = did_you_mean(package, self.packages.iter().map(String::as_str));
            let reason = format!("none of the catalogs has a package {package:?}{similar}");
            return Err(CarryError::Refused(reason));
        }
        if let Some(channel) = choice.channels.difference(&self.channels).next() {
            let reason = format!("none of the packages has a channel {channel:?}");
            return Err(CarryError::Refused(reason));
        }
        Ok(())
    }
}
