use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ComposeError, Selection};

/// Catalog that is made of others: the inputs in their order, then what is added, then what is
/// removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Composition {
    /// Catalogs to take packages from.
    pub inputs: Vec<CompositionInput>,
    /// Folders, images or layouts with packages, or with bundles and channel entries for packages
    /// of the inputs.
    pub add: Vec<Addition>,
    /// Packages, channels and bundles that are left out at the end.
    pub remove: Vec<Removal>,
    /// Treatment of a package that several inputs have. Default `error`.
    pub conflicts: ConflictRule,
    /// Treatment of packages and APIs that a bundle requires. Default `warn`.
    pub dependencies: DependencyRule,
    /// Labels, annotations and `spec` for the CatalogSource of the catalog, from the template of an
    /// ImageSetConfiguration. Another template makes another state, so that it is published.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub catalog_source: Option<Value>,
}

/// Catalog from which a composition takes packages. It has either `catalog` or `source`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompositionInput {
    /// Published catalog of the mirror: `NAME`, `NAME@CONTENT-HASH`, or the image reference of its
    /// source. A reference that is not published is pulled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<String>,
    /// Source that is pulled, as it is written for a catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Part to take. Default: the whole catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<Selection>,
}

/// Source whose documents are added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Addition {
    /// Source, as it is written for a catalog.
    pub source: String,
    /// Replaces bundles and entries that exist. Without it, one that exists with other content is
    /// an error. Default false.
    #[serde(default)]
    pub replace: bool,
}

/// Package that is left out, or some of its channels and bundles.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Removal {
    /// Name of the package. It is left out as a whole if neither channels nor bundles are named.
    pub package: String,
    /// Channels to leave out, with the bundles that no other channel has.
    #[serde(default)]
    pub channels: Vec<String>,
    /// Bundles to leave out of all channels.
    #[serde(default)]
    pub bundles: Vec<String>,
}

/// Treatment of a package that several inputs have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ConflictRule {
    /// Refuses the composition.
    #[default]
    Error,
    /// Takes the package from the first input that has it.
    First,
}

/// Treatment of what bundles require.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DependencyRule {
    /// Does not look at requirements, so that packages that are taken whole are not read.
    Ignore,
    /// Names the requirements that no package of the result provides.
    #[default]
    Warn,
    /// Takes along from the inputs what is required and missing, in the highest version that fits,
    /// and what that requires in turn. Names what no input provides.
    Include,
}

impl Composition {
    /// Returns the texts by which messages call the inputs, then the additions.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let additions = self.add.iter().map(|addition| addition.source.as_str());
        self.inputs
            .iter()
            .map(CompositionInput::name)
            .chain(additions)
    }

    /// Checks what can be checked without the inputs.
    ///
    /// # Errors
    /// Fails if nothing is composed, or if parts of a selection exclude each other.
    pub fn check(&self) -> Result<(), ComposeError> {
        if self.inputs.is_empty() && self.add.is_empty() {
            let problem = "a composition needs `inputs` or `add`";
            return Err(ComposeError::Refused(problem.to_owned()));
        }
        for input in &self.inputs {
            if input.catalog.is_some() == input.source.is_some() {
                let problem =
                    "an input has either `catalog` (published by this mirror) or `source` (pulled)";
                return Err(ComposeError::Refused(problem.to_owned()));
            }
            if let Some(select) = &input.select {
                select.check().map_err(|problem| {
                    ComposeError::Refused(format!("input {}: {problem}", input.name()))
                })?;
            }
        }
        Ok(())
    }
}

impl Removal {
    /// Returns true if the package is left out as a whole.
    pub(crate) const fn takes_whole(&self) -> bool {
        self.channels.is_empty() && self.bundles.is_empty()
    }
}

impl CompositionInput {
    /// Returns the text by which messages call the input.
    pub fn name(&self) -> &str {
        let name = self.catalog.as_deref().or(self.source.as_deref());
        name.unwrap_or_default()
    }
}
