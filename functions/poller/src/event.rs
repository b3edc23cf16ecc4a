//! The events that the function understands, told apart by their shape.

use std::fmt;

use aws_lambda_events::sqs::{SqsEvent, SqsMessage};
use layout::CatalogName;
use serde::Deserialize;
use serde_json::{Map, Value};

/// What the function is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Poll what is due.
    Schedule,
    /// Publish the catalogs of these messages.
    Queue(Vec<Record>),
    /// What a person asks for.
    Manual(Manual),
}

/// One message of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its id, to answer with.
    pub id: String,
    /// The catalog that it names, or why it names none.
    pub catalog: Result<CatalogName, String>,
}

/// A manual event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Manual {
    /// What to do.
    #[serde(default)]
    pub action: Action,
    /// With which catalogs; all without any. Garbage collection is always of all.
    #[serde(default)]
    pub catalogs: Vec<CatalogName>,
    /// For a poll: pull although the digest is known, publish although packages are gone.
    #[serde(default)]
    pub force: bool,
    /// For a rollback: the content hash, or its first digits.
    pub content_hash: Option<String>,
    /// For a rollback: publish it although the source is verified and this was not, or under another policy.
    #[serde(default)]
    pub unverified: bool,
    /// For garbage collection: remove nothing and say what would be.
    #[serde(default)]
    pub dry_run: bool,
}

/// What a manual event asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// Poll, due or not.
    #[default]
    Poll,
    /// Publish an earlier content again.
    Rollback,
    /// Hash what is published.
    Check,
    /// Remove what nothing names any more.
    Gc,
}

/// An event that is none of these.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the event is not understood: {0}; known are the scheduled events of EventBridge or {{}}, the events of an SQS \
     queue, and {{\"action\": \"poll\" | \"rollback\" | \"check\" | \"gc\", \"catalogs\": [NAME, ...], \
     \"force\": true | false, \"contentHash\": HASH, \"unverified\": true | false, \"dryRun\": true | false}}"
)]
pub struct UnknownEvent(String);

/// The body of a queue's message. The digest that was seen is in it for people.
#[derive(Deserialize)]
struct Body {
    catalog: CatalogName,
}

/// The fields of [`Manual`]; an event with any of them was meant to be one.
const MANUAL: [&str; 6] = ["action", "catalogs", "force", "contentHash", "unverified", "dryRun"];

impl Event {
    /// Tells which event it is.
    ///
    /// # Errors
    /// [`UnknownEvent`], with what would be understood.
    pub fn from_value(event: Value) -> Result<Self, UnknownEvent> {
        let Value::Object(fields) = &event else {
            return Err(unknown("it is no JSON object"));
        };
        if fields.is_empty() || is_scheduled(fields) {
            Ok(Self::Schedule)
        } else if fields.contains_key("Records") {
            queue(event)
        } else if fields.keys().any(|key| MANUAL.contains(&key.as_str())) {
            let manual: Manual = serde_json::from_value(event).map_err(unknown)?;
            manual.check().map_err(unknown)?;
            Ok(Self::Manual(manual))
        } else {
            let fields: Vec<&str> = fields.keys().map(String::as_str).collect();
            Err(unknown(format_args!("it has the fields {}", fields.join(", "))))
        }
    }
}

impl Manual {
    fn check(&self) -> Result<(), &'static str> {
        match (self.action, &self.content_hash) {
            (Action::Rollback, None) => Err("a rollback needs a contentHash"),
            (Action::Rollback, _) if self.catalogs.len() != 1 => Err("a rollback needs exactly one catalog"),
            (Action::Poll | Action::Check | Action::Gc, Some(_)) => Err("only a rollback has a contentHash"),
            (Action::Poll | Action::Check | Action::Gc, _) if self.unverified => {
                Err("only a rollback can be unverified")
            }
            (Action::Rollback | Action::Check | Action::Gc, _) if self.force => Err("only a poll can be forced"),
            (Action::Gc, _) if !self.catalogs.is_empty() => {
                Err("gc has no catalogs: what they share can only be told of all of them")
            }
            (Action::Poll | Action::Rollback | Action::Check, _) if self.dry_run => Err("only gc has a dryRun"),
            _ => Ok(()),
        }
    }
}

/// EventBridge rules and EventBridge Scheduler (Amazon EventBridge User Guide, "Scheduled events").
fn is_scheduled(fields: &Map<String, Value>) -> bool {
    let is = |name: &str, values: &[&str]| {
        let value = fields.get(name).and_then(Value::as_str);
        value.is_some_and(|value| values.contains(&value))
    };
    is("source", &["aws.events", "aws.scheduler"]) && is("detail-type", &["Scheduled Event"])
}

fn queue(event: Value) -> Result<Event, UnknownEvent> {
    let event: SqsEvent = serde_json::from_value(event).map_err(unknown)?;
    let is_sqs = |record: &SqsMessage| record.event_source.as_deref() == Some("aws:sqs");
    if !event.records.iter().all(is_sqs) {
        return Err(unknown("its records are not those of an SQS queue"));
    }
    let records = event.records.into_iter().map(Record::from_message);
    records
        .collect::<Option<_>>()
        .map(Event::Queue)
        .ok_or_else(|| unknown("a record has no messageId"))
}

impl Record {
    /// What is wrong with a body must not fail the other messages.
    fn from_message(message: SqsMessage) -> Option<Self> {
        let body: Result<Body, _> = serde_json::from_str(&message.body.unwrap_or_default());
        Some(Self {
            id: message.message_id?,
            catalog: body.map(|body| body.catalog).map_err(|error| error.to_string()),
        })
    }
}

fn unknown(why: impl fmt::Display) -> UnknownEvent {
    UnknownEvent(why.to_string())
}
