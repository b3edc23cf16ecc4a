//! Fields of a line that matter to OLM, by its schema.

use std::borrow::Cow;

use serde::Deserialize;

use crate::PropertyFields;

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
pub(crate) struct OlmPackage<'a> {
    #[serde(borrow, default)]
    pub(crate) default_channel: Option<Cow<'a, str>>,
}

/// Fields of an `olm.channel` that matter here.
#[derive(Deserialize)]
pub(crate) struct OlmChannel<'a> {
    #[serde(borrow, default)]
    pub(crate) entries: Option<Vec<OlmEntry<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OlmEntry<'a> {
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) replaces: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(crate) skips: Option<Vec<String>>,
    #[serde(borrow, default)]
    pub(crate) skip_range: Option<Cow<'a, str>>,
}

/// Fields of an `olm.bundle`. A bundle whose content lies in the catalog (`olm.bundle.object`) has no image.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OlmBundle<'a> {
    #[serde(borrow, default)]
    pub(crate) image: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) related_images: Option<Vec<OlmImage<'a>>>,
    #[serde(borrow, default)]
    pub(crate) properties: Option<Vec<PropertyFields<'a>>>,
}

#[derive(Deserialize)]
pub(crate) struct OlmImage<'a> {
    #[serde(borrow, default)]
    pub(crate) name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) image: Option<Cow<'a, str>>,
}

/// Fields of an `olm.deprecations` that matter here.
#[derive(Deserialize)]
pub(crate) struct OlmDeprecations<'a> {
    #[serde(borrow, default)]
    pub(crate) entries: Option<Vec<OlmDeprecation<'a>>>,
}

#[derive(Deserialize)]
pub(crate) struct OlmDeprecation<'a> {
    #[serde(borrow)]
    pub(crate) reference: MetaHeader<'a>,
    #[serde(borrow, default)]
    pub(crate) message: Option<Cow<'a, str>>,
}

/// Fields of the value of a property `olm.package`.
#[derive(Deserialize)]
struct PackageProperty {
    version: String,
}

impl OlmBundle<'_> {
    /// Returns the version in the property `olm.package`.
    pub(crate) fn version(&self) -> Option<String> {
        let mut properties = self.properties.iter().flatten();
        let package = properties.find(|property| property.kind == "olm.package")?;
        package.value::<PackageProperty>().map(|package| package.version)
    }
}
