//! Builds the mirror from `catalogs.yaml`, and caches it until the configuration changes.

use std::{sync::Arc, time::Instant};

use anyhow::Context;
use config::Config;
use futures_util::future::try_join_all;
use publish::{Catalog, Mirror, MirrorSettings, PollMetrics, SourceLimits};
use source::Sources;
use trust::{Signer, SigningKey};
use upkeep::Notifier;
use upkeep::Retention;

use crate::{ConfigDocument, ConfigLocation, Environment, Poller, Services, secrets};

/// Memory in MB below which rendering uses one worker and small buffers.
const SMALL_MEMORY_MB: u64 = 512;
/// Maximum size of the compressed shards in memory below [`SMALL_MEMORY_MB`], in bytes. Larger ones
/// go to `/tmp`.
const SMALL_SHARDS: usize = 4 << 20;

/// Reason to refuse catalogs that are pulled with credentials.
const PUBLIC_MIRROR: &str = "anyone can read this mirror: close it with AccessHashes, or publish the catalog with Public=true";

/// Mirror that one version of the configuration describes.
pub(crate) struct Site {
    pub(crate) catalogs: Vec<Catalog>,
    pub(crate) mirror: Mirror,
    pub(crate) notifier: Notifier,
    /// Earlier publications that garbage collection keeps.
    pub(crate) retention: Retention,
    /// Keys that sign publications; `None` if no key is configured.
    pub(crate) signer: Option<Signer>,
    built: Instant,
    /// Entity tag of the configuration.
    tag: Option<String>,
}

impl Site {
    fn new(poller: &Poller, config: Config, tag: Option<String>) -> anyhow::Result<Self> {
        let signer = config.keys.signer();
        let settings = mirror_settings(&poller.environment, &config.limits, signer.clone());
        let mut images = config.images;
        // Shared with the cache of secrets, so that rotated ones reach a cached site.
        images.logins = poller.secrets.logins.clone();
        if !poller.environment.publish_private {
            images.no_logins = Some(PUBLIC_MIRROR);
        }
        let sources = Sources::new(images).context("cannot set up the registry client")?;
        let mut receivers = config.receivers;
        if let Some(bus) = &poller.environment.event_bus {
            receivers.push(poller.services.bus(bus));
        }
        tracing::info!(catalogs = config.catalogs.len(), "loaded the configuration");
        Ok(Self {
            catalogs: config.catalogs,
            mirror: Mirror::new(
                sources,
                poller.store.clone(),
                settings,
                PollMetrics::default(),
            ),
            notifier: Notifier::new(poller.store.clone(), receivers, config.events),
            retention: config.retention.unwrap_or_default(),
            built: Instant::now(),
            signer,
            tag,
        })
    }
}

impl Poller {
    /// Returns the site of the current configuration: the last one, unless the configuration has
    /// changed. To know that costs one conditional request if it is an object of S3.
    ///
    /// # Errors
    /// If the configuration or a signing key cannot be read or used.
    pub(crate) async fn site(&self) -> anyhow::Result<Arc<Site>> {
        let mut last = self.site.lock().await;
        // The signing keys are old enough to be read again.
        last.take_if(|site| site.signer.is_some() && site.built.elapsed() >= secrets::LIFETIME);
        let place;
        let document;
        match &self.environment.catalogs {
            ConfigLocation::Text(text) => {
                if let Some(site) = &*last {
                    return Ok(site.clone());
                }
                place = "CATALOGS".to_owned();
                document = ConfigDocument {
                    text: text.clone(),
                    tag: None,
                };
            }
            ConfigLocation::Object { bucket, key } => {
                let known = last.as_ref().and_then(|site| site.tag.as_deref());
                let Some(changed) = self.services.catalogs(bucket, key, known).await? else {
                    return last.clone().context(
                        "the store says that the configuration is unchanged before it was read",
                    );
                };
                place = format!("s3://{bucket}/{key}");
                document = changed;
            }
        }
        // A broken configuration fails the event also if an earlier one is cached. Otherwise a warm
        // function would hide the mistake until the next cold start.
        let mut config = self.environment.config(&place, &document.text)?;
        // The configuration adds the public keys to trust.
        let keys = self.environment.signing_keys.iter();
        config.keys.signing = try_join_all(keys.map(|id| signing_key(id, &*self.services))).await?;
        let site = Arc::new(Site::new(self, config, document.tag)?);
        Ok(last.insert(site).clone())
    }
}

fn mirror_settings(
    environment: &Environment,
    limits: &SourceLimits,
    signer: Option<Signer>,
) -> MirrorSettings {
    let mut settings = MirrorSettings {
        identity: environment.identity,
        side_by_side: environment.side_by_side,
        // The queue gives each catalog an invocation of its own, and /tmp is small.
        registry_wait: None,
        resolves: environment.resolves,
        signer,
        ..MirrorSettings::with_limits(limits)
    };
    if environment
        .memory_mb
        .is_some_and(|memory| memory < SMALL_MEMORY_MB)
    {
        settings.render.workers = 1;
        settings.render.memory_bytes = SMALL_SHARDS;
    }
    settings
}

/// Reads a private key from its secret, which is a PEM text.
async fn signing_key(id: &str, services: &dyn Services) -> anyhow::Result<SigningKey> {
    let text = services
        .secret(id)
        .await
        .with_context(|| format!("cannot read the signing key {id}"))?;
    SigningKey::from_pem(text.as_bytes())
        .with_context(|| format!("cannot use the signing key {id}"))
}
