//! From settings to the parts that do the work.

use config::{Config, Problems, Reader};
use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context;
use image::Images;
use layout::{CatalogName, Catalogs, Key};
use notify::{Notifier, Receiver, SecretPlace, Webhook, WebhookError};
use poll::Mirror;
use seal::Trust;
use store::{Store, StoreExt};

use crate::{
    cli::{CatalogArgs, KeyArgs, RegistryArgs, TrustArgs},
    stores::StorePlace,
};

/// What the files and the command line say together.
pub(crate) fn config(args: &CatalogArgs) -> Result<Config, Problems> {
    config_to_serve(args, config::Server::default())
}

/// The same for a server, with what the command line says of it.
pub(crate) fn config_to_serve(args: &CatalogArgs, server: config::Server) -> Result<Config, Problems> {
    let mut reader = Reader::new(args.interval);
    reader.openpgp(&openpgp::Rpgp);
    args.config.iter().for_each(|path| reader.file(path));
    args.pairs.iter().for_each(|pair| reader.pair(pair));
    add_keys(&mut reader, &args.keys);
    reader.registries(args.registries.clone().into());
    reader.server(server);
    finish(reader)
}

/// What the files say alone.
pub(crate) fn files(paths: &[PathBuf]) -> Result<Config, Problems> {
    files_and_keys(paths, &KeyArgs::default())
}

/// The same with the keys of the command line.
pub(crate) fn files_and_keys(paths: &[PathBuf], keys: &KeyArgs) -> Result<Config, Problems> {
    let mut reader = Reader::new(Duration::ZERO);
    reader.openpgp(&openpgp::Rpgp);
    paths.iter().for_each(|path| reader.file(path));
    add_keys(&mut reader, keys);
    finish(reader)
}

/// Adds the problems that only those can tell who use what is configured.
fn finish(mut reader: Reader) -> Result<Config, Problems> {
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

/// The server that the configuration describes; its files are read here for the first time.
pub(crate) fn server(configured: &config::Server, metrics: listen::Metrics) -> anyhow::Result<listen::Server> {
    let mut server = listen::Server::new(limits(&configured.limits), metrics);
    if let (Some(certificate), Some(key)) = (&configured.tls_cert, &configured.tls_key) {
        let tls = server.with_tls(certificate.clone(), key.clone());
        server = tls.with_context(|| format!("{} and {}", certificate.display(), key.display()))?;
    }
    if let Some(path) = &configured.readers {
        let readers = server.with_readers(path.clone());
        server = readers.with_context(|| path.display().to_string())?;
    }
    Ok(server)
}

fn limits(configured: &config::ServerLimits) -> listen::Limits {
    let default = listen::Limits::default();
    listen::Limits {
        connections: configured.connections.unwrap_or(default.connections),
        streams: configured.streams.unwrap_or(default.streams),
        handshake: configured.handshake.unwrap_or(default.handshake),
        first_request: configured.first_request.unwrap_or(default.first_request),
        idle: configured.idle.unwrap_or(default.idle),
        stalled: configured.stalled.unwrap_or(default.stalled),
        drain: configured.drain.unwrap_or(default.drain),
        ..default
    }
}

/// How registries are reached where only the command line says.
pub(crate) fn images(args: RegistryArgs) -> Result<image::Settings, Problems> {
    let mut reader = Reader::new(Duration::ZERO);
    reader.registries(args.into());
    reader.finish().map(|config| config.images)
}

/// The keys to verify by where only the command line names some.
pub(crate) fn trust(args: &TrustArgs) -> Result<Option<Trust>, Problems> {
    let args = KeyArgs {
        trust: args.clone(),
        ..KeyArgs::default()
    };
    files_and_keys(&[], &args).map(|config| config.keys.trust())
}

fn add_keys(reader: &mut Reader, args: &KeyArgs) {
    let (signing, trusted) = (&args.signing_key, &args.trust.verify_key);
    signing
        .iter()
        .for_each(|file| reader.signing_key("--signing-key", file));
    trusted.iter().for_each(|file| reader.verify_key("--verify-key", file));
}

/// The mirror that the arguments and the configuration describe.
pub(crate) fn mirror(
    (args, place): (&CatalogArgs, &StorePlace),
    config: &Config,
    store: Arc<dyn Store>,
    metrics: poll::Metrics,
) -> anyhow::Result<Mirror> {
    let images = Images::new(config.images.clone()).context("cannot set up the registry client")?;
    let render = render::Settings {
        limits: config.limits.catalog,
        ..render::Settings::default()
    };
    let settings = poll::Settings {
        render,
        identity: args.identity.unwrap_or_else(|| place.wants_identity()),
        signer: config.keys.signer(),
        ..poll::Settings::default()
    };
    Ok(Mirror::new(images, store, settings, metrics))
}

/// The names of all catalogs of a store.
pub(crate) async fn names(store: &dyn Store) -> anyhow::Result<BTreeSet<CatalogName>> {
    let names = store.read_document::<Catalogs>(&Key::Catalogs).await?;
    Ok(names.map(|(names, _)| names.catalogs).unwrap_or_default())
}
