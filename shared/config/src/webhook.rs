use std::{collections::BTreeSet, path::PathBuf};

use layout::CatalogName;
use poll::Catalog;
use serde::Deserialize;
use serde_json::Value;

use super::Problems;

/// Where events go by HTTP, as configured. Whether its URL and its secret can be used is for the one to say who uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// The place where it is configured, for problems.
    pub place: String,
    /// Its name: unique, and what it was told is remembered under it.
    pub name: String,
    /// Where events are sent.
    pub url: String,
    /// Where the secrets are that events are signed with.
    pub secret: Secret,
    /// The catalogs that it wants to be told of; all, if there are none.
    pub catalogs: Vec<CatalogName>,
}

/// Where secrets are kept; never the secrets themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Secret {
    /// In a file, one on each line.
    File(PathBuf),
    /// In an environment variable.
    Variable(String),
}

/// `notify` of `catalogs.yaml`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Notify {
    /// What events call this mirror: a URI reference.
    source: Option<String>,
    #[serde(default)]
    webhooks: Vec<Value>,
}

/// What all documents say together.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    pub(crate) source: Option<String>,
    pub(crate) webhooks: Vec<Webhook>,
}

/// One webhook, not checked yet, so that all its problems can be told.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    name: String,
    url: String,
    secret_file: Option<PathBuf>,
    secret_env: Option<String>,
    #[serde(default)]
    catalogs: Vec<String>,
}

impl Merged {
    pub(crate) fn add(&mut self, notify: Notify, place: &str, problems: &mut Problems) {
        if notify.source.as_deref() == Some("") {
            problems.add(format!("{place}, notify"), "source may not be empty");
        }
        self.source = notify.source.or(self.source.take());
        for (at, entry) in notify.webhooks.into_iter().enumerate() {
            let place = entry_place(place, at, &entry);
            match serde_json::from_value::<Entry>(entry) {
                Err(error) => problems.add(place, error),
                Ok(entry) => self.webhooks.extend(entry.check(place, problems)),
            }
        }
    }

    /// What can only be judged when everything has been read.
    pub(crate) fn check(&self, catalogs: &[Catalog], problems: &mut Problems) {
        let known: BTreeSet<_> = catalogs.iter().map(|catalog| &catalog.name).collect();
        let mut names = BTreeSet::new();
        for webhook in &self.webhooks {
            if !names.insert(&webhook.name) {
                problems.add(&webhook.place, "another webhook has the same name");
            }
            for unknown in webhook.catalogs.iter().filter(|name| !known.contains(name)) {
                problems.add(&webhook.place, format!("the catalog {unknown} is not configured"));
            }
        }
    }
}

fn entry_place(place: &str, at: usize, entry: &Value) -> String {
    match entry.get("name").and_then(Value::as_str) {
        Some(name) => format!("{place}, webhook {name}"),
        None => format!("{place}, webhook number {}", at + 1),
    }
}

impl Entry {
    fn check(self, place: String, problems: &mut Problems) -> Option<Webhook> {
        if self.name.is_empty() {
            problems.add(&place, "name may not be empty");
        }
        let catalogs = self.catalogs.iter().map(|name| name.parse());
        let catalogs = catalogs.filter_map(|name| name.map_err(|error| problems.add(&place, error)).ok());
        let catalogs = catalogs.collect();
        let secret = match (self.secret_file, self.secret_env) {
            (Some(path), None) => Secret::File(path),
            (None, Some(name)) => Secret::Variable(name),
            _ => {
                problems.add(&place, "one of secretFile and secretEnv must be set");
                return None;
            }
        };
        Some(Webhook {
            place,
            name: self.name,
            url: self.url,
            secret,
            catalogs,
        })
    }
}
