//! Fields of a line that matter to OLM, by its schema.

use std::borrow::Cow;

use serde::Deserialize;

use crate::{DeprecationTarget, PropertyFields};

/// Fields that every Meta may have.
#[derive(Default, Deserialize)]
pub(crate) struct MetaHeader<'a> {
    #[serde(borrow, default)]
    pub(crate) schema: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) name: Cow<'a, str>,
}

/// Fields of an `olm.package` that matter here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OlmPackage {
    pub(crate) default_channel: Option<String>,
}

/// Entries of an `olm.channel` or of an `olm.deprecations`.
#[derive(Deserialize)]
pub(crate) struct OlmEntries<E> {
    pub(crate) entries: Option<Vec<E>>,
}

/// Entry of an `olm.channel`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OlmEntry {
    pub(crate) name: String,
    pub(crate) replaces: Option<String>,
    pub(crate) skips: Option<Vec<String>>,
    pub(crate) skip_range: Option<String>,
}

/// Entry of an `olm.deprecations`.
#[derive(Deserialize)]
pub(crate) struct OlmDeprecation {
    pub(crate) reference: DeprecationTarget,
    pub(crate) message: Option<String>,
}

/// Fields of an `olm.bundle`. A bundle whose content lies in the catalog (`olm.bundle.object`) has no image.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OlmBundle<'a> {
    pub(crate) image: Option<String>,
    pub(crate) related_images: Option<Vec<OlmImage>>,
    #[serde(borrow)]
    pub(crate) properties: Option<Vec<PropertyFields<'a>>>,
}

#[derive(Deserialize)]
pub(crate) struct OlmImage {
    pub(crate) name: Option<String>,
    pub(crate) image: Option<String>,
}

impl OlmBundle<'_> {
    /// Returns the version in the property `olm.package`.
    pub(crate) fn version(&self) -> Option<String> {
        let mut properties = self.properties.iter().flatten();
        let package = properties.find(|property| property.kind == "olm.package")?;
        package.bundle_version()
    }
}
