use std::fmt::Debug;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use model::{CatalogName, ChangedPackages, Current, PublicationId, Sha256, SourceRef};
use publish::{PollError, Report};
use serde::Serialize;

/// One change of one catalog, as a CloudEvent in structured JSON (CloudEvents 1.0, section 2, and
/// its JSON event format, section 3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    specversion: &'static str,
    /// Identifier, equal for all attempts of all senders, so that a receiver can detect a repeat.
    /// Contains no `.`, as Standard Webhooks requires.
    pub id: String,
    /// URI reference of the mirror, [`NotifierSettings::source`](crate::NotifierSettings::source).
    pub source: String,
    /// Type of the event: [`Event::TYPE`] or [`Event::HELD_TYPE`].
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Name of the catalog that changed, the `subject` of the CloudEvent.
    pub subject: CatalogName,
    /// Time of the publication, RFC 3339 in UTC.
    pub time: String,
    datacontenttype: &'static str,
    /// Old and new publication, and the packages that differ.
    pub data: EventData,
}

/// Payload of an [`Event`]: one catalog before and after a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventData {
    /// Name of the catalog that changed, as in [`Event::subject`].
    pub catalog: CatalogName,
    /// Serial and content hash of the publication.
    #[serde(flatten)]
    pub published: PublicationId,
    /// Last publication that the receiver has acknowledged; `None` for a new catalog.
    pub previous: Option<PublicationId>,
    /// Packages that differ between the two; `None` if the earlier snapshot was deleted.
    pub packages: Option<ChangedPackages>,
    /// Time of the publication, RFC 3339 in UTC.
    pub published_at: String,
    /// Source that the catalog was read from.
    pub source: SourceRef,
    /// New content that is held back, in an event of the type [`Event::HELD_TYPE`]. Everything else
    /// is then about the publication that stays served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldContent>,
}

/// New content of a catalog that looks like an accident.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldContent {
    /// Revision of the source, such as a digest.
    pub revision: String,
    /// Reasons, and what can be done, for people.
    pub reason: String,
    /// Time since which content is held, RFC 3339 in UTC.
    pub since: String,
    /// Time from which it is published all the same; `None` if only a person decides.
    pub until: Option<String>,
}

impl HeldContent {
    /// Returns what a poll has found to hold for the first time.
    pub(crate) fn of(report: &Report) -> Option<Self> {
        let Some(PollError::Held {
            hold,
            is_known: false,
            ..
        }) = &report.error
        else {
            return None;
        };
        Some(Self {
            revision: report.digest.clone()?,
            reason: report.error_text()?,
            since: rfc3339(hold.since),
            until: hold.until.map(rfc3339),
        })
    }
}

impl Event {
    /// Value of `type` in an event of a publication. A change that breaks receivers gets a new
    /// version at its end.
    pub const TYPE: &'static str = "io.github.catalog-mirror.catalog.published.v1";

    /// Value of `type` in an event of content that is held back.
    pub const HELD_TYPE: &'static str = "io.github.catalog-mirror.catalog.held.v1";

    /// Media type of [`Event::to_json`] (CloudEvents 1.0, JSON event format, section 3).
    pub const MEDIA_TYPE: &'static str = "application/cloudevents+json";

    /// Creates the event that brings a receiver from `previous` to `current`.
    pub fn new(
        source: &str,
        catalog: &CatalogName,
        previous: Option<PublicationId>,
        current: &Current,
        packages: Option<ChangedPackages>,
    ) -> Self {
        let published = PublicationId::from(current);
        let time = rfc3339(current.published_at);
        Self {
            specversion: "1.0",
            id: id(catalog, previous, published),
            source: source.to_owned(),
            kind: Self::TYPE,
            subject: catalog.clone(),
            time: time.clone(),
            datacontenttype: "application/json",
            data: EventData {
                catalog: catalog.clone(),
                published,
                previous,
                packages,
                published_at: time,
                source: current.source.clone(),
                held: None,
            },
        }
    }

    /// Creates the event of new content that is held back while `current` stays served.
    pub fn held(source: &str, catalog: &CatalogName, current: &Current, held: HeldContent) -> Self {
        let mut event = Self::new(source, catalog, None, current, None);
        let revision = Sha256::of(held.revision.as_bytes()).to_string();
        let since = held.since.replace(['-', ':'], "");
        event.id = format!("{}:held:{since}:{}", id_part(catalog), &revision[..16]);
        event.kind = Self::HELD_TYPE;
        event.time.clone_from(&held.since);
        event.data.held = Some(held);
        event
    }

    /// Returns the event as one JSON document, equal bytes for equal events.
    pub fn to_json(&self) -> Bytes {
        let json = serde_json::to_vec(self);
        json.expect("an event holds only texts, numbers and lists of texts")
            .into()
    }
}

/// Returns the identifier of an event. A catalog's name has no `_`, so different catalogs have
/// different identifiers. The content hash is needed because a catalog that was removed starts
/// again with the same serials.
fn id(catalog: &CatalogName, previous: Option<PublicationId>, published: PublicationId) -> String {
    let catalog = id_part(catalog);
    let from = previous.map_or(0, |previous| previous.serial);
    let hash = published.content_hash.to_string();
    // Receivers that missed different publications get different events, so the old serial is part
    // of the identifier.
    format!("{catalog}:{from}:{}:{}", published.serial, &hash[..16])
}

/// Returns the name of a catalog as a part of an identifier.
fn id_part(catalog: &CatalogName) -> String {
    catalog.as_str().replace('.', "_")
}

/// Destination of change events, such as a webhook or an event bus.
#[async_trait]
pub trait Receiver: Debug + Send + Sync {
    /// Returns the name: unique, not secret and stable, because the cursor is stored under it.
    fn name(&self) -> &str;

    /// Returns true if it wants the events of a catalog. Default: all.
    fn wants(&self, _: &CatalogName) -> bool {
        true
    }

    /// Sends one event once and returns when the receiver has acknowledged it. The caller repeats
    /// and limits the time, so dropping the future must be harmless.
    ///
    /// # Errors
    /// [`SendError`], whose variant decides about further attempts.
    async fn send(&self, event: &Event) -> Result<(), SendError>;
}

/// The reason for which an event was not acknowledged.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// A failure of the network or a busy server. The event is sent again a few times now, then
    /// after the next poll.
    #[error("the receiver cannot be reached or cannot take it now")]
    Temporary {
        /// Wait that the receiver asked for.
        retry_after: Option<Duration>,
        /// The underlying error, which the chain prints after this one.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A failure that needs a change of credentials, URL or secret. The event is sent again after
    /// the next poll.
    #[error("the receiver refuses it")]
    Refused(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The receiver will never take it. The event is dropped.
    #[error("the receiver will never take it")]
    Permanent(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl SendError {
    /// Creates a failure that needs a change.
    pub(crate) fn refused(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Refused(source.into())
    }

    /// Creates a temporary failure without a wait.
    pub fn temporary(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Temporary {
            retry_after: None,
            source: source.into(),
        }
    }
}

fn rfc3339(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}
