use std::time::SystemTime;

use bytes::Bytes;
use layout::{CatalogName, Current, Mark, SourceRef};
use poll::Changes;
use serde::Serialize;

/// One change of one catalog, as a CloudEvent in structured JSON (CloudEvents 1.0, section 2, and its JSON event
/// format, section 3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    specversion: &'static str,
    /// The same however often the event is sent and whoever sends it, so that a receiver can tell a repeat. No `.` is
    /// in it, as Standard Webhooks wants.
    pub id: String,
    /// Which mirror tells this: a URI reference.
    pub source: String,
    /// What has happened: [`Event::TYPE`].
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The catalog.
    pub subject: CatalogName,
    /// When it was published: RFC 3339, UTC.
    pub time: String,
    datacontenttype: &'static str,
    /// What has changed.
    pub data: Data,
}

/// What an [`Event`] tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Data {
    /// The catalog.
    pub catalog: CatalogName,
    /// What is published now: its serial and content hash.
    #[serde(flatten)]
    pub published: Mark,
    /// What the receiver was told last; none for a new catalog.
    pub previous: Option<Mark>,
    /// The packages that differ between the two; none if what was published then is not kept any more.
    pub packages: Option<Changes>,
    /// When it was published: RFC 3339, UTC.
    pub published_at: String,
    /// What it was read from.
    pub source: SourceRef,
}

impl Event {
    /// The `type` of every event.
    pub const TYPE: &'static str = "io.github.catalog-mirror.catalog.published.v1";

    /// The media type of [`Event::to_json`].
    pub const MEDIA_TYPE: &'static str = "application/cloudevents+json";

    /// The event that brings a receiver from `previous` to `current`.
    pub fn new(
        source: &str,
        catalog: &CatalogName,
        previous: Option<Mark>,
        current: &Current,
        packages: Option<Changes>,
    ) -> Self {
        let published = Mark::from(current);
        let time = rfc3339(current.published_at);
        Self {
            specversion: "1.0",
            id: id(catalog, previous, published),
            source: source.to_owned(),
            kind: Self::TYPE,
            subject: catalog.clone(),
            time: time.clone(),
            datacontenttype: "application/json",
            data: Data {
                catalog: catalog.clone(),
                published,
                previous,
                packages,
                published_at: time,
                source: current.source.clone(),
            },
        }
    }

    /// The event as it is sent.
    pub fn to_json(&self) -> Bytes {
        let json = serde_json::to_vec(self);
        json.expect("an event holds only texts, numbers and lists of texts")
            .into()
    }
}

/// No catalog's name has a `_`, so different catalogs have different ids. The content hash is in it because a catalog
/// that was removed starts again with the same serials.
fn id(catalog: &CatalogName, previous: Option<Mark>, published: Mark) -> String {
    let catalog = catalog.as_str().replace('.', "_");
    let from = previous.map_or(0, |previous| previous.serial);
    let hash = published.content_hash.to_string();
    format!("{catalog}:{from}:{}:{}", published.serial, &hash[..16])
}

fn rfc3339(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}
