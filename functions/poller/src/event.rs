//! Events that the function accepts, and its answer. Events are distinguished by their shape, since
//! Lambda adds no type to them.

use std::{collections::BTreeMap, fmt};

use aws_lambda_events::sqs::{SqsEvent, SqsMessage};
use model::CatalogName;
use publish::Report;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::IntoStaticStr;
use upkeep::Verification;

use crate::CatalogMessage;

/// One event of the function: its trigger, and what it asks for. The log names its kind.
#[derive(Debug, Clone, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum PollerEvent {
    /// Poll every catalog that is due.
    Schedule,
    /// Publish the catalogs of these messages.
    Queue(Vec<QueueRecord>),
    /// Carry out the action that an operator asks for.
    Manual(ManualEvent),
}

/// One message of an SQS queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueRecord {
    /// Identifier of the message, by which the answer reports a failure.
    pub id: String,
    /// Catalog that the message names, or the error of its body.
    pub catalog: Result<CatalogName, String>,
}

/// Event that an operator sends. Unknown fields are refused, so that a misspelt option does not go
/// unnoticed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ManualEvent {
    /// Action to carry out. Default: `poll`.
    pub action: ManualAction,
    /// Catalogs to work on. Default: all. Must be empty for `gc`, and exactly one for `rollback`.
    pub catalogs: Vec<CatalogName>,
    /// For a poll: pulls although the digest is known, and publishes although packages are gone.
    /// Default: false.
    pub force: bool,
    /// For a rollback: the content hash, or its first digits.
    pub content_hash: Option<String>,
    /// For a rollback: publishes content that was not verified under the current policy of the
    /// source. Default: false.
    pub unverified: bool,
    /// For garbage collection: writes nothing, and reports what would be condemned. Default: false.
    pub dry_run: bool,
}

/// Action that a [`ManualEvent`] asks for. Default: `poll`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ManualAction {
    /// Poll the catalogs, also those that are not due.
    #[default]
    Poll,
    /// Publish the content of an earlier publication again.
    Rollback,
    /// Hash all stored objects of the catalogs, and list the damaged ones.
    Check,
    /// Take the step of garbage collection that is due.
    Gc,
}

/// Error of an event that is none of the accepted ones. Its text lists those.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown event: {0}; accepted are the scheduled events of EventBridge or {{}}, the events of an SQS \
     queue, and {{\"action\": \"poll\" | \"rollback\" | \"check\" | \"gc\", \"catalogs\": [NAME, ...], \
     \"force\": true | false, \"contentHash\": HASH, \"unverified\": true | false, \"dryRun\": true | false}}"
)]
pub struct UnknownEvent(String);

impl PollerEvent {
    /// Reads an event.
    ///
    /// # Errors
    /// [`UnknownEvent`], with the cause and the accepted events.
    pub fn from_value(event: Value) -> Result<Self, UnknownEvent> {
        let Value::Object(fields) = &event else {
            return Err(unknown("it is not a JSON object"));
        };
        if fields.is_empty() || is_scheduled(&event) {
            Ok(Self::Schedule)
        } else if fields.contains_key("Records") {
            read_queue(event)
        } else {
            // Its error names a wrong field and no value, which may be secret.
            let manual: ManualEvent = serde_json::from_value(event).map_err(unknown)?;
            manual.check().map_err(unknown)?;
            Ok(Self::Manual(manual))
        }
    }
}

impl ManualEvent {
    /// Refuses options that the action would ignore.
    fn check(&self) -> Result<(), &'static str> {
        use ManualAction::{Check, Gc, Poll, Rollback};
        match (self.action, &self.content_hash) {
            (Rollback, None) => Err("a rollback needs a contentHash"),
            (Rollback, _) if self.catalogs.len() != 1 => {
                Err("a rollback needs exactly one catalog")
            }
            (Poll | Check | Gc, Some(_)) => Err("contentHash is only for a rollback"),
            (Poll | Check | Gc, _) if self.unverified => Err("unverified is only for a rollback"),
            (Rollback | Check | Gc, _) if self.force => Err("force is only for a poll"),
            // An object may be deleted only if no catalog at all names it.
            (Gc, _) if !self.catalogs.is_empty() => {
                Err("gc takes no catalogs, because catalogs share objects")
            }
            (Poll | Rollback | Check, _) if self.dry_run => Err("dryRun is only for gc"),
            _ => Ok(()),
        }
    }
}

/// Returns true for the events of EventBridge rules and of EventBridge Scheduler (Amazon
/// EventBridge User Guide, "Scheduled events").
fn is_scheduled(event: &Value) -> bool {
    let is_own = matches!(
        event["source"].as_str(),
        Some("aws.events" | "aws.scheduler")
    );
    is_own && event["detail-type"] == "Scheduled Event"
}

fn read_queue(event: Value) -> Result<PollerEvent, UnknownEvent> {
    let event: SqsEvent = serde_json::from_value(event).map_err(unknown)?;
    // S3 and SNS send `Records` too.
    for message in &event.records {
        if message.event_source.as_deref() != Some("aws:sqs") {
            return Err(unknown("its records are not those of an SQS queue"));
        }
    }
    let mut records = Vec::new();
    for message in event.records {
        let Some(record) = QueueRecord::from_message(message) else {
            return Err(unknown("a record has no messageId"));
        };
        records.push(record);
    }
    Ok(PollerEvent::Queue(records))
}

impl QueueRecord {
    /// Reads a message. Returns `None` if it has no identifier.
    fn from_message(message: SqsMessage) -> Option<Self> {
        let body: Result<CatalogMessage, _> =
            serde_json::from_str(&message.body.unwrap_or_default());
        Some(Self {
            id: message.message_id?,
            // Kept as a value: one wrong body must not fail the other messages of the batch.
            catalog: body
                .map(|body| body.catalog)
                .map_err(|error| error.to_string()),
        })
    }
}

fn unknown(cause: impl fmt::Display) -> UnknownEvent {
    UnknownEvent(cause.to_string())
}

/// Answer to a schedule event, or to a manual event other than `gc`. Its JSON is a contract with
/// the callers.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PollerAnswer {
    /// Report of each catalog that was polled or rolled back, in the form of
    /// `catalog-mirror poll --json`.
    pub reports: Vec<Report>,
    /// Number of reports by outcome, such as `published`.
    pub counts: BTreeMap<&'static str, usize>,
    /// Changed catalogs that were sent to the queue.
    pub queued: Vec<CatalogName>,
    /// Catalogs for which no time was left, or which the queue did not accept.
    pub left: Vec<CatalogName>,
    /// Catalogs whose interval is not over. Only for schedule events.
    pub not_due: Vec<CatalogName>,
    /// Results of the action `check`, in the form of `catalog-mirror verify --json`; left out of
    /// the JSON if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Verification>,
}

impl PollerAnswer {
    /// Returns true if at least one catalog was polled, every poll failed and nothing was queued.
    pub fn is_hopeless(&self) -> bool {
        if self.reports.is_empty() || !self.queued.is_empty() {
            return false;
        }
        let mut reports = self.reports.iter();
        !reports.any(|report| report.outcome.is_success())
    }
}
