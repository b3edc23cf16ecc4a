use std::{collections::BTreeSet, path::PathBuf};

use notify::{NotifierSettings, Receiver, SecretLocation, Webhook};
use publish::Catalog;

use super::section::Section;
use crate::problems::Problems;

/// Entries of `notify` of all files together, in the order of the files.
#[derive(Debug, Default)]
pub(crate) struct NotifySettings {
    events: NotifierSettings,
    webhooks: Vec<PlacedWebhook>,
}

/// A webhook and the place where it is configured, for problems.
#[derive(Debug)]
struct PlacedWebhook {
    place: String,
    webhook: Webhook,
}

impl NotifySettings {
    pub(crate) fn add(&mut self, mut section: Section) {
        let source: Option<String> = section.field("source");
        if source.as_deref() == Some("") {
            section.problem("source is empty");
        }
        self.events.source = source.unwrap_or(std::mem::take(&mut self.events.source));
        let webhooks = section.sections("webhooks", "webhook");
        self.webhooks.extend(webhooks.into_iter().filter_map(read));
        section.finish();
    }

    /// Checks names and catalogs, once all files have been read. Returns the settings of events, and the receivers, which trust
    /// `ca_files`.
    pub(crate) fn finish(
        self,
        catalogs: &[Catalog],
        ca_files: &[PathBuf],
        problems: &Problems,
    ) -> (NotifierSettings, Vec<Box<dyn Receiver>>) {
        let known: BTreeSet<_> = catalogs.iter().map(|catalog| &catalog.name).collect();
        let mut names = BTreeSet::new();
        for placed in &self.webhooks {
            if !names.insert(placed.webhook.name()) {
                problems.add(&placed.place, "another webhook has the same name");
            }
            for unknown in placed.webhook.catalogs.iter().filter(|name| !known.contains(name)) {
                problems.add(&placed.place, format!("the catalog {unknown} is not configured"));
            }
        }
        let webhooks = self.webhooks.into_iter();
        let webhooks = webhooks.filter_map(|placed| {
            let webhook = placed.webhook.trusting(ca_files);
            let webhook = problems.ok(&placed.place, webhook)?;
            Some(Box::new(webhook) as Box<dyn Receiver>)
        });
        (self.events, webhooks.collect())
    }
}

fn read(mut section: Section) -> Option<PlacedWebhook> {
    let name: Option<String> = section.require("name").field("name");
    if name.as_deref() == Some("") {
        section.problem("name is empty");
    }
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
    // The secret is read here too, so that a missing one shows at the start and not at the first event.
    let webhook = match (name, url, secret) {
        (Some(name), Some(url), Some(secret)) => Webhook::new(&name, &url, secret),
        _ => Err(Vec::new()),
    };
    let problems = webhook.as_ref().err().into_iter().flatten();
    problems.for_each(|problem| section.problem(problem));
    let place = section.place.clone();
    section.finish();
    let mut webhook = webhook.ok()?;
    webhook.catalogs.extend(catalogs);
    Some(PlacedWebhook { place, webhook })
}
