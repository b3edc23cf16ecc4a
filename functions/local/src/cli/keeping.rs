//! The arguments of the commands that keep a store sound and clean.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use keep::GcSettings;
use layout::CatalogName;

use super::{FromPlace, StoreArgs};

const REPAIR: &str = "Repair";

#[derive(Debug, Args)]
pub(crate) struct Verify {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Fetch what is missing or damaged from this mirror: its URL, or a store.
    #[arg(long, help_heading = REPAIR, value_name = "FROM", value_parser = FromPlace::parser())]
    pub(crate) repair_from: Option<FromPlace>,
    /// A bundle of certificates to trust besides the system's. May be repeated.
    #[arg(long, help_heading = REPAIR, value_name = "FILE", requires = "repair_from")]
    pub(crate) ca_file: Vec<PathBuf>,
    /// A file of header fields to send to FROM, one a line, such as `Authorization: Bearer ...`.
    #[arg(long, help_heading = REPAIR, value_name = "FILE", requires = "repair_from")]
    pub(crate) header_file: Option<PathBuf>,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Verify only these catalogs.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<CatalogName>,
}

#[derive(Debug, Args)]
pub(crate) struct Gc {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// A configuration whose `retention` and `store` count where the command line says nothing. May be repeated.
    #[arg(long, env = "CATALOG_MIRROR_CONFIG", value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
    /// How many earlier publications of each catalog to keep. Default: all that are remembered, 16.
    #[arg(long, value_name = "N")]
    pub(crate) keep_generations: Option<usize>,
    /// For how many days to keep one after it was replaced. Default: 30.
    #[arg(long, value_name = "D")]
    pub(crate) keep_days: Option<u64>,
    /// How old what nothing names must be to be removed, and how long what was replaced is kept in any case.
    /// Default: 24h.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) grace: Option<Duration>,
    /// Remove nothing and say what would be.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Gc {
    /// What is said here wins over what is configured.
    pub(crate) fn settings(&self, configured: &GcSettings) -> GcSettings {
        GcSettings {
            generations: self.keep_generations.unwrap_or(configured.generations),
            max_age: self.keep_days.map_or(configured.max_age, days),
            grace: self.grace.unwrap_or(configured.grace),
            dry_run: self.dry_run,
        }
    }
}

const fn days(count: u64) -> Duration {
    Duration::from_secs(count.saturating_mul(24 * 3600))
}
