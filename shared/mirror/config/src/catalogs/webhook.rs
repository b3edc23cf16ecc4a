use std::collections::BTreeSet;

use notify::{Receiver, SecretLocation, Webhook};

use super::{Config, ConfigLoader, section::Section};
use crate::problems::Problems;

/// A webhook and the place where it is configured, for problems.
#[derive(Debug)]
pub(crate) struct PlacedWebhook {
    place: String,
    webhook: Webhook,
}

/// Adds `notify` of `catalogs.yaml`. The webhooks of all files together are the receivers, in the
/// order of the files.
pub(crate) fn add(section: &mut Section, loader: &mut ConfigLoader) {
    if let Some(source) = section.field("source") {
        loader.config.events.source = source;
    }
    let webhooks = section.sections("webhooks", "webhook");
    loader
        .webhooks
        .extend(webhooks.into_iter().filter_map(read));
}

/// Checks names and catalogs, once all files have been read. Returns the receivers, which trust the
/// `caFiles` of the configuration.
pub(crate) fn receivers(
    webhooks: Vec<PlacedWebhook>,
    config: &Config,
    problems: &Problems,
) -> Vec<Box<dyn Receiver>> {
    let known: BTreeSet<_> = config
        .catalogs
        .iter()
        .map(|catalog| &catalog.name)
        .collect();
    let mut names = BTreeSet::new();
    for placed in &webhooks {
        if !names.insert(placed.webhook.name()) {
            problems.add(&placed.place, "another webhook has the same name");
        }
        for unknown in placed
            .webhook
            .catalogs
            .iter()
            .filter(|name| !known.contains(name))
        {
            problems.add(
                &placed.place,
                format!("the catalog {unknown} is not configured"),
            );
        }
    }
    let receivers = webhooks.into_iter().filter_map(|placed| {
        let webhook = placed.webhook.trusting(&config.images.http.ca_files);
        let webhook = problems.ok(&placed.place, webhook)?;
        Some(Box::new(webhook) as Box<dyn Receiver>)
    });
    receivers.collect()
}

fn read(mut section: Section) -> Option<PlacedWebhook> {
    let name: Option<String> = section.require("name").field("name");
    let url: Option<String> = section.require("url").field("url");
    let catalogs = section.parsed_list("catalogs", str::parse);
    let secret = match (section.field("secretFile"), section.field("secretEnv")) {
        (Some(path), None) => Some(SecretLocation::File(path)),
        (None, Some(name)) => Some(SecretLocation::Variable(name)),
        _ => {
            section.problem("set one of secretFile and secretEnv");
            None
        }
    };
    // The secret is read here too, so that a missing one shows at the start and not at the first
    // event.
    let webhook = match (name, url, secret) {
        (Some(name), Some(url), Some(secret)) => Webhook::new(&name, &url, secret),
        _ => Err(Vec::new()),
    };
    let webhook =
        webhook.map_err(|problems| problems.iter().for_each(|problem| section.problem(problem)));
    let place = section.place.clone();
    section.finish();
    let mut webhook = webhook.ok()?;
    webhook.catalogs.extend(catalogs);
    Some(PlacedWebhook { place, webhook })
}
