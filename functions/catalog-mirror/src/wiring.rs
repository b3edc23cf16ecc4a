//! From arguments and configuration to the parts that do the work.

use std::mem;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use config::{Config, ConfigProblems, ServerConfig};
use inspect::{BundleReader, SourceReader};
use publish::Mirror;
use source::Sources;
use store::{Store, StorePlace};
use sync::{FetchSettings, HttpMirror, Origin, SyncOrigin, VolumeFile};
use tokio::net::TcpListener;
use trust::Trust;
use upkeep::Notifier;

use crate::args::{
    Access, CatalogAccess, CatalogArgs, KeyArgs, RegistryArgs, S3Args, StoreArgs, TrustArgs,
    files_and_keys, loader,
};

/// Returns the configuration of the files and the arguments together.
pub(crate) fn config(
    store: &StoreArgs,
    args: &CatalogArgs,
    server: ServerConfig,
) -> Result<Config, ConfigProblems> {
    let mut loader = loader(args.interval, &store.config, &args.keys);
    let named = args.named_catalogs.iter().cloned();
    named.for_each(|named| loader.named_catalog(named));
    args.registries.apply(&mut loader);
    loader.config.server.extend(server);
    loader.finish()
}

/// Returns the reader of sources, from arguments alone.
pub(crate) fn sources(args: &RegistryArgs) -> anyhow::Result<SourceReader> {
    let config = source_config(&[], args)?;
    Ok(SourceReader {
        sources: Sources::new(config.images)?,
        limits: config.limits,
    })
}

/// Returns the reader of bundle images, from the files and the arguments together.
pub(crate) fn bundle_reader(access: &CatalogAccess) -> anyhow::Result<BundleReader> {
    let config = source_config(&access.store.config, &access.registries)?;
    Ok(BundleReader::new(Sources::new(config.images)?))
}

/// Returns another mirror, with connections and credentials from arguments alone.
pub(crate) fn other_mirror(args: &RegistryArgs, mirror: &str) -> anyhow::Result<HttpMirror> {
    let settings = source_config(&[], args)?.images;
    let address: sync::Address = mirror.parse()?;
    let headers = settings.header_files.read(&address.host())?;
    Ok(HttpMirror::new(address, settings.http, headers)?)
}

/// Returns the configuration of sources, from the files and the arguments together.
fn source_config(files: &[PathBuf], args: &RegistryArgs) -> Result<Config, ConfigProblems> {
    let mut loader = loader(Duration::ZERO, files, &KeyArgs::default());
    args.apply(&mut loader);
    loader.finish()
}

/// Returns the keys that verify publications, from arguments alone.
pub(crate) fn trust(args: &TrustArgs) -> Result<Option<Trust>, ConfigProblems> {
    let keys = KeyArgs {
        trust: args.clone(),
        ..KeyArgs::default()
    };
    files_and_keys(&[], &keys).map(|config| config.keys.trust())
}

/// Returns the sender of change events to the configured receivers, which it takes.
pub(crate) fn notifier(config: &mut Config, store: Arc<dyn Store>) -> Notifier {
    Notifier::new(
        store,
        mem::take(&mut config.receivers),
        config.events.clone(),
    )
}

/// Answers of the HTTP API to the server in front of it.
pub(crate) const FRONT: server::Front = server::Front {
    is_open: api::is_probe,
    refuse: api::refuse,
};

/// Returns the configured server. Its files are read here for the first time.
pub(crate) fn server(
    config: &ServerConfig,
    metrics: server::ServerMetrics,
) -> anyhow::Result<server::Server> {
    let server = server::Server::new(config.limits.clone(), metrics, Some(FRONT));
    let mut server = with_tls(server, config)?;
    if let Some(path) = &config.readers {
        let users = server.with_users(path.clone());
        server = users.with_context(|| format!("cannot use {}", path.display()))?;
    }
    Ok(server)
}

/// Adds the configured certificate, if there is one.
pub(crate) fn with_tls(
    server: server::Server,
    config: &ServerConfig,
) -> anyhow::Result<server::Server> {
    let (Some(certificate), Some(key)) = (&config.tls_cert, &config.tls_key) else {
        return Ok(server);
    };
    let tls = server.with_tls(certificate.clone(), key.clone());
    tls.with_context(|| format!("cannot use {} and {}", certificate.display(), key.display()))
}

/// Returns the mirror that polls and publishes.
pub(crate) fn mirror(
    args: &CatalogArgs,
    place: &StorePlace,
    config: &Config,
    store: Arc<dyn Store>,
    metrics: publish::PollMetrics,
) -> anyhow::Result<Mirror> {
    let images =
        Sources::new(config.images.clone()).context("cannot set up the registry client")?;
    let settings = publish::MirrorSettings {
        identity: args.identity.unwrap_or_else(|| place.wants_identity()),
        signer: config.keys.signer(),
        ..publish::MirrorSettings::with_limits(&config.limits)
    };
    Ok(Mirror::new(images, store, settings, metrics))
}

/// Binds a TCP port. An error names the option that chooses another one.
pub(crate) async fn bind(address: SocketAddr, option: &str) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).await;
    listener.with_context(|| {
        format!("cannot listen on {address} (choose another address with {option})")
    })
}

/// Opens a mirror to copy from.
pub(crate) async fn origin(
    from: &SyncOrigin,
    s3: &S3Args,
    ca_files: &[PathBuf],
    header_file: Option<&Path>,
) -> anyhow::Result<Origin> {
    let address = match from {
        SyncOrigin::Store(place) => {
            return Ok(Origin::Store(s3.open(place, Access::Read).await?));
        }
        SyncOrigin::Http(address) => address.clone(),
    };
    let headers = header_file.map(sync::read_header_file).transpose()?;
    let http = FetchSettings {
        ca_files: ca_files.to_vec(),
        ..FetchSettings::default()
    };
    let mirror = HttpMirror::new(*address, http, headers.unwrap_or_default())?;
    Ok(Origin::Mirror(Arc::new(mirror)))
}

/// Repeats work at an interval until a signal. The next round may succeed, so an error does not end
/// it.
pub(crate) async fn watch<T>(
    interval: Duration,
    failed: &'static str,
    round: impl AsyncFn() -> anyhow::Result<T>,
) -> anyhow::Result<()> {
    let stop = server::stop_on_signals()?.token;
    let watching = async {
        loop {
            if let Err(error) = round().await {
                tracing::error!(error = %model::text::Chain(error.as_ref()), "{failed}");
            }
            tokio::time::sleep(publish::Env::default().jittered(interval)).await;
        }
    };
    stop.run_until_cancelled(watching).await;
    Ok(())
}

/// Opens a volume of an archive, in a folder that others may have filled.
pub(crate) fn open_volume(path: &Path) -> anyhow::Result<VolumeFile> {
    let name = path.display().to_string();
    let file = work::open_file(path).with_context(|| format!("cannot open {name}"))?;
    Ok((name, file))
}
