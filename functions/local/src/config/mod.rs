//! What to mirror: files and command line together, all problems reported at once.

mod cluster_catalog;
mod file;
mod pair;
mod problems;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use poll::Catalog;

pub(crate) use file::Registries;
pub(crate) use pair::Pair;
pub(crate) use problems::Problems;

use crate::cli::{CatalogArgs, RegistryArgs};

/// The whole configuration.
#[derive(Debug, Default)]
pub(crate) struct Config {
    pub(crate) store: Option<PathBuf>,
    pub(crate) catalogs: Vec<Catalog>,
    pub(crate) images: image::Settings,
}

impl Config {
    /// Reads the files, then adds what the command line says.
    pub(crate) fn load(args: &CatalogArgs) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let mut files = file::Merged::default();
        for path in &args.config {
            file::read(path, args.interval, &mut files, &mut problems);
        }
        files.catalogs.extend(
            args.pairs
                .iter()
                .map(|pair| ("--catalog".to_owned(), pair.catalog(args.interval))),
        );
        let catalogs = unique(files.catalogs, &mut problems);
        let images = images(files.registries, &args.registries, &mut problems);
        problems.none_or(Self {
            store: files.store,
            catalogs,
            images,
        })
    }
}

/// How registries are reached, from the files and the command line.
pub(crate) fn images(file: file::Registries, args: &RegistryArgs, problems: &mut Problems) -> image::Settings {
    let mut settings = image::Settings {
        user_agent: user_agent(),
        ..image::Settings::default()
    };
    settings.auth_files = [file.auth_files, args.auth_file.clone()].concat();
    settings.ca_files = [file.ca_files, args.ca_file.clone()].concat();
    settings.plain_http = [file.plain_http, args.plain_http.clone()].concat();
    if let Some(text) = args.platform.as_ref().or(file.platform.as_ref()) {
        match platform(text) {
            Some(platform) => settings.platform = platform,
            None => problems.add("platform", format!("{text:?} is not OS/ARCH, such as linux/amd64")),
        }
    }
    settings
}

fn platform(text: &str) -> Option<image::Platform> {
    let (os, architecture) = text
        .split_once('/')
        .filter(|(os, arch)| !os.is_empty() && !arch.is_empty())?;
    Some(image::Platform {
        os: os.to_owned(),
        architecture: architecture.to_owned(),
    })
}

fn user_agent() -> String {
    concat!("catalog-mirror/", env!("CARGO_PKG_VERSION")).to_owned()
}

fn unique(catalogs: Vec<(String, Catalog)>, problems: &mut Problems) -> Vec<Catalog> {
    let mut by_name: BTreeMap<_, (String, Catalog)> = BTreeMap::new();
    for (place, catalog) in catalogs {
        match by_name.get(&catalog.name) {
            Some((first, _)) => problems.add(
                &place,
                format!("the catalog {} is configured in {first} already", catalog.name),
            ),
            None => {
                by_name.insert(catalog.name.clone(), (place, catalog));
            }
        }
    }
    by_name.into_values().map(|(_, catalog)| catalog).collect()
}

/// A poll more often than that would only annoy the registry.
const INTERVAL_MIN: Duration = Duration::from_secs(1);

fn checked_interval(interval: Duration) -> Result<Duration, String> {
    if interval < INTERVAL_MIN {
        return Err(format!(
            "an interval of {} is too short, {} is the least",
            humantime::format_duration(interval),
            humantime::format_duration(INTERVAL_MIN)
        ));
    }
    Ok(interval)
}
