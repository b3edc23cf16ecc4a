use std::path::Path;

use carry::{
    CarriedImage, CopyReport, ImageCopier, ImagePlace, ListedImages, MissingImage, Skopeo,
    TargetRegistry, WantedImages, list_images, lookaside_scopes, name_uses, narrow_images,
    parts_that_exist,
};
use olm::RequiredImages;
use terminal::{Output, bytes, is_shown, print_done, remark, say};

use crate::{CarriedSet, RegistryAccess, reference};

/// Tools that copy images.
pub struct ImageTools {
    /// Access to registries.
    pub access: RegistryAccess,
    /// Program that copies one image.
    pub skopeo: Skopeo,
    /// Says what would be copied, and copies nothing.
    pub dry_run: bool,
    /// Hashes each file of an image in a folder, instead of comparing sizes only.
    pub rechecks: bool,
}

/// Images of an ImageSetConfiguration, and what was copied of them.
pub(crate) struct CollectedImages {
    /// Images, and what is attached to them.
    pub(crate) images: Vec<CarriedImage>,
    /// Result of the copy, with the images that could not be looked up.
    pub(crate) report: CopyReport,
}

impl ImageTools {
    /// Copies the images that an ImageSetConfiguration asks for, and those that its catalogs need, to
    /// a place.
    ///
    /// # Errors
    /// Output that cannot be written. An image that fails is in the result.
    pub(crate) async fn collect(
        &self,
        set: &CarriedSet,
        needs: &RequiredImages,
        to: ImagePlace<'_>,
    ) -> anyhow::Result<CollectedImages> {
        let wanted = WantedImages::new(needs, &set.additional, &set.blocked, &set.platforms);
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
            remark(&format!(
                "notice: simple signatures are not carried, though registries.d of this host names a place of them for {scopes}"
            ));
        }
        let mut report = self.copy(&images, None, to).await?;
        let sparse = self.sparse_images(&images, &report.missing).await;
        missing.append(&mut report.missing);
        if !sparse.is_empty() {
            images.retain(|image| !sparse.iter().any(|sparse| sparse.image == image.image));
            missing.retain(|missing| !sparse.iter().any(|sparse| missing.is(sparse)));
            report.add(self.copy(&sparse, None, to).await?);
            images.extend(sparse);
        }
        report.missing.extend(missing);
        name_uses(&mut report.missing, needs);
        Ok(CollectedImages { images, report })
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
            if !has_failed || image.attached || image.is_sparse() {
                continue;
            }
            // Why it cannot be copied is said already.
            let found = parts_that_exist(&self.access.reader.sources, image).await;
            if let Ok(Some(parts)) = found {
                remark(&format!(
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
    pub(crate) async fn list_referrers(
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

    /// Copies images from a folder, or from where their references name them.
    pub(crate) async fn copy(
        &self,
        images: &[CarriedImage],
        from: Option<&Path>,
        to: ImagePlace<'_>,
    ) -> anyhow::Result<CopyReport> {
        let copier = ImageCopier {
            skopeo: &self.skopeo,
            sources: &self.access.target.sources,
            origins: &self.access.reader.sources,
            from,
            to,
            dry_run: self.dry_run,
            rechecks: self.rechecks,
            say: &say,
            note: &say_command,
        };
        let report = copier.copy(images).await;
        let what = if self.dry_run { "to copy" } else { "copied" };
        let failed = report.missing.len();
        let mut line = format!(
            "{} images: {} {what}, {} there already, {failed} failed",
            images.len(),
            report.copied,
            report.kept
        );
        if let Some(count) = report.bytes {
            line += &format!("; {} to move", bytes(count));
        }
        print_done(&line)?;
        Ok(report)
    }
}

/// Says a command, unless remarks are hidden. It is one line, so that it can be repeated.
fn say_command(line: &str) {
    if is_shown(Output::Remarks) {
        say(line);
    }
}
