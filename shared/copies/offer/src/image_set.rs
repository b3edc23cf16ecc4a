use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use carry::{CatalogRepository, ManifestTarget, check_names};
use compose::{AdditionalImage, BlockedImages, ImageSet, ImageSetEntry};
use publish::{Catalog, CatalogSource, ComposedSource, ValidationMode};
use serde_json::{Map, Value, json};
use terminal::remark;

/// Catalogs and images of an ImageSetConfiguration.
pub struct CarriedSet {
    /// Catalogs that are composed and published.
    pub catalogs: Vec<Catalog>,
    /// Images that must not be carried.
    pub blocked: BlockedImages,
    /// Images beside those of operators.
    pub additional: Vec<AdditionalImage>,
    /// Platforms of the images of each catalog, empty for all.
    pub platforms: BTreeMap<String, BTreeSet<String>>,
    /// Publishes catalogs whatever is gone.
    pub force: bool,
    /// Repository of the first catalog in the registry of the site.
    pub first_repository: String,
    /// Names of the sections that are left to oc-mirror.
    pub rest: Vec<String>,
    /// Place of the ImageSetConfiguration of the rest, and its text.
    rest_file: Option<(PathBuf, String)>,
}

impl CarriedSet {
    /// Plans what is carried of the configuration in the file `path`. What is left to oc-mirror is
    /// written into `rest` at the end.
    ///
    /// # Errors
    /// Refuses names that no manifest can have, before anything is copied, and a file without
    /// operators.
    pub fn new(
        image_set: ImageSet,
        path: &Path,
        rest_path: Option<PathBuf>,
        force: bool,
    ) -> anyhow::Result<Self> {
        let place = || path.display().to_string();
        if !image_set.ignored.is_empty() {
            let ignored = image_set.ignored.join(", ");
            remark(&format!("notice: not used: {ignored}"));
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
        for mut entry in image_set.entries {
            entry.read_template(folder).with_context(place)?;
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
        let names = image_set.rest.keys();
        let rest: Vec<String> = names.map(|name| (*name).to_owned()).collect();
        let mut rest_file = None;
        if let Some(path) = rest_path.filter(|_| !rest.is_empty()) {
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
            force,
            first_repository,
            rest,
            rest_file,
        })
    }

    /// Returns true if indexes may be copied without some of their images.
    pub fn is_sparse(&self) -> bool {
        let of_catalogs = self.platforms.values();
        let of_images = self.additional.iter().map(|image| &image.platforms);
        of_catalogs
            .chain(of_images)
            .any(|platforms| !platforms.is_empty())
    }

    /// Writes what is left to oc-mirror, if a place for it is named, and says what it is.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn end(&self) -> anyhow::Result<()> {
        if self.rest.is_empty() {
            return Ok(());
        }
        let rest = self.rest.join(" and ");
        match &self.rest_file {
            Some((path, text)) => {
                let written = fs::write(path, text);
                written.with_context(|| format!("cannot write {}", path.display()))?;
                remark(&format!(
                    "left to oc-mirror: {rest}, as {} says it",
                    path.display()
                ));
            }
            None => remark(&format!(
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
    Ok(carry::yaml(&[document])?)
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
