//! Fields of a line that matter to OLM, by its schema.

use std::borrow::Cow;

use serde::Deserialize;

use crate::DeprecationTarget;

/// Fields that every Meta may have.
#[derive(Default, Deserialize)]
pub(crate) struct MetaHeader<'a> {
    #[serde(borrow, default)]
    pub(crate) schema: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) name: Cow<'a, str>,
}

/// Fields of an `olm.package` that matter here.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OlmPackage {
    pub(crate) default_channel: Option<String>,
    pub(crate) description: Option<String>,
}

impl OlmPackage {
    /// Returns the name of the default channel; empty if there is none.
    pub(crate) fn default_channel(&self) -> &str {
        self.default_channel.as_deref().unwrap_or_default()
    }
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

/// Element of `relatedImages` of an `olm.bundle`.
#[derive(Debug, Deserialize)]
pub(crate) struct OlmImage {
    pub(crate) name: Option<String>,
    pub(crate) image: Option<String>,
}
