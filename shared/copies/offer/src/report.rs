//! Reports of the steps of `carry`. Their JSON is that of the command line.

use carry::{CopyReport, ManifestTarget, OfferGap};
use model::CatalogName;
use model::text::chain;
use serde::Serialize;
use terminal::say;

/// Report of a step that copies images. `C` is the report of one catalog, which was published or
/// imported.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CarryReport<C> {
    /// True if nothing was written.
    pub dry_run: bool,
    /// True if all catalogs and images are where they belong.
    pub complete: bool,
    /// Error for which the step did not go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Catalogs in the store.
    pub catalogs: Vec<C>,
    /// Images, and what is attached to them.
    pub images: CopyReport,
    /// Sections of the ImageSetConfiguration that are left to oc-mirror.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rest: Vec<String>,
    /// Archive of the catalogs in the folder that was filled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<String>,
    /// Store of the site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// Catalogs at the registry of the site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offer: Option<OfferReport>,
}

/// Report of what is offered at a registry.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OfferReport {
    /// True if everything of all catalogs is offered.
    pub complete: bool,
    /// Error for which nothing was pushed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Catalogs at the registry.
    pub catalogs: Vec<OfferedCatalog>,
    /// Files of the manifests that were written.
    pub manifests: Vec<String>,
}

/// Catalog at the registry of a site.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OfferedCatalog {
    /// Name in the store.
    pub catalog: CatalogName,
    /// Image at the registry.
    pub image: String,
    /// Outcome of its push.
    pub outcome: OfferOutcome,
    /// Error and its causes, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Bundles and packages that are not offered as the store has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<OfferGap>,
}

/// Outcome of the push of one catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OfferOutcome {
    /// It was pushed.
    Pushed,
    /// The registry had it.
    Unchanged,
    /// It would be pushed, if this were no dry run.
    Planned,
    /// It was not pushed, because everything was required and something is missing.
    Refused,
    /// It was not pushed, because of an error.
    Failed,
}

impl<C> CarryReport<C> {
    /// Creates the report of a step that has copied images.
    pub(crate) const fn new(dry_run: bool, catalogs: Vec<C>, images: CopyReport) -> Self {
        Self {
            dry_run,
            complete: false,
            error: None,
            catalogs,
            images,
            rest: Vec::new(),
            archive: None,
            store: None,
            offer: None,
        }
    }

    /// Returns the error for which the step, or its last part, did not go on.
    pub fn error(&self) -> Option<&str> {
        let of_offer = self.offer.as_ref().and_then(|offer| offer.error.as_deref());
        self.error.as_deref().or(of_offer)
    }
}

impl OfferedCatalog {
    /// Returns true if everything of the catalog is offered.
    pub(crate) fn is_whole(&self) -> bool {
        self.gaps.is_empty() && self.error.is_none()
    }

    /// Describes a catalog that did not fail.
    pub(crate) fn new(target: &ManifestTarget, gaps: Vec<OfferGap>, outcome: OfferOutcome) -> Self {
        Self {
            catalog: target.catalog.clone(),
            image: target.image.clone(),
            outcome,
            error: None,
            gaps,
        }
    }

    /// Describes a catalog that failed, and says so.
    pub(crate) fn failed(catalog: CatalogName, image: String, error: &anyhow::Error) -> Self {
        let error = chain(error.as_ref());
        say(&format!("failed: catalog {catalog}: {error}"));
        Self {
            catalog,
            image,
            outcome: OfferOutcome::Failed,
            error: Some(error),
            gaps: Vec::new(),
        }
    }
}
