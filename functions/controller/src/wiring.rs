//! From flags to the parts that do the work.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::Context;
use kube::{Client, config::Kubeconfig};
use publish::{Mirror, MirrorSettings, PollMetrics};
use source::{SourceSettings, Sources};
use store::{FolderStore, Store, StorePlace};
use tokio::net::TcpListener;

use crate::{authorities::certificates, flags::Flags, poll::Puller, secrets::ClusterSecrets};

/// Folder of the default store in the cache folder. catalogd removes it there when it starts, as
/// all that it does not know.
const STORE_FOLDER: &str = "catalog-mirror";

/// Time for running answers after the program was asked to stop: catalogd's Deployment gives 10 s
/// for everything.
const DRAIN: Duration = Duration::from_secs(7);

/// Returns the location of the store.
pub(crate) fn place(flags: &Flags) -> StorePlace {
    match &flags.store {
        Some(place) => place.clone(),
        None => StorePlace::Folder(flags.cache_dir.join(STORE_FOLDER)),
    }
}

/// Returns the settings for the API server: those of a kubeconfig, else those of the environment.
pub(crate) async fn api_server(kubeconfig: Option<&Path>) -> anyhow::Result<kube::Config> {
    let Some(path) = kubeconfig else {
        return kube::Config::infer()
            .await
            .context("cannot find the API server");
    };
    let context = || format!("cannot use {} (--kubeconfig)", path.display());
    let file = Kubeconfig::read_from(path).with_context(context)?;
    kube::Config::from_custom_kubeconfig(file, &Default::default())
        .await
        .with_context(context)
}

/// Opens the store for writing. A missing folder is created: the cache folder of a pod is an empty
/// volume.
pub(crate) async fn open(place: &StorePlace) -> anyhow::Result<Arc<dyn Store>> {
    match place {
        StorePlace::Folder(path) => Ok(Arc::new(
            FolderStore::open(path).context("cannot open the store")?,
        )),
        #[cfg(feature = "s3")]
        StorePlace::S3(place) => {
            use store::s3::{S3Settings, S3Store, sdk_config};

            let settings = S3Settings {
                proxy_of: Some(source::proxy_of_environment),
                ..S3Settings::of_environment()
            };
            let config = sdk_config(&settings)
                .await
                .context("cannot open the store")?;
            Ok(Arc::new(S3Store::new(&config, place.clone(), &settings)))
        }
        #[cfg(not(feature = "s3"))]
        StorePlace::S3(place) => {
            anyhow::bail!(
                "this program was built without S3 and cannot open {place}: build it with `--features s3`"
            )
        }
    }
}

/// Returns the mirror that polls and publishes, with the settings of the cluster.
pub(crate) fn puller(
    flags: &Flags,
    client: &Client,
    place: &StorePlace,
    store: Arc<dyn Store>,
    metrics: PollMetrics,
) -> anyhow::Result<Puller> {
    let mut of_sources = SourceSettings::default();
    if let Some(folder) = &flags.pull_cas_dir {
        of_sources.http.ca_files = certificates(folder)?;
    }
    let logins = of_sources.logins.clone();
    let rules = of_sources.rules.clone();
    let sources = Sources::new(of_sources).context("cannot set up the registry client")?;
    let settings = MirrorSettings {
        identity: place.wants_identity(),
        ..MirrorSettings::default()
    };
    Ok(Puller {
        mirror: Arc::new(Mirror::new(sources, store, settings, metrics)),
        secrets: ClusterSecrets::new(client.clone(), flags.global_pull_secret.clone(), logins),
        rules,
    })
}

/// Returns a server with the limits of this program, and with TLS if there is a certificate.
pub(crate) fn server(
    flags: &Flags,
    metrics: server::ServerMetrics,
    has_tls: bool,
) -> anyhow::Result<server::Server> {
    let limits = server::ServerLimits {
        drain: DRAIN,
        ..server::ServerLimits::default()
    };
    let front = server::Front {
        is_open: api::is_probe,
        refuse: api::refuse,
    };
    let server = server::Server::new(limits, metrics, Some(front));
    match (&flags.tls_cert, &flags.tls_key) {
        (Some(certificate), Some(key)) if has_tls => {
            let tls = server.with_tls(certificate.clone(), key.clone());
            tls.with_context(|| {
                format!("cannot use {} and {}", certificate.display(), key.display())
            })
        }
        _ => Ok(server),
    }
}

/// Binds an address as Go programs write it: `HOST:PORT`, or `:PORT` for all addresses of the
/// machine.
pub(crate) async fn bind(address: &str) -> anyhow::Result<TcpListener> {
    let all = address.strip_prefix(':');
    let bound = match all {
        // IPv6 sockets take IPv4 connections too. A machine without IPv6 has none.
        Some(port) => match TcpListener::bind(format!("[::]:{port}")).await {
            Ok(listener) => Ok(listener),
            Err(_) => TcpListener::bind(format!("0.0.0.0:{port}")).await,
        },
        None => TcpListener::bind(address).await,
    };
    bound.with_context(|| format!("cannot listen on {address:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bind_takes_addresses_without_host() {
        let listener = bind(":0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(
            tokio::net::TcpStream::connect(("127.0.0.1", port))
                .await
                .is_ok()
        );
        let local = bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        assert!(local.ip().is_loopback());
        let error = format!("{:#}", bind("8443").await.unwrap_err());
        assert!(error.contains("8443"), "{error}");
    }
}
