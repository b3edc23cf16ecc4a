//! From settings to the parts that do the work.

use config::{Config, Problems, Reader};
use std::{collections::BTreeSet, sync::Arc, time::Duration};

use anyhow::Context;
use image::Images;
use layout::{CatalogName, Catalogs, Key};
use notify::{Notifier, Receiver, SecretPlace, Webhook, WebhookError};
use poll::Mirror;
use store::{Store, StoreExt};

use crate::{
    cli::{CatalogArgs, RegistryArgs},
    stores::StorePlace,
};

/// What the files and the command line say together.
pub(crate) fn config(args: &CatalogArgs) -> Result<Config, Problems> {
    let mut reader = Reader::new(args.interval);
    args.config.iter().for_each(|path| reader.file(path));
    args.pairs.iter().for_each(|pair| reader.pair(pair));
    reader.registries(args.registries.clone().into());
    for (place, problem) in webhook_problems(&reader) {
        reader.problem(&place, problem);
    }
    reader.finish()
}

/// Everything that keeps a webhook from being used.
fn webhook_problems(reader: &Reader) -> Vec<(String, WebhookError)> {
    let problems = |webhook: &config::Webhook| {
        let problems = self::webhook(webhook).err().unwrap_or_default().into_iter();
        problems
            .map(|problem| (webhook.place.clone(), problem))
            .collect::<Vec<_>>()
    };
    reader.webhooks().iter().flat_map(problems).collect()
}

fn webhook(configured: &config::Webhook) -> Result<Webhook, Vec<WebhookError>> {
    let secret = match &configured.secret {
        config::Secret::File(path) => SecretPlace::File(path.clone()),
        config::Secret::Variable(name) => SecretPlace::Variable(name.clone()),
    };
    let webhook = Webhook::new(&configured.name, &configured.url, secret)?;
    Ok(webhook.only(configured.catalogs.iter().cloned()))
}

/// Who tells the configured receivers of changes. Settled where `config` has judged them, so nothing can be wrong here
/// but a secret that has changed since.
pub(crate) fn notifier(
    config: &Config,
    store: Arc<dyn Store>,
    settings: notify::Settings,
    metrics: notify::Metrics,
) -> anyhow::Result<Notifier> {
    let mut receivers: Vec<Box<dyn Receiver>> = Vec::new();
    for configured in &config.webhooks {
        let webhook = webhook(configured).map_err(|mut problems| problems.remove(0));
        let webhook = webhook.with_context(|| configured.place.clone())?;
        receivers.push(Box::new(webhook));
    }
    let settings = notify::Settings {
        source: config.event_source.clone().unwrap_or(settings.source),
        ..settings
    };
    Ok(Notifier::new(store, receivers, settings).with_metrics(metrics))
}

/// How registries are reached where only the command line says.
pub(crate) fn images(args: RegistryArgs) -> Result<image::Settings, Problems> {
    let mut reader = Reader::new(Duration::ZERO);
    reader.registries(args.into());
    reader.finish().map(|config| config.images)
}

/// The mirror that the arguments and the configuration describe.
pub(crate) fn mirror(
    (args, place): (&CatalogArgs, &StorePlace),
    config: &Config,
    store: Arc<dyn Store>,
    metrics: poll::Metrics,
) -> anyhow::Result<Mirror> {
    let images = Images::new(config.images.clone()).context("cannot set up the registry client")?;
    let settings = poll::Settings {
        identity: args.identity.unwrap_or_else(|| place.wants_identity()),
        ..poll::Settings::default()
    };
    Ok(Mirror::new(images, store, settings, metrics))
}

/// The names of all catalogs of a store.
pub(crate) async fn names(store: &dyn Store) -> anyhow::Result<BTreeSet<CatalogName>> {
    let names = store.read_document::<Catalogs>(&Key::Catalogs).await?;
    Ok(names.map(|(names, _)| names.catalogs).unwrap_or_default())
}
