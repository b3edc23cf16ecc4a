//! The configuration: files, manifests and flags.

mod cluster_catalog;
mod composed;
mod file;
mod hold;
mod keys;
mod limits;
mod loader;
mod placed;
mod ring;
mod section;
mod server;
mod values;
mod webhook;

pub use self::keys::ConfigKeys;
pub use self::loader::{ConfigLoader, named_catalog};
pub use self::server::{GrpcConfig, ServerConfig};
pub use self::values::{
    byte_size, days, duration, generations, host_and_port, listen_address, platform, poll_interval,
    time_limit,
};

/// A configuration without problems: `catalogs.yaml`, `ClusterCatalog` manifests and the command
/// line together.
#[derive(Debug, Default)]
pub struct Config {
    /// The store as it is written: a folder or `s3://BUCKET/PREFIX`. Default: the caller's.
    pub store: Option<String>,
    /// Catalogs to mirror, in the order of their names.
    pub catalogs: Vec<publish::Catalog>,
    /// Settings of the registry client, with the limits of an image.
    pub images: source::SourceSettings,
    /// Limits of images and catalogs. [`Self::images`] has its part of them already.
    pub limits: publish::SourceLimits,
    /// Receivers of change events over HTTP.
    pub receivers: Vec<Box<dyn upkeep::Receiver>>,
    /// Settings of the HTTP server: TLS, users and limits.
    pub server: ServerConfig,
    /// Settings of the registry API of OLM v0.
    pub grpc: GrpcConfig,
    /// Settings of change events.
    pub events: upkeep::NotifierSettings,
    /// Earlier publications to keep. Without it `serve` never removes anything.
    pub retention: Option<upkeep::Retention>,
    /// Keys that sign publications, and keys that are trusted.
    pub keys: ConfigKeys,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Config, ConfigLoader};
    use crate::ConfigProblems;

    /// Reads one text as the whole configuration.
    pub(super) fn load(text: &str) -> Result<Config, ConfigProblems> {
        let mut loader = ConfigLoader::new(Duration::from_secs(600));
        loader.text("catalogs.yaml", text);
        loader.finish()
    }

    /// Loads the wrong configurations of a table, whose rows are `PART => PROBLEM`.
    pub(super) fn check_problems(table: &str, with: impl Fn(&str) -> String) {
        for row in table.trim().lines() {
            let (part, expected) = row.split_once(" => ").unwrap();
            let problems = load(&with(part)).unwrap_err().to_string();
            assert!(problems.contains(expected), "{row}: {problems}");
        }
    }
}
