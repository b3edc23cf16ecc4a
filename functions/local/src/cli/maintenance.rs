//! Arguments of the commands that check and clean a store.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use model::CatalogName;
use upkeep::{GcOptions, Retention};

use super::{StoreArgs, SyncOrigin};

const REPAIR: &str = "Repair";

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Fetch missing and damaged objects from this mirror: its URL, or a store.
    #[arg(long, help_heading = REPAIR, value_name = "FROM")]
    pub(crate) repair_from: Option<SyncOrigin>,
    /// PEM bundle of certificates to trust in addition to the system's. May be repeated.
    #[arg(long, help_heading = REPAIR, value_name = "FILE", requires = "repair_from")]
    pub(crate) ca_file: Vec<PathBuf>,
    /// File of header fields to send to FROM, one a line, such as `Authorization: Bearer ...`.
    #[arg(long, help_heading = REPAIR, value_name = "FILE", requires = "repair_from")]
    pub(crate) header_file: Option<PathBuf>,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Catalogs to verify. Default: all of the store.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<CatalogName>,
}

#[derive(Debug, Args)]
#[command(after_help = "Options that are absent have the value of `retention` in the configuration, else the default.")]
pub(crate) struct GcArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Earlier publications of each catalog to keep, from 0 to 16. Default: 16.
    #[arg(long, value_name = "N", value_parser = config::generations)]
    pub(crate) keep_generations: Option<usize>,
    /// Days to keep an earlier publication after it was replaced, from 0 to 36500. Default: 30.
    #[arg(long, value_name = "D", value_parser = config::days)]
    pub(crate) keep_days: Option<u64>,
    /// Time for which a replaced state is kept in any case. Default: 24h.
    #[arg(long, value_name = "TIME", value_parser = config::duration)]
    pub(crate) grace: Option<Duration>,
    /// Take all steps at once, without the waits of two hours. Only for a store that nothing else writes or serves.
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) offline: bool,
    /// Change nothing and print how much would be condemned.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Remove a catalog also if compositions are made of it. They stay served as they are, and wait for it.
    #[arg(long)]
    pub(crate) force: bool,
    /// Catalogs to remove. One that the store does not have is an error.
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<CatalogName>,
}

impl GcArgs {
    /// Returns the options of the configuration with those of the command line, which win.
    pub(crate) fn options(&self, configured: &Retention) -> GcOptions {
        GcOptions {
            retention: Retention {
                generations: self.keep_generations.unwrap_or(configured.generations),
                max_age: self.keep_days.map_or(configured.max_age, days),
                grace: self.grace.unwrap_or(configured.grace),
            },
            offline: self.offline,
            dry_run: self.dry_run,
            ..GcOptions::default()
        }
    }
}

const fn days(count: u64) -> Duration {
    Duration::from_secs(count.saturating_mul(24 * 3600))
}
