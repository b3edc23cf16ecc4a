use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Context;
use carry::TargetRegistry;
use inspect::SourceReader;
use model::CatalogName;
use publish::{Mirror, MirrorSettings, PollMetrics};
use source::{Reference, Source};
use store::{Store, StorePlace};
use terminal::remark;

use crate::CatalogState;

/// Access to registries, and the limits of what is read from them.
pub struct RegistryAccess {
    /// Reader of sources, such as images in registries.
    pub reader: SourceReader,
    /// Reader of the registry of a site itself, whatever mirrors the host has for it.
    pub target: SourceReader,
}

impl RegistryAccess {
    /// Creates the access of a reader.
    pub fn new(reader: SourceReader) -> Self {
        let sources = reader.sources.clone();
        let target = SourceReader {
            sources: sources.with_settings(|settings| settings.no_mirrors = true),
            limits: reader.limits.clone(),
        };
        Self { reader, target }
    }

    /// Returns the mirror that publishes and composes in a store.
    pub fn mirror(&self, store: &Arc<dyn Store>) -> Mirror {
        let settings = MirrorSettings::with_limits(&self.reader.limits);
        let sources = self.reader.sources.clone();
        Mirror::new(sources, store.clone(), settings, PollMetrics::default())
    }

    /// Says that a catalog is new in a store though the registry has it: another store may know its
    /// earlier states. `known` are the catalogs that the store had before.
    ///
    /// # Errors
    /// Fails if the registry does not answer.
    pub async fn note_other_store(
        &self,
        target: &TargetRegistry,
        states: &[CatalogState],
        known: &BTreeSet<CatalogName>,
        store: &StorePlace,
    ) -> anyhow::Result<()> {
        for state in states {
            if known.contains(state.name()) {
                continue;
            }
            let image = target.catalog_image(&state.place());
            if self.target.sources.exists(&image.parse()?).await? {
                let name = state.name();
                let store = store.shown();
                remark(&format!(
                    "notice: {image} is there, and {name} is new in the store {store}: if another store filled this registry, name \
                     that with --store, because this one knows no earlier state to go back to or to keep images for"
                ));
            }
        }
        Ok(())
    }

    /// Asks the registry of the site once whether it takes a push, before anything is done, and if
    /// `is_sparse`, whether it takes an index without some of its images.
    ///
    /// # Errors
    /// Fails with the words of a registry that takes no push, and with what to do if it takes no such
    /// index.
    pub async fn check_target(
        &self,
        target: &TargetRegistry,
        repository: &str,
        is_sparse: bool,
    ) -> anyhow::Result<()> {
        let reference = reference(&format!("{}:latest", target.own(repository)))?;
        let checked = self.target.sources.check_push(&reference).await;
        checked.context("nothing is copied, because the registry takes no push")?;
        if !is_sparse {
            return Ok(());
        }
        let checked = self.target.sources.check_sparse(&reference).await;
        checked.context(
            "nothing is copied, because the registry takes no index without some of its images: remove `platforms`, or let \
             it take them (distribution 3: validation.manifests.indexes.platforms: none)",
        )
    }
}

/// Parses the reference of an image in a registry.
///
/// # Errors
/// Fails for any other source.
pub fn reference(text: &str) -> anyhow::Result<Reference> {
    match text.parse()? {
        Source::Registry { reference, .. } => Ok(reference),
        _ => anyhow::bail!("{text} is no place for an image"),
    }
}
