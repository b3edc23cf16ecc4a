use std::{path::Path, sync::Arc};

use ::carry::{
    CarriedImage, ImageCopier, ImagePlace, ListedImages, MissingImage, Skopeo, TargetRegistry,
    WantedImages, list_images, lookaside_scopes, name_uses, narrow_images, parts_that_exist,
};
use model::CatalogName;
use offer::{CarriedSet, RegistryAccess, reference, required_images};
use olm::RequiredImages;
use publish::PollOptions;
use store::Store;

use super::CopyArgs;
use crate::args::RegistryArgs;
use crate::reports::print_polls;
use crate::{published, wiring};
use terminal::{print_line, say};

/// Returns access to registries. `target` is one that is written to.
pub(super) fn access(
    args: &RegistryArgs,
    target: Option<&TargetRegistry>,
) -> anyhow::Result<RegistryAccess> {
    let mut registries = args.clone();
    if let Some(target) = target.filter(|target| target.is_plain) {
        registries.plain_http.push(target.host.clone());
    }
    let reader = wiring::sources(&registries)?;
    Ok(RegistryAccess::new(reader))
}

/// The parts that copy images.
pub(super) struct Tools {
    pub(super) access: RegistryAccess,
    skopeo: Skopeo,
    dry_run: bool,
    rechecks: bool,
}

/// Content of an ImageSetConfiguration.
pub(super) struct Collected {
    /// Catalogs that are published, also by an earlier run.
    pub(super) names: Vec<CatalogName>,
    pub(super) images: Vec<CarriedImage>,
    /// Images that could not be had.
    pub(super) missing: Vec<MissingImage>,
    /// Number of catalogs that could not be read.
    pub(super) failed: usize,
}

impl Tools {
    pub(super) async fn new(
        args: &CopyArgs,
        target: Option<&TargetRegistry>,
    ) -> anyhow::Result<Self> {
        let access = access(&args.registries, target)?;
        let http = access.reader.sources.settings.http.clone();
        let auth_files = &args.registries.auth_file;
        let registries_conf = args.registries.rules();
        let program = args.skopeo.clone();
        Ok(Self {
            skopeo: Skopeo::find(program, http, auth_files, &registries_conf).await?,
            access,
            dry_run: args.dry_run,
            rechecks: args.recheck,
        })
    }

    /// Composes and publishes the catalogs, and copies the images that they need to a place.
    pub(super) async fn collect(
        &self,
        store: &Arc<dyn Store>,
        set: &CarriedSet,
        to: ImagePlace<'_>,
    ) -> anyhow::Result<Collected> {
        let mirror = self.access.mirror(store);
        let progress = crate::progress::show_poll(mirror.progress(), false);
        let options = PollOptions {
            force: set.force,
            ..PollOptions::default()
        };
        let reports = mirror.poll_all(&set.catalogs, options).await;
        progress.finish_and_clear();
        print_polls(&reports, false)?;
        let failed = reports
            .iter()
            .filter(|report| !report.outcome.is_success())
            .count();
        let mut names = Vec::new();
        let mut needs = RequiredImages::default();
        for catalog in &set.catalogs {
            let name = &catalog.name;
            if let Some(state) = published::find(store, name).await? {
                let snapshot = published::snapshot(&state).await?;
                needs.merge(required_images(&state, &snapshot).await?);
                names.push(name.clone());
            }
        }
        anyhow::ensure!(!names.is_empty(), "no catalog could be composed");
        let wanted = WantedImages::new(&needs, &set.additional, &set.blocked, &set.platforms);
        let references = wanted.references.iter().map(String::as_str);
        let ListedImages {
            images,
            mut missing,
        } = list_images(&self.access.reader.sources, references, &say).await;
        let sources = &self.access.reader.sources;
        let narrowed = narrow_images(sources, wanted.placed(images), &wanted, &say).await;
        let mut images = narrowed.images;
        missing.extend(narrowed.missing);
        for blocked in wanted.blocked {
            blocked.report(&mut missing, &say);
        }
        let lookaside = lookaside_scopes(&images);
        if !lookaside.is_empty() {
            let scopes = lookaside.into_iter().collect::<Vec<_>>().join(", ");
            say(&format!(
                "notice: simple signatures are not carried, though registries.d of this host names a place of them for {scopes}"
            ));
        }
        let failed_copies = self.copy(&images, None, to).await?;
        let sparse = self.sparse_images(&images, &failed_copies).await;
        missing.extend(failed_copies);
        if !sparse.is_empty() {
            images.retain(|image| !sparse.iter().any(|sparse| sparse.image == image.image));
            missing.retain(|missing| !sparse.iter().any(|sparse| missing.is(sparse)));
            missing.extend(self.copy(&sparse, None, to).await?);
            images.extend(sparse);
        }
        name_uses(&mut missing, &needs);
        Ok(Collected {
            names,
            images,
            missing,
            failed,
        })
    }

    /// Returns indexes that could not be copied because their registry lacks some of their images,
    /// with the images that it has.
    async fn sparse_images(
        &self,
        images: &[CarriedImage],
        failed: &[MissingImage],
    ) -> Vec<CarriedImage> {
        let mut sparse = Vec::new();
        for image in images {
            let has_failed = failed.iter().any(|missing| missing.is(image));
            if !has_failed || image.attached || !image.parts.is_empty() {
                continue;
            }
            // Why it cannot be copied is said already.
            let found = parts_that_exist(&self.access.reader.sources, image).await;
            if let Ok(Some(parts)) = found {
                say(&format!(
                    "notice: {}: its registry lacks some of the images of the index; the others are carried",
                    image.image
                ));
                sparse.extend(parts);
            }
        }
        sparse
    }

    /// Lists what is attached to images where verifiers look for it, in a registry that keeps no
    /// such list by itself. Returns what could not be listed.
    pub(super) async fn list_referrers(
        &self,
        images: &[CarriedImage],
        missing: &[MissingImage],
        target: &TargetRegistry,
    ) -> Vec<MissingImage> {
        let mut unlisted = Vec::new();
        for image in images.iter().filter(|image| image.attached) {
            let is_missing = missing.iter().any(|missing| missing.is(image));
            let by_digest = image.image.rsplit_once('@');
            let Some((_, digest)) = by_digest.filter(|_| !is_missing && !self.dry_run) else {
                continue;
            };
            if let Err(error) = self.list_referrer(&image.image, digest, target).await {
                let missing = MissingImage {
                    attached: true,
                    ..MissingImage::new(&image.image, model::text::chain(error.as_ref()))
                };
                missing.report(&mut unlisted, &say);
            }
        }
        unlisted
    }

    async fn list_referrer(
        &self,
        image: &str,
        digest: &str,
        target: &TargetRegistry,
    ) -> anyhow::Result<()> {
        let place = reference(&target.place_of(image))?;
        let sources = &self.access.target.sources;
        sources.list_referrer(&place, &digest.parse()?).await?;
        Ok(())
    }

    /// Copies images from a folder, or from where their references name them. Returns those that
    /// failed.
    pub(super) async fn copy(
        &self,
        images: &[CarriedImage],
        from: Option<&Path>,
        to: ImagePlace<'_>,
    ) -> anyhow::Result<Vec<MissingImage>> {
        let copier = ImageCopier {
            skopeo: &self.skopeo,
            sources: &self.access.target.sources,
            from,
            to,
            dry_run: self.dry_run,
            rechecks: self.rechecks,
            say: &say,
        };
        let what = if self.dry_run { "to copy" } else { "copied" };
        let report = copier.copy(images).await;
        let failed = report.missing.len();
        print_line(&format!(
            "{} images: {} {what}, {} there already, {failed} failed",
            images.len(),
            report.copied,
            report.kept
        ))?;
        Ok(report.missing)
    }
}
