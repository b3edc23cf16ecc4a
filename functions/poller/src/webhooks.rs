//! Receivers of changes that the configuration names.

use anyhow::Context;
use config::{Config, Reader};
use notify::{Receiver, SecretPlace, Webhook, WebhookError};

/// Notes everything that keeps a webhook from being used.
pub(crate) fn check(reader: &mut Reader) {
    let mut problems = Vec::new();
    for configured in reader.webhooks() {
        let found = webhook(configured).err().unwrap_or_default().into_iter();
        problems.extend(found.map(|problem| (configured.place.clone(), problem)));
    }
    for (place, problem) in problems {
        reader.problem(&place, problem);
    }
}

/// The webhooks of a configuration that was checked.
pub(crate) fn receivers(config: &Config) -> anyhow::Result<Vec<Box<dyn Receiver>>> {
    let receiver = |configured: &config::Webhook| -> anyhow::Result<Box<dyn Receiver>> {
        let webhook = webhook(configured).map_err(|mut problems| problems.remove(0));
        Ok(Box::new(webhook.with_context(|| configured.place.clone())?))
    };
    config.webhooks.iter().map(receiver).collect()
}

fn webhook(configured: &config::Webhook) -> Result<Webhook, Vec<WebhookError>> {
    let secret = match &configured.secret {
        config::Secret::File(path) => SecretPlace::File(path.clone()),
        config::Secret::Variable(name) => SecretPlace::Variable(name.clone()),
    };
    let webhook = Webhook::new(&configured.name, &configured.url, secret)?;
    Ok(webhook.only(configured.catalogs.iter().cloned()))
}
