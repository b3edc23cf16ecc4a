//! What is mirrored, kept until the configuration changes.

use std::{sync::Arc, time::Instant};

use anyhow::Context;
use config::Config;
use image::{Images, Logins};
use keep::GcSettings;
use notify::Notifier;
use poll::{Catalog, Metrics, Mirror};
use seal::Signer;
use store::Store;
use tokio::sync::Mutex;

use crate::{CatalogsPlace, Document, Environment, Outside, secrets, signing, webhooks};

/// Below this much memory, in MB, rendering is kept small as well.
const SMALL_MEMORY_MB: u64 = 512;
/// What compressed shards may take in memory then, in bytes; the rest goes to `/tmp`.
const SMALL_SHARDS: usize = 4 << 20;

/// The parts that one configuration makes.
pub(crate) struct Site {
    pub(crate) catalogs: Vec<Catalog>,
    pub(crate) mirror: Mirror,
    pub(crate) notifier: Notifier,
    /// What garbage collection keeps.
    pub(crate) retention: GcSettings,
    /// Who signs what is published.
    pub(crate) signer: Option<Signer>,
    made: Instant,
}

impl Site {
    /// Keys are read again now and then, so that a warm function notices a new one.
    fn is_stale(&self) -> bool {
        self.signer.is_some() && self.made.elapsed() >= secrets::LIFETIME
    }
}

/// The configuration that was read last.
#[derive(Default)]
pub(crate) struct Configuration {
    last: Mutex<Option<(Option<String>, Arc<Site>)>>,
}

/// What a site is made of beside its configuration.
pub(crate) struct Ground<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) store: &'a Arc<dyn Store>,
    pub(crate) outside: &'a dyn Outside,
    pub(crate) logins: Logins,
}

impl Configuration {
    /// The configuration as it is now. One that is broken is an error whether or not there was a good one before:
    /// otherwise a function that happens to be warm would hide the mistake until it is not.
    pub(crate) async fn site(&self, ground: Ground<'_>) -> anyhow::Result<Arc<Site>> {
        let mut last = self.last.lock().await;
        last.take_if(|(_, site)| site.is_stale());
        let known = last.as_ref().and_then(|(tag, _)| tag.clone());
        let changed = match (&ground.environment.catalogs, &*last) {
            (CatalogsPlace::Text(_), Some((_, site))) => return Ok(site.clone()),
            (CatalogsPlace::Text(text), None) => Some(("CATALOGS".to_owned(), text.clone(), None)),
            (CatalogsPlace::Object { bucket, key }, _) => {
                let document = ground.outside.catalogs(known.as_deref()).await?;
                document.map(|Document { text, tag }| (format!("s3://{bucket}/{key}"), text, tag))
            }
        };
        if let Some((place, text, tag)) = changed {
            let config = Environment::config(&place, &text)?;
            let signer = signing::signer(ground.environment, ground.outside, &config).await?;
            let site = ground.site(config, signer)?;
            *last = Some((tag, Arc::new(site)));
        }
        let (_, site) = last
            .as_ref()
            .context("the configuration was not changed before it was read")?;
        Ok(site.clone())
    }
}

impl Ground<'_> {
    fn site(self, config: Config, signer: Option<Signer>) -> anyhow::Result<Site> {
        let mut receivers = webhooks::receivers(&config)?;
        receivers.extend(self.outside.bus());
        let usual = notify::Settings::default();
        let telling = notify::Settings {
            source: config.event_source.unwrap_or(usual.source),
            ..usual
        };
        let settings = self.settings(config.limits.catalog, signer.clone());
        let images = image::Settings {
            logins: self.logins.clone(),
            ..config.images
        };
        let images = Images::new(images).context("cannot set up the registry client")?;
        tracing::info!(catalogs = config.catalogs.len(), "configured");
        Ok(Site {
            catalogs: config.catalogs,
            mirror: Mirror::new(images, self.store.clone(), settings, Metrics::default()),
            notifier: Notifier::new(self.store.clone(), receivers, telling),
            retention: config.retention.unwrap_or_default(),
            made: Instant::now(),
            signer,
        })
    }

    fn settings(&self, limits: render::Limits, signer: Option<Signer>) -> poll::Settings {
        let environment = self.environment;
        let is_small = environment.memory_mb.is_some_and(|memory| memory < SMALL_MEMORY_MB);
        let usual = render::Settings::default();
        let render = render::Settings {
            workers: if is_small { 1 } else { usual.workers },
            memory_bytes: if is_small { SMALL_SHARDS } else { usual.memory_bytes },
            limits,
            ..usual
        };
        poll::Settings {
            render,
            identity: environment.identity,
            side_by_side: environment.side_by_side,
            resolves: environment.resolves,
            signer,
            ..poll::Settings::default()
        }
    }
}
