use std::{path::Path, sync::Arc};

use ::carry::{
    CarriedImage, CatalogRepository, CopyCounts, ImageCopier, ImagePlace, ManifestTarget, Skopeo,
    TargetRegistry, check_names, cluster_files, list_images, replace_file,
};
use anyhow::Context;
use inspect::SourceReader;
use model::{CatalogName, Kind};
use oci::Documents;
use publish::{Catalog, Mirror, MirrorSettings, PollMetrics, SourceLimits};
use source::{Source, Sources};
use store::{Store, read_object};

use super::{ClusterArgs, CopyArgs};
use crate::reports::print_polls;
use crate::{needs, published, wiring};
use terminal::{print_line, say};

/// The parts that do the work.
pub(super) struct Tools {
    sources: Sources,
    limits: SourceLimits,
    skopeo: Skopeo,
    dry_run: bool,
}

/// Content of an ImageSetConfiguration.
pub(super) struct Collected {
    /// Catalogs that are published, also by an earlier run.
    pub(super) names: Vec<CatalogName>,
    pub(super) images: Vec<CarriedImage>,
    /// Number of catalogs and images that could not be read or copied.
    pub(super) failed: usize,
}

impl Tools {
    pub(super) async fn new(
        args: &CopyArgs,
        target: Option<&TargetRegistry>,
    ) -> anyhow::Result<Self> {
        let mut registries = args.registries.clone();
        if let Some(target) = target.filter(|target| target.is_plain) {
            registries.plain_http.push(target.host.clone());
        }
        let SourceReader { sources, limits } = wiring::sources(&registries)?;
        let http = sources.settings.http.clone();
        Ok(Self {
            skopeo: Skopeo::find(args.skopeo.clone(), http, &registries.auth_file).await?,
            sources,
            limits,
            dry_run: args.dry_run,
        })
    }

    /// Composes and publishes the catalogs, and copies the images that they need to a place.
    pub(super) async fn collect(
        &self,
        store: &Arc<dyn Store>,
        catalogs: &[Catalog],
        to: ImagePlace<'_>,
    ) -> anyhow::Result<Collected> {
        let settings = MirrorSettings::with_limits(&self.limits);
        let mirror = Mirror::new(
            self.sources.clone(),
            store.clone(),
            settings,
            PollMetrics::default(),
        );
        let progress = crate::progress::show_poll(mirror.progress(), false);
        let reports = mirror.poll_all(catalogs, false).await;
        progress.finish_and_clear();
        print_polls(&reports, false)?;
        let failed = reports
            .iter()
            .filter(|report| !report.outcome.is_success())
            .count();
        let mut names = Vec::new();
        for catalog in catalogs {
            if published::find(store, &catalog.name).await?.is_some() {
                names.push(catalog.name.clone());
            }
        }
        anyhow::ensure!(!names.is_empty(), "no catalog could be composed");
        let needs = needs::required(store, &names).await?;
        let listed =
            list_images(&self.sources, needs.images.keys().map(String::as_str), &say).await;
        let (images, unlisted) = listed;
        let uncopied = self.copy(&images, None, to).await?;
        let failed = failed + unlisted + uncopied;
        Ok(Collected {
            names,
            images,
            failed,
        })
    }

    /// Copies images from a folder, or from where their references name them. Returns the number of
    /// failures.
    pub(super) async fn copy(
        &self,
        images: &[CarriedImage],
        from: Option<&Path>,
        to: ImagePlace<'_>,
    ) -> anyhow::Result<usize> {
        let copier = ImageCopier {
            skopeo: &self.skopeo,
            sources: &self.sources,
            from,
            to,
            dry_run: self.dry_run,
            say: &say,
        };
        let what = if self.dry_run { "to copy" } else { "copied" };
        let CopyCounts {
            copied,
            kept,
            failed,
        } = copier.copy(images).await;
        let all = images.len();
        print_line(&format!(
            "{all} images: {copied} {what}, {kept} there already, {failed} failed"
        ))?;
        Ok(failed)
    }

    /// Pushes the catalogs, which come last so that clusters see no catalog before its images, and
    /// writes the manifests. Returns the number of failures.
    pub(super) async fn finish(
        &self,
        store: &Arc<dyn Store>,
        names: &[CatalogName],
        images: &[CarriedImage],
        args: &ClusterArgs,
    ) -> anyhow::Result<usize> {
        let target = &args.registry;
        let (mut targets, mut failed) = (Vec::new(), 0);
        for name in names {
            match self.push(store, name, args).await {
                Ok(pushed) => targets.push(pushed),
                Err(error) => {
                    failed += 1;
                    let error = model::text::chain(error.as_ref());
                    say(&format!("failed: catalog {name}: {error}"));
                }
            }
        }
        check_names(&targets)?;
        if target.is_plain {
            say(&TargetRegistry::plain_warning(&target.host));
        }
        for (name, text) in cluster_files(&args.namespace, &targets, images, target, &say)? {
            let path = args.manifests.join(name);
            replace_file(&path, text.as_bytes())?;
            print_line(&format!("wrote {}", path.display()))?;
        }
        Ok(failed)
    }

    async fn push(
        &self,
        store: &Arc<dyn Store>,
        name: &CatalogName,
        args: &ClusterArgs,
    ) -> anyhow::Result<ManifestTarget> {
        let state = published::state(store, name).await?;
        let snapshot = published::snapshot(&state).await?;
        let place = CatalogRepository::new(name, &state.current().source.reference);
        let image = format!("{}/{}:{}", args.registry.base, place.repository, place.tag);
        // A push is a change on purpose, so clusters poll it.
        let pushed = ManifestTarget::new(image, name, &place, Some(args.interval))?;
        let Source::Registry { reference, .. } = pushed.image.parse()? else {
            anyhow::bail!("{} is no place for an image", pushed.image);
        };
        let image = snapshot
            .image
            .as_ref()
            .context("it was published without an image")?;
        let documents = Documents::new(image.layer, image.diff_id);
        let is_same = documents.image(image.layer, image.diff_id) == *image;
        anyhow::ensure!(
            is_same,
            "another version of this program has made its image"
        );
        let layer = read_object(&**store, &image.layer.with_kind(Kind::Blob)).await?;
        let result = self.sources.push(&reference, documents, layer).await?;
        let done = if result.was_there {
            "is there already"
        } else {
            "pushed"
        };
        print_line(&format!("catalog {} {done}", pushed.image))?;
        Ok(pushed)
    }
}
