//! Steps of `carry`, from catalogs in a store to a folder, or to the registry of a site.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Context;
use carry::{
    CarriedFolder, CarriedImage, ClusterImages, ImagePlace, ImageSupply, images_folder,
    remove_partial,
};
use inspect::published;
use model::CatalogName;
use olm::RequiredImages;
use publish::Report;
use store::{Store, StorePlace};
use sync::SyncReport;
use terminal::{print_done, say};

use crate::image_tools::CollectedImages;
use crate::{CarriedSet, CarryReport, CatalogState, ImageTools, OfferPlace, Offering};

/// Catalogs of an ImageSetConfiguration in a store.
pub struct PublishedSet<'a> {
    /// Tools that copy the images.
    pub tools: &'a ImageTools,
    /// The configuration.
    pub set: &'a CarriedSet,
    /// Store with the catalogs.
    pub store: Arc<dyn Store>,
    /// Reports of their publication. A catalog that failed may have an earlier state.
    pub catalogs: Vec<Report>,
}

/// Folder that `carry out` has filled, with catalogs that were imported.
pub struct ImportedFolder<'a> {
    /// The folder.
    pub path: &'a Path,
    /// Content of its `carry.json`.
    pub carried: CarriedFolder,
    /// Reports of the import.
    pub catalogs: Vec<SyncReport>,
}

/// Site with a registry, and with the store from which that is filled.
pub struct CarrySite<'a> {
    /// Tools that copy the images.
    pub tools: &'a ImageTools,
    /// Store with the catalogs.
    pub store: Arc<dyn Store>,
    /// Place of the store.
    pub store_place: &'a StorePlace,
    /// Catalogs that the store had before.
    pub known: BTreeSet<CatalogName>,
    /// Registry, and the manifests for its clusters.
    pub place: &'a OfferPlace,
    /// Pushes no catalog if anything is missing.
    pub require_all: bool,
}

impl PublishedSet<'_> {
    /// Copies the images into a folder, and an archive of the catalogs. If `require_all` and
    /// anything is missing, the description of the folder is not written.
    ///
    /// # Errors
    /// A folder that cannot be written. An image that fails is in the report.
    pub async fn fill(
        self,
        folder: &Path,
        require_all: bool,
    ) -> anyhow::Result<CarryReport<Report>> {
        let dry_run = self.tools.dry_run;
        let images_folder = images_folder(folder);
        let states = self.states().await?;
        let to = ImagePlace::Folder(&images_folder);
        let CollectedImages { images, report } = self.collect(&states, to).await?;
        let is_published = self.is_published();
        let mut report = CarryReport::new(dry_run, self.catalogs, report);
        report.complete = is_published && report.images.missing.is_empty();
        report.rest.clone_from(&self.set.rest);
        if require_all && !report.complete {
            let reason = "carry.json is not written: not all is there, and --require-all is set";
            report.error = Some(reason.to_owned());
            return Ok(report);
        }
        if !dry_run {
            remove_partial(&images_folder);
            let names: Vec<CatalogName> = states.iter().map(|state| state.name().clone()).collect();
            let archive = sync::archive_into(self.store, &names, folder, SystemTime::now()).await?;
            write_folder(folder, &archive, images, &report)?;
            report.archive = Some(archive);
            let folder = folder.display();
            print_done(&format!(
                "carry {folder} to the other side: catalog-mirror carry in DIR REGISTRY"
            ))?;
        }
        self.set.end()?;
        Ok(report)
    }

    /// Copies the images to the registry of a site, and offers the catalogs there.
    ///
    /// # Errors
    /// A store that cannot be read, and manifests that cannot be written. An image or a catalog that
    /// fails is in the report.
    pub async fn offer(self, site: &CarrySite<'_>) -> anyhow::Result<CarryReport<Report>> {
        let states = self.states().await?;
        site.say_store(&states).await?;
        let to = ImagePlace::Target(&site.place.registry);
        let CollectedImages { images, report } = self.collect(&states, to).await?;
        let is_published = self.is_published();
        let mut report = CarryReport::new(site.tools.dry_run, self.catalogs, report);
        report.rest.clone_from(&self.set.rest);
        report.complete = is_published;
        site.offer(&states, &images, &mut report).await?;
        self.set.end()?;
        Ok(report)
    }

    fn is_published(&self) -> bool {
        let mut reports = self.catalogs.iter();
        reports.all(|report| report.outcome.is_success())
    }

    /// Returns the states of the catalogs that are published, also by an earlier run.
    async fn states(&self) -> anyhow::Result<Vec<CatalogState>> {
        let mut states = Vec::new();
        for catalog in &self.set.catalogs {
            let published = published::find(&self.store, &catalog.name).await?;
            states.extend(published.map(CatalogState::of));
        }
        anyhow::ensure!(!states.is_empty(), "no catalog could be composed");
        Ok(states)
    }

    /// Copies the images that the catalogs need, and the additional ones.
    async fn collect(
        &self,
        states: &[CatalogState],
        to: ImagePlace<'_>,
    ) -> anyhow::Result<CollectedImages> {
        let mut needs = RequiredImages::default();
        for state in states {
            needs.merge(state.images(&self.store).await?);
        }
        self.tools.collect(self.set, &needs, to).await
    }
}

impl CarrySite<'_> {
    /// Copies the images of a folder to the registry, and offers the catalogs there.
    ///
    /// # Errors
    /// A registry that takes no push, a store that cannot be read, and manifests that cannot be
    /// written. An image or a catalog that fails is in the report.
    pub async fn take(
        &self,
        imported: ImportedFolder<'_>,
    ) -> anyhow::Result<CarryReport<SyncReport>> {
        let ImportedFolder {
            path,
            carried,
            catalogs,
        } = imported;
        for missing in &carried.missing {
            say(&format!(
                "missing in {}: {}",
                path.display(),
                missing.line()
            ));
        }
        let target = &self.place.registry;
        let images = &carried.images;
        let mut states = Vec::new();
        for report in &catalogs {
            let published = published::state(&self.store, &report.catalog).await?;
            states.push(CatalogState::of(published));
        }
        self.say_store(&states).await?;
        if let Some(first) = states.first().filter(|_| !self.tools.dry_run) {
            let is_sparse = images.iter().any(CarriedImage::is_sparse);
            let repository = first.repository();
            let access = &self.tools.access;
            let checked = access.check_target(target, &repository, is_sparse);
            checked.await?;
        }
        let images_folder = images_folder(path);
        let to = ImagePlace::Target(target);
        let mut copied = self.tools.copy(images, Some(&images_folder), to).await?;
        copied.missing.extend(carried.missing);
        let mut report = CarryReport::new(self.tools.dry_run, catalogs, copied);
        let mut imported = report.catalogs.iter();
        report.complete = imported.all(|report| report.outcome.is_success());
        self.offer(&states, images, &mut report).await?;
        Ok(report)
    }

    /// Says which store has the catalogs, and which of them are new in it though the registry has
    /// them.
    async fn say_store(&self, states: &[CatalogState]) -> anyhow::Result<()> {
        let store = self.store_place.shown();
        print_done(&format!("the store of the site is {store}"))?;
        let access = &self.tools.access;
        access
            .note_other_store(&self.place.registry, states, &self.known, self.store_place)
            .await
    }

    /// Offers catalogs whose images were copied, and completes the report.
    async fn offer<C>(
        &self,
        states: &[CatalogState],
        images: &[CarriedImage],
        report: &mut CarryReport<C>,
    ) -> anyhow::Result<()> {
        let missing = &mut report.images.missing;
        let target = &self.place.registry;
        let unlisted = self.tools.list_referrers(images, missing, target).await;
        missing.extend(unlisted);
        let offering = Offering {
            access: &self.tools.access,
            store: &self.store,
            supply: ImageSupply::new(images, missing),
            require_all: self.require_all,
            dry_run: self.tools.dry_run,
            place: self.place,
        };
        let is_copied = missing.is_empty();
        let offer = offering.run(states, ClusterImages::new(images)).await?;
        report.complete &= is_copied && offer.complete;
        report.store = Some(self.store_place.shown().to_string());
        report.offer = Some(offer);
        Ok(())
    }
}

/// Writes the description of a folder, and removes the archive that it had before.
fn write_folder(
    folder: &Path,
    archive: &str,
    mut images: Vec<CarriedImage>,
    report: &CarryReport<Report>,
) -> anyhow::Result<()> {
    let missing = report.images.missing.clone();
    images.retain(|image| !missing.iter().any(|missing| missing.is(image)));
    let before = CarriedFolder::read(folder).ok();
    let carried = CarriedFolder::new(archive.to_owned(), images, missing);
    let written = carried.write(folder);
    written.with_context(|| format!("cannot describe {}", folder.display()))?;
    if let Some(before) = before.filter(|before| before.archive != archive) {
        // An archive that is not removed is of no harm: carry.json names the one that is read.
        fs::remove_file(folder.join(&before.archive)).ok();
    }
    Ok(())
}
