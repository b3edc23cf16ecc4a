use std::collections::BTreeSet;
use std::path::PathBuf;

use publish::Catalog;
use upkeep::{Receiver, SecretLocation, Webhook};

use super::section::Section;
use crate::problems::Problems;

/// A webhook and the place where it is configured, for problems.
#[derive(Debug)]
pub(crate) struct PlacedWebhook {
    place: String,
    webhook: Webhook,
}

/// Reads the webhooks of `notify` of `catalogs.yaml`. Those of all files together are the
/// receivers, in the order of the files.
pub(crate) fn read_all(section: &mut Section) -> Vec<PlacedWebhook> {
    let webhooks = section.sections("webhooks", "webhook");
    webhooks.into_iter().filter_map(read).collect()
}

/// Checks names and catalogs, once all files have been read. Returns the receivers, which trust
/// these CA files.
pub(crate) fn receivers(
    webhooks: Vec<PlacedWebhook>,
    catalogs: &[Catalog],
    ca_files: &[PathBuf],
    problems: &Problems,
) -> Vec<Box<dyn Receiver>> {
    let known: BTreeSet<_> = catalogs.iter().map(|catalog| &catalog.name).collect();
    let mut names = BTreeSet::new();
    for PlacedWebhook { place, webhook } in &webhooks {
        if !names.insert(webhook.name()) {
            problems.add(place, "another webhook has the same name");
        }
        for name in &webhook.catalogs {
            if !known.contains(name) {
                problems.add(place, format!("the catalog {name} is not configured"));
            }
        }
    }
    let mut receivers: Vec<Box<dyn Receiver>> = Vec::new();
    for PlacedWebhook { place, webhook } in webhooks {
        if let Some(webhook) = problems.ok(place, webhook.trusting(ca_files)) {
            receivers.push(Box::new(webhook));
        }
    }
    receivers
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
    let mut made = None;
    if let (Some(name), Some(url), Some(secret)) = (name, url, secret) {
        match Webhook::new(&name, &url, secret) {
            Ok(webhook) => made = Some(webhook),
            Err(problems) => problems.iter().for_each(|problem| section.problem(problem)),
        }
    }
    let place = section.place.clone();
    section.finish();
    let mut webhook = made?;
    webhook.catalogs.extend(catalogs);
    Some(PlacedWebhook { place, webhook })
}
