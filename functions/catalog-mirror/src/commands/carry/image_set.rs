//! The ImageSetConfiguration of a carry: what is carried of it, and what is left to oc-mirror.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use ::carry::{CatalogRepository, ManifestTarget, check_names};
use ::compose::{AdditionalImage, BlockedImages, ComposeFile, ImageSetEntry};
use anyhow::Context;
use clap::Args;
use publish::{Catalog, CatalogSource, ComposedSource, ValidationMode};
use serde_json::{Map, Value, json};
use terminal::say;

use crate::compositions;

/// Options of a step that reads an ImageSetConfiguration.
#[derive(Debug, Args)]
pub(super) struct ImageSetArgs {
    /// Publish catalogs even if many of their packages are gone.
    #[arg(long)]
    pub(super) force: bool,
    /// Write an ImageSetConfiguration with the sections that are left to oc-mirror v2: platform
    /// and helm.
    #[arg(long, value_name = "FILE")]
    pub(super) rest: Option<PathBuf>,
    /// ImageSetConfiguration of oc-mirror v2.
    #[arg(value_name = "ISC")]
    pub(super) file: PathBuf,
}

/// Catalogs and images of an ImageSetConfiguration.
pub(super) struct CarriedSet {
    pub(super) catalogs: Vec<Catalog>,
    pub(super) blocked: BlockedImages,
    pub(super) additional: Vec<AdditionalImage>,
    /// Platforms of the images of each catalog, empty for all.
    pub(super) platforms: BTreeMap<String, BTreeSet<String>>,
    /// Publishes catalogs whatever is gone.
    pub(super) force: bool,
    /// Repository of the first catalog in the registry of the site.
    pub(super) first_repository: String,
    /// Sections that are left to oc-mirror, in words.
    rest: String,
    /// Place of the ImageSetConfiguration of the rest, and its text.
    rest_file: Option<(PathBuf, String)>,
}

impl CarriedSet {
    /// Reads the file. Names that no manifest can have are refused before anything is copied.
    pub(super) fn read(args: &ImageSetArgs) -> anyhow::Result<Self> {
        let path = &args.file;
        let place = || path.display().to_string();
        let ComposeFile::ImageSet(image_set) = compositions::read(path)? else {
            anyhow::bail!("{} is no ImageSetConfiguration", place());
        };
        if !image_set.ignored.is_empty() {
            let ignored = image_set.ignored.join(", ");
            say(&format!("notice: not used: {ignored}"));
        }
        check_targets(&image_set.entries).with_context(place)?;
        let first = image_set.entries.first();
        let first = first.with_context(|| format!("{}: mirror.operators has no entry", place()))?;
        let repository = first.target.rsplit_once(':');
        let first_repository = repository.map_or(first.target.as_str(), |(path, _)| path);
        let first_repository = first_repository.to_owned();

        let folder = path.parent().unwrap_or(Path::new(""));
        let mut platforms = BTreeMap::new();
        let mut catalogs = Vec::new();
        for entry in image_set.entries {
            let composed = ComposedSource::new(entry.composition, folder);
            let mut composed = composed.with_context(place)?;
            composed.target = Some(entry.target);
            platforms.insert(entry.name.to_string(), entry.platforms);
            catalogs.push(Catalog {
                // A bundle that breaks a rule is left out at the registry. It must not cost the
                // catalog.
                validation: ValidationMode::Warn,
                ..Catalog::new(entry.name, CatalogSource::Composed(Box::new(composed)))
            });
        }
        let names: Vec<&str> = image_set.rest.keys().copied().collect();
        let rest = names.join(" and ");
        let mut rest_file = None;
        if let Some(path) = args.rest.clone().filter(|_| !rest.is_empty()) {
            let mut mirror = Map::new();
            for (name, section) in &image_set.rest {
                mirror.insert((*name).to_owned(), section.clone());
            }
            rest_file = Some((path, rest_text(&mirror)?));
        }
        Ok(Self {
            catalogs,
            blocked: image_set.blocked,
            additional: image_set.additional,
            platforms,
            force: args.force,
            first_repository,
            rest,
            rest_file,
        })
    }

    /// Returns true if indexes may be copied without some of their images.
    pub(super) fn is_sparse(&self) -> bool {
        let of_catalogs = self.platforms.values();
        let of_images = self.additional.iter().map(|image| &image.platforms);
        of_catalogs
            .chain(of_images)
            .any(|platforms| !platforms.is_empty())
    }

    /// Writes what is left to oc-mirror, if a place for it is named, and says what it is.
    pub(super) fn end(&self) -> anyhow::Result<()> {
        if self.rest.is_empty() {
            return Ok(());
        }
        let rest = &self.rest;
        match &self.rest_file {
            Some((path, text)) => {
                let written = fs::write(path, text);
                written.with_context(|| format!("cannot write {}", path.display()))?;
                say(&format!(
                    "left to oc-mirror: {rest}, as {} says it",
                    path.display()
                ));
            }
            None => say(&format!(
                "left to oc-mirror: {rest}; --rest FILE writes an ImageSetConfiguration of it"
            )),
        }
        Ok(())
    }
}

fn rest_text(mirror: &Map<String, Value>) -> anyhow::Result<String> {
    let document = json!({
        "apiVersion": "mirror.openshift.io/v2alpha1",
        "kind": "ImageSetConfiguration",
        "mirror": mirror,
    });
    Ok(::carry::yaml(&[document])?)
}

/// Refuses catalogs whose manifests would have too long names, or the same ones.
fn check_targets(entries: &[ImageSetEntry]) -> anyhow::Result<()> {
    let mut targets = Vec::new();
    for entry in entries {
        let target = &entry.target;
        let names = CatalogRepository::of_target(target)
            .with_context(|| format!("catalog {}: {target} names no repository", entry.name))?;
        let target = ManifestTarget::new(target.clone(), &entry.name, &names, None)?;
        targets.push(target);
    }
    Ok(check_names(&targets)?)
}
