use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use ::sync::{Copier, FetchSettings, HttpOrigin, HttpSettings, Origin, StoreOrigin, SyncOptions, SyncReport};
use anyhow::Context;
use store::StorePlace;

use crate::{
    cli::{ReportArgs, S3Args, SyncArgs, SyncOrigin},
    exit::Exit,
    output,
    stores::Access,
    wiring,
};

pub(crate) async fn run(args: SyncArgs) -> anyhow::Result<Exit> {
    let places = [Some(&args.to), args.from.store()];
    args.s3.check_used(places.into_iter().flatten())?;
    let origin = origin(&args.from, &args.s3, &args.ca_file, args.header_file.as_deref()).await?;
    let options = SyncOptions {
        source: args.from.to_string(),
        rollback: args.allow.allow_rollback,
        diverged: args.allow.allow_diverged,
        // Copying from a folder costs less than compressing.
        rebuild: !args.fetch_all && !matches!(args.from.store(), Some(StorePlace::Folder(_))),
        recheck: args.recheck,
        trust: wiring::trust(&args.trust)?,
        ..SyncOptions::default()
    };
    let copier = Copier::new(origin, args.s3.open(&args.to, Access::Create).await?, options);
    let Some(interval) = args.watch else {
        return once(&args, &copier).await;
    };
    let stop = server::stop_on_signals()?;
    let watching = async {
        loop {
            // The next round may find the origin again, so an error does not end the watch.
            if let Err(error) = round(&args, &copier).await {
                tracing::error!(error = model::text::chain(error.as_ref()), "cannot sync");
            }
            tokio::time::sleep(publish::jittered(interval)).await;
        }
    };
    // A copy in progress is abandoned, and the old state stays published.
    stop.run_until_cancelled(watching).await;
    Ok(Exit::Success)
}

async fn once(args: &SyncArgs, copier: &Copier) -> anyhow::Result<Exit> {
    let progress = output::progress::show_copy(copier.progress(), args.report.json);
    let reports = round(args, copier).await;
    progress.finish();
    print(&reports?, args.report)
}

/// Copies all catalogs once. The origin's list is read again in each round.
async fn round(args: &SyncArgs, copier: &Copier) -> anyhow::Result<Vec<SyncReport>> {
    match args.names.as_slice() {
        [] => copier
            .copy_listed()
            .await
            .context("cannot list the catalogs of the origin"),
        names => Ok(copier.copy_all(names).await),
    }
}

/// Prints the reports of a sync or an import, and returns the exit code for them.
pub(super) fn print(reports: &[SyncReport], args: ReportArgs) -> anyhow::Result<Exit> {
    output::print_copies(reports, args.json)?;
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
        SyncOrigin::Store(place) => return Ok(Arc::new(StoreOrigin(s3.open(place, Access::Read).await?))),
        SyncOrigin::Http(address) => address.clone(),
    };
    let settings = HttpSettings {
        headers: header_file
            .map(::sync::read_header_file)
            .transpose()?
            .unwrap_or_default(),
        http: FetchSettings {
            ca_files: ca_files.to_vec(),
            ..FetchSettings::default()
        },
    };
    Ok(Arc::new(HttpOrigin::new(address, settings)?))
}
