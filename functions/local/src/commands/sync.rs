use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use ::sync::{Copier, HttpOrigin, HttpSettings, Origin, Report, Settings, StoreOrigin};
use anyhow::Context;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use layout::Outcome;

use crate::{
    cli::{FromPlace, S3Args, SyncArgs},
    exit::Exit,
    output, server,
    stores::StorePlace,
    wiring,
};

pub(crate) async fn run(args: SyncArgs) -> anyhow::Result<Exit> {
    let places = [Some(&args.to), args.from.store()];
    args.s3.suits(places.into_iter().flatten())?;
    let origin = origin(&args.from, &args.s3, &args.ca_file, args.header_file.as_deref()).await?;
    let settings = Settings {
        source: args.from.to_string(),
        allow: (&args.allow).into(),
        rebuild: !args.fetch_all && !matches!(args.from.store(), Some(StorePlace::Folder(_))),
        recheck: args.recheck,
        trust: wiring::trust(&args.trust)?,
        ..Settings::default()
    };
    let copier = Copier::new(origin.clone(), args.to.open(&args.s3).await?, settings);
    let Some(interval) = args.watch else {
        return once(&args, &*origin, &copier).await;
    };
    let stop = server::stop_on_signals()?;
    let watching = async {
        loop {
            if let Err(error) = round(&args, &*origin, &copier).await {
                tracing::error!(error = telemetry::chain(error.as_ref()), "sync");
            }
            tokio::time::sleep(::poll::jittered(interval)).await;
        }
    };
    // A copy under way is abandoned, which leaves the old state served.
    stop.run_until_cancelled(watching).await;
    Ok(Exit::Fine)
}

async fn once(args: &SyncArgs, origin: &dyn Origin, copier: &Copier) -> anyhow::Result<Exit> {
    let progress = output::progress::show_copy(copier.progress(), args.json);
    let reports = round(args, origin, copier).await;
    progress.finish();
    print(&reports?, args.json)
}

/// One look at all catalogs; the list is read again each time.
async fn round(args: &SyncArgs, origin: &dyn Origin, copier: &Copier) -> anyhow::Result<Vec<Report>> {
    let names = match args.names.as_slice() {
        [] => ::sync::names(origin)
            .await
            .context("cannot list the catalogs of the origin")?,
        names => names.to_vec(),
    };
    Ok(copier.copy_all(&names).await)
}

pub(super) fn print(reports: &[Report], json: bool) -> anyhow::Result<Exit> {
    if json {
        output::copies::json(reports)?;
    } else {
        output::copies::table(reports)?;
    }
    Ok(if reports.iter().any(|report| !report.outcome.is_success()) {
        Exit::Failed
    } else if reports.iter().any(|report| report.outcome == Outcome::Published) {
        Exit::Changed
    } else {
        Exit::Fine
    })
}

pub(super) async fn origin(
    from: &FromPlace,
    s3: &S3Args,
    ca_files: &[PathBuf],
    header_file: Option<&Path>,
) -> anyhow::Result<Arc<dyn Origin>> {
    let address = match from {
        FromPlace::Store(place) => return Ok(Arc::new(StoreOrigin(place.open_to_read(s3).await?))),
        FromPlace::Http(address) => address.clone(),
    };
    let settings = HttpSettings {
        ca_files: ca_files.to_vec(),
        fields: header_file.map(fields).transpose()?.unwrap_or_default(),
        ..HttpSettings::default()
    };
    Ok(Arc::new(HttpOrigin::new(address, settings)?))
}

/// Its content is secret, so no message repeats it.
fn fields(path: &Path) -> anyhow::Result<HeaderMap> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut fields = HeaderMap::new();
    for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
        let wrong = || format!("line {number} of {} is no header field", path.display());
        let (name, value) = line.split_once(':').with_context(wrong)?;
        let name = HeaderName::from_bytes(name.trim().as_bytes()).with_context(wrong)?;
        let mut value = HeaderValue::from_str(value.trim()).with_context(wrong)?;
        value.set_sensitive(true);
        fields.append(name, value);
    }
    Ok(fields)
}

impl FromPlace {
    pub(super) const fn store(&self) -> Option<&StorePlace> {
        match self {
            Self::Store(place) => Some(place),
            Self::Http(_) => None,
        }
    }
}
