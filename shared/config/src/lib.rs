#![doc = include_str!("../README.md")]

mod cluster_catalog;
mod file;
mod keys;
mod limits;
mod pair;
mod problems;
mod reader;
mod retention;
mod server;
mod signatures;
mod webhook;

use std::{collections::BTreeMap, time::Duration};

use keep::GcSettings;
use poll::Catalog;

pub use file::Registries;
pub use keys::Keys;
pub use pair::Pair;
pub use problems::Problems;
pub use reader::Reader;
pub use server::{Server, ServerLimits};
pub use webhook::{Secret, Webhook};

/// The whole configuration.
#[derive(Debug, Default)]
pub struct Config {
    /// Where the objects live, as the texts say it: a folder or `s3://BUCKET/PREFIX`.
    pub store: Option<String>,
    /// What is mirrored, in the order of the names.
    pub catalogs: Vec<Catalog>,
    /// How registries are reached, and what bounds an image.
    pub images: image::Settings,
    /// What no catalog may exceed; [`Self::images`] has its part of them already.
    pub limits: poll::Limits,
    /// Who is told of changes by HTTP.
    pub webhooks: Vec<Webhook>,
    /// How the mirror is served.
    pub server: Server,
    /// What events call this mirror, if the texts say.
    pub event_source: Option<String>,
    /// What is kept besides what is published; nothing is ever removed without it.
    pub retention: Option<GcSettings>,
    /// The keys that sign what is published, and those that are trusted.
    pub keys: Keys,
}

/// How registries are reached.
fn images(registries: Registries, limits: image::Limits, problems: &mut Problems) -> image::Settings {
    let mut settings = image::Settings {
        user_agent: user_agent(),
        limits,
        ..image::Settings::default()
    };
    settings.auth_files = registries.auth_files;
    settings.ca_files = registries.ca_files;
    settings.plain_http = registries.plain_http;
    settings.internal_hosts = registries.internal_hosts;
    if let Some(text) = registries.platform {
        match platform(&text) {
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
