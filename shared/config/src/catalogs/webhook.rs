use std::collections::BTreeSet;

use model::CatalogName;
use notify::{SecretLocation, Webhook, WebhookError};
use publish::Catalog;

use super::{ConfigProblems, section::Section};

/// A receiver of change events over HTTP, from `notify.webhooks` of `catalogs.yaml`. It never holds the secret itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookConfig {
    /// Place where it is configured, for problems.
    pub place: String,
    /// Unique name. The last delivered event is stored under it.
    pub name: String,
    /// URL to which events are sent.
    pub url: String,
    /// File or environment variable with the secrets that sign the requests.
    pub secret: SecretLocation,
    /// Catalogs whose events are sent. Default: all.
    pub catalogs: Vec<CatalogName>,
}

impl WebhookConfig {
    /// Returns the receiver.
    ///
    /// # Errors
    /// All problems of its URL and of its secret, which is read here.
    pub fn receiver(&self) -> Result<Webhook, Vec<WebhookError>> {
        let webhook = Webhook::new(&self.name, &self.url, self.secret.clone())?;
        Ok(webhook.only(self.catalogs.iter().cloned()))
    }
}

/// Entries of `notify` of all files together, in the order of the files.
#[derive(Debug, Default)]
pub(crate) struct NotifySettings {
    /// The `source` of events, a URI reference.
    pub(crate) source: Option<String>,
    pub(crate) webhooks: Vec<WebhookConfig>,
}

impl NotifySettings {
    pub(crate) fn add(&mut self, mut section: Section<'_>) {
        let source: Option<String> = section.field("source");
        if source.as_deref() == Some("") {
            section.problem("source is empty");
        }
        self.source = source.or(self.source.take());
        section.sections("webhooks", "webhook", |webhook| self.webhooks.extend(read(webhook)));
        section.finish();
    }

    /// Checks names, catalogs, URLs and secrets, once all files have been read.
    pub(crate) fn check(&self, catalogs: &[Catalog], problems: &mut ConfigProblems) {
        let known: BTreeSet<_> = catalogs.iter().map(|catalog| &catalog.name).collect();
        let mut names = BTreeSet::new();
        for webhook in &self.webhooks {
            if !names.insert(&webhook.name) {
                problems.add(&webhook.place, "another webhook has the same name");
            }
            for unknown in webhook.catalogs.iter().filter(|name| !known.contains(name)) {
                problems.add(&webhook.place, format!("the catalog {unknown} is not configured"));
            }
            // The secret is read here and dropped, so that a missing one shows at the start and not at the first event.
            for problem in webhook.receiver().err().unwrap_or_default() {
                problems.add(&webhook.place, problem);
            }
        }
    }
}

fn read(mut section: Section<'_>) -> Option<WebhookConfig> {
    let place = section.place().to_owned();
    let name: Option<String> = section.required("name");
    if name.as_deref() == Some("") {
        section.problem("name is empty");
    }
    let url = section.required("url");
    let catalogs: Vec<String> = section.field("catalogs").unwrap_or_default();
    let catalogs = catalogs
        .iter()
        .filter_map(|name| section.problems().ok(&place, name.parse()));
    let catalogs = catalogs.collect();
    let secret = match (section.field("secretFile"), section.field("secretEnv")) {
        (Some(path), None) => Some(SecretLocation::File(path)),
        (None, Some(name)) => Some(SecretLocation::Variable(name)),
        _ => {
            section.problem("set one of secretFile and secretEnv");
            None
        }
    };
    section.finish();
    Some(WebhookConfig {
        place,
        name: name?,
        url: url?,
        secret: secret?,
        catalogs,
    })
}
