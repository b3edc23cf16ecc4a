//! `compose:` of a catalog: a composition, or the entries of an ImageSetConfiguration.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use compose::{ComposeFile, Composition};
use model::CatalogName;
use publish::{Catalog, CatalogSource, ComposedSource, ComposedSourceError};
use serde::Deserialize;
use serde_json::Value;

use super::placed::PlacedCatalog;
use super::section::{Section, deserialize};
use crate::problems::Problems;

/// Reference to an ImageSetConfiguration. Its relative paths start at its own folder.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ImageSetFile {
    image_set: PathBuf,
    /// Name of one entry. Default: all entries, or the only one if the catalog has a name.
    entry: Option<String>,
}

/// Reads the value of `compose`. An ImageSetConfiguration gives one catalog for each entry, unless
/// `name` takes one.
pub(crate) fn read(
    name: Option<CatalogName>,
    value: Value,
    section: &Section,
) -> Vec<(CatalogName, CatalogSource)> {
    let place = section.place_of("compose");
    let problems = &section.problems;
    if value.get("imageSet").is_some() {
        let Some(file) = deserialize::<ImageSetFile>(value, &place, problems) else {
            return Vec::new();
        };
        let catalogs = problems.ok(&place, image_set(name.as_ref(), &file));
        return catalogs.unwrap_or_default();
    }
    let composition = deserialize::<Composition>(value, &place, problems);
    let Some(name) = name else {
        problems.add(&place, "a composition needs a name");
        return Vec::new();
    };
    let Some(composition) = composition else {
        return Vec::new();
    };
    match problems.ok(&place, source(composition, Path::new(""))) {
        Some(source) => vec![(name, source)],
        None => Vec::new(),
    }
}

fn source(composition: Composition, folder: &Path) -> Result<CatalogSource, ComposedSourceError> {
    let composed = ComposedSource::new(composition, folder)?;
    Ok(CatalogSource::Composed(Box::new(composed)))
}

fn image_set(
    name: Option<&CatalogName>,
    file: &ImageSetFile,
) -> Result<Vec<(CatalogName, CatalogSource)>, String> {
    let path = file.image_set.display();
    let text = fs::read_to_string(&file.image_set)
        .map_err(|error| format!("{path} cannot be read: {error}"))?;
    let parsed = ComposeFile::parse(&text).map_err(|error| format!("{path}: {error}"))?;
    let ComposeFile::ImageSet(image_set) = parsed else {
        return Err(format!("{path} is not an ImageSetConfiguration"));
    };
    let mut unused = image_set.unused();
    if !image_set.blocked.is_empty() {
        unused.push("blockedImages");
    }
    if !image_set.additional.is_empty() {
        unused.push("additionalImages");
    }
    if !unused.is_empty() {
        tracing::info!(file = %path, ignored = unused.join(", "), "the mirror does not use parts of an ImageSetConfiguration");
    }
    let entries = if name.is_none() && file.entry.is_none() {
        image_set.entries
    } else {
        let entry = image_set.entry(file.entry.as_deref());
        vec![entry.map_err(|error| format!("{path}: {error}"))?]
    };
    let folder = file.image_set.parent().unwrap_or(Path::new(""));
    let mut catalogs = Vec::new();
    for mut entry in entries {
        let read = entry.read_template(folder);
        read.map_err(|error| format!("{path}: {error}"))?;
        let name = name.cloned().unwrap_or(entry.name);
        let composed = ComposedSource::new(entry.composition, folder);
        let mut composed = composed.map_err(|error| format!("{path}: {name}: {error}"))?;
        composed.target = Some(entry.target);
        catalogs.push((name, CatalogSource::Composed(Box::new(composed))));
    }
    Ok(catalogs)
}

/// Connects compositions with the catalogs of the configuration: an input that names the source of
/// a catalog follows that catalog. Compositions that are made of each other are a problem.
pub(crate) fn connect(catalogs: &mut [PlacedCatalog], problems: &Problems) {
    let known: Vec<Catalog> = catalogs
        .iter()
        .map(|placed| placed.catalog.clone())
        .collect();
    for placed in catalogs.iter_mut() {
        if let CatalogSource::Composed(composed) = &mut placed.catalog.source {
            composed.share_sources(|reference| {
                let found = known.iter().find(|catalog| catalog.source.is_at(reference));
                found.map(|catalog| catalog.name.clone())
            });
        }
    }
    // Cycles are left without the catalogs that are made of no other one, and without those of
    // which none is made.
    let all = catalogs.iter().map(|placed| &placed.catalog);
    let mut left: Vec<&Catalog> = all
        .filter(|catalog| catalog.source.composed().is_some())
        .collect();
    let mut before = usize::MAX;
    while left.len() < before {
        before = left.len();
        let names: BTreeSet<&CatalogName> = left.iter().map(|catalog| &catalog.name).collect();
        let mut inputs: BTreeSet<&CatalogName> = BTreeSet::new();
        for catalog in &left {
            inputs.extend(catalog.source.inputs());
        }
        left.retain(|catalog| {
            inputs.contains(&catalog.name)
                && catalog.source.inputs().any(|input| names.contains(input))
        });
    }
    if !left.is_empty() {
        let names: Vec<&str> = left.iter().map(|catalog| catalog.name.as_str()).collect();
        let problem = format!("compositions are made of each other: {}", names.join(", "));
        problems.add("catalogs, compose", problem);
    }
}

#[cfg(test)]
mod tests {
    use publish::InputPlace;

    use super::super::tests::{check_problems, load};
    use super::*;

    const WRONG: &str = "
name: a, compose: {} => catalog a, compose: a composition needs `inputs` or `add`
name: a, compose: {input: []} => catalog a, compose, input: unknown field `input`
compose: {inputs: [{catalog: b}]} => catalog number 1, compose: a composition needs a name
name: a, source: 'dir:x', compose: {inputs: [{catalog: b}]} => one of source, compose and ring
name: a, compose: {inputs: [{catalog: b, source: 'dir:x'}]} => an input has either `catalog`
name: a, compose: {inputs: [{catalog: 'b@12'}]} => b@12: after the @ comes a content hash
name: a, compose: {inputs: [{source: b}]} => `b` names no registry
name: a, compose: {imageSet: /nowhere/isc.yaml} => /nowhere/isc.yaml cannot be read
name: a, compose: {inputs: [{catalog: a}]} => compositions are made of each other: a
";

    #[test]
    fn problems_of_compositions_name_catalog_and_cause() {
        check_problems(WRONG, |entry| format!("catalogs: [{{{entry}}}]"));
    }

    #[test]
    fn cycle_is_named_once_without_what_is_made_of_it() {
        let text = "catalogs:
- {name: a, compose: {inputs: [{catalog: x}, {catalog: c}]}}
- {name: b, compose: {inputs: [{catalog: a}]}}
- {name: c, compose: {inputs: [{catalog: b}]}}
- {name: above, compose: {inputs: [{catalog: a}]}}
";
        let problems = load(text).unwrap_err().to_string();
        assert_eq!(problems.lines().count(), 2, "{problems}");
        assert!(
            problems.ends_with("made of each other: a, b, c"),
            "{problems}"
        );
    }

    #[test]
    fn input_that_names_the_image_of_a_catalog_follows_it() {
        let text = "catalogs:
- {name: hub, source: 'quay.io/operatorhubio/catalog:latest'}
- name: team
  compose:
    inputs:
    - {catalog: 'docker://quay.io/operatorhubio/catalog:latest'}
    - {catalog: 'quay.io/operatorhubio/catalog:v2'}
    - {catalog: elsewhere}
";
        let config = load(text).unwrap();
        let composed = config.catalogs[1].source.composed().unwrap();
        let names = composed.inputs.iter().map(|input| match &input.place {
            InputPlace::Published { name, pin: None } => Some(name.as_str()),
            _ => None,
        });
        assert_eq!(
            names.collect::<Vec<_>>(),
            [Some("hub"), None, Some("elsewhere")]
        );
    }

    #[test]
    fn entries_of_an_image_set_are_catalogs_of_their_own() {
        let folder =
            std::env::temp_dir().join(format!("catalog-mirror-image-set-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("isc.yaml");
        let text = "kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
mirror:
  operators:
  - {catalog: 'quay.io/example/index:v4.18', packages: [{name: p}]}
  - {catalog: 'oci://layout', targetCatalog: mine}
";
        fs::write(&file, text).unwrap();
        let load = |entry: &str| {
            let entry = entry.replace("FILE", &file.display().to_string());
            load(&format!("catalogs: [{{{entry}}}]"))
        };
        let all = load("compose: {imageSet: 'FILE'}").unwrap();
        let names = all.catalogs.iter().map(|catalog| catalog.name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["index-v4-18", "mine"]);
        let error = load("name: team, compose: {imageSet: 'FILE'}")
            .unwrap_err()
            .to_string();
        assert!(error.contains("choose one of index-v4-18, mine"), "{error}");
        let one = load("name: team, compose: {imageSet: 'FILE', entry: mine}").unwrap();
        assert_eq!(one.catalogs[0].name.as_str(), "team");
        let layout = one.catalogs[0].source.pulled_sources()[0]
            .source
            .to_string();
        assert!(
            layout.starts_with(&format!("oci:{}/", folder.display())),
            "{layout}"
        );
        fs::remove_dir_all(&folder).unwrap();
    }
}
