use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ::sync::{
    Copier, FetchSettings, HttpOrigin, Origin, StoreOrigin, SyncOptions, SyncOrigin, SyncReport,
};
use clap::Args;
use config::poll_interval;
use model::CatalogName;
use store::StorePlace;

use crate::args::{Access, ReportArgs, S3Args, TrustArgs};
use crate::table::{Column, Table};
use crate::wiring;
use terminal::Exit;
use terminal::{bytes, cell, millis, print_error, short};

#[derive(Debug, Args)]
pub(crate) struct SyncArgs {
    /// URL of a mirror (a CDN, `serve`, any static file server over the folder of a store), or a
    /// store.
    #[arg(value_name = "FROM")]
    pub(crate) from: SyncOrigin,
    /// Store to bring up to date: a folder, or s3://BUCKET[/PREFIX].
    #[arg(value_name = "TO")]
    pub(crate) to: StorePlace,
    /// Catalogs to copy. Default: all that FROM lists in its catalogs.json.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<CatalogName>,
    /// Keep running and check for changes at this interval, from 1s to 365d.
    #[arg(long, value_name = "INTERVAL", num_args = 0..=1, default_missing_value = "10m", value_parser = poll_interval)]
    pub(crate) watch: Option<Duration>,
    /// Fetch all.json, the index and the image too. Default: build them from the shards, unless
    /// FROM is a folder.
    #[arg(long)]
    pub(crate) fetch_all: bool,
    /// Check the objects of TO against their hashes, and replace damaged ones.
    #[arg(long)]
    pub(crate) recheck: bool,
    #[command(flatten)]
    pub(crate) allow: AllowArgs,
    /// PEM bundle of certificates to trust in addition to the system's. May be repeated.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Vec<PathBuf>,
    /// File of header fields to send to FROM, one a line, such as `Authorization: Bearer ...`.
    #[arg(long, value_name = "FILE")]
    pub(crate) header_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}

#[derive(Debug, Args)]
pub(crate) struct AllowArgs {
    /// Accept a state with a lower serial than the present one.
    #[arg(long)]
    pub(crate) allow_rollback: bool,
    /// Accept a state that does not descend from the present one.
    #[arg(long)]
    pub(crate) allow_diverged: bool,
}

impl AllowArgs {
    /// Returns options for copying from a source.
    pub(super) fn options(&self, source: String) -> SyncOptions {
        SyncOptions {
            source,
            rollback: self.allow_rollback,
            diverged: self.allow_diverged,
            ..SyncOptions::default()
        }
    }
}

pub(crate) async fn run(args: SyncArgs) -> anyhow::Result<Exit> {
    args.s3
        .check_used([&args.to].into_iter().chain(args.from.store()))?;
    let origin = origin(
        &args.from,
        &args.s3,
        &args.ca_file,
        args.header_file.as_deref(),
    )
    .await?;
    let options = SyncOptions {
        // Copying from a folder costs less than compressing.
        fetch_all: args.fetch_all || matches!(args.from.store(), Some(StorePlace::Folder(_))),
        recheck: args.recheck,
        trust: wiring::trust(&args.trust)?,
        ..args.allow.options(args.from.to_string())
    };
    let copier = Copier::new(
        origin,
        args.s3.open(&args.to, Access::Create).await?,
        options,
    );
    // The origin's list is read again in each round.
    let round = async || -> anyhow::Result<_> {
        match args.names.as_slice() {
            [] => Ok(copier.copy_listed().await?),
            names => Ok(copier.copy_all(names).await),
        }
    };
    let Some(interval) = args.watch else {
        let progress = crate::progress::show_copy(copier.progress(), args.report.json);
        let reports = round().await;
        progress.finish_and_clear();
        return print(&reports?, args.report);
    };
    // A copy in progress is abandoned, and the old state stays published.
    watch(interval, "cannot sync", round)
        .await
        .map(|()| Exit::Success)
}

/// Repeats work at an interval until a signal. The next round may succeed, so an error does not end
/// it.
pub(super) async fn watch<T>(
    interval: Duration,
    failed: &'static str,
    round: impl AsyncFn() -> anyhow::Result<T>,
) -> anyhow::Result<()> {
    let stop = server::stop_on_signals()?;
    let watching = async {
        loop {
            if let Err(error) = round().await {
                tracing::error!(error = model::text::chain(error.as_ref()), "{failed}");
            }
            tokio::time::sleep(publish::Env::default().jittered(interval)).await;
        }
    };
    stop.run_until_cancelled(watching).await;
    Ok(())
}

/// Prints the reports of a sync or an import, then fetched and repaired objects and errors. Returns
/// the exit code for them.
pub(super) fn print(reports: &[SyncReport], args: ReportArgs) -> anyhow::Result<Exit> {
    crate::table::print(reports, args.json)?;
    for report in reports.iter().filter(|_| !args.json) {
        let name = &report.catalog;
        for key in &report.not_rebuilt {
            eprintln!(
                "{name}: {key} was fetched: the compressor of this program produces other bytes"
            );
        }
        for key in &report.repaired {
            eprintln!("{name}: {key} was replaced");
        }
        if report.not_served {
            eprintln!("{name}: the origin lists it and does not serve it");
        }
        print_error(name, report.error.clone());
    }
    let outcomes = reports.iter().map(|report| report.outcome);
    Ok(Exit::of(outcomes, args.detailed_exitcode))
}

/// Opens a mirror to copy from.
pub(super) async fn origin(
    from: &SyncOrigin,
    s3: &S3Args,
    ca_files: &[PathBuf],
    header_file: Option<&Path>,
) -> anyhow::Result<Arc<dyn Origin>> {
    let address = match from {
        SyncOrigin::Store(place) => {
            return Ok(Arc::new(StoreOrigin(s3.open(place, Access::Read).await?)));
        }
        SyncOrigin::Http(address) => address.clone(),
    };
    let headers = header_file.map(::sync::read_header_file).transpose()?;
    let http = FetchSettings {
        ca_files: ca_files.to_vec(),
        ..FetchSettings::default()
    };
    Ok(Arc::new(HttpOrigin::new(
        *address,
        http,
        headers.unwrap_or_default(),
    )?))
}

impl Table for SyncReport {
    const COLUMNS: &'static [Column<Self>] = &[
        ("NAME", |report| report.catalog.to_string()),
        ("OUTCOME", |report| report.outcome.as_str().to_owned()),
        ("SERIAL", |report| cell(report.serial)),
        ("CONTENT", |report| {
            cell(report.content_hash.as_ref().map(short))
        }),
        ("MOVED", |report| bytes(report.moved.bytes)),
        ("REBUILT", |report| bytes(report.rebuilt.bytes)),
        ("KEPT", |report| bytes(report.kept.bytes)),
        ("ALL.JSON.GZ", |report| bytes(report.full_bytes)),
        ("TIME", |report| millis(report.duration)),
    ];

    const IS_FAILED: fn(&Self) -> bool = |report| !report.outcome.is_success();
}
