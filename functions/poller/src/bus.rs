//! EventBridge as a receiver of changes.

use async_trait::async_trait;
use aws_sdk_eventbridge::{
    Client,
    error::{ProvideErrorMetadata, SdkError},
    operation::put_events::PutEventsOutput,
    types::PutEventsRequestEntry,
};
use notify::{Event, Receiver, SendError};
use serde_json::json;

const SOURCE: &str = "catalog-mirror";
const DETAIL_TYPE: &str = "Catalog Changed";

/// An entry may have 256 KB, counting source, detail type, time and detail (Amazon EventBridge User Guide, "Calculating
/// PutEvents event entry size"). This much is left for the detail.
const DETAIL_MAX: usize = (256 << 10) - 256;

/// These pass by themselves (Amazon EventBridge API reference, `PutEventsResultEntry`).
const PASSING: [&str; 2] = ["InternalFailure", "ThrottlingException"];

/// A bus of EventBridge.
#[derive(Debug)]
pub(crate) struct Bus {
    pub(crate) client: Client,
    /// Its name or ARN.
    pub(crate) bus: String,
}

/// An answer of EventBridge that is no success.
#[derive(Debug, thiserror::Error)]
enum BusError {
    /// The request failed.
    #[error("the request failed")]
    Request(#[source] Box<SdkError<aws_sdk_eventbridge::operation::put_events::PutEventsError>>),
    /// The request did not, but the event was not taken.
    #[error("EventBridge did not take the event: {code}: {message}")]
    Entry { code: String, message: String },
}

#[async_trait]
impl Receiver for Bus {
    fn name(&self) -> &str {
        "eventbridge"
    }

    async fn send(&self, event: &Event) -> Result<(), SendError> {
        let entry = PutEventsRequestEntry::builder()
            .source(SOURCE)
            .detail_type(DETAIL_TYPE)
            .detail(fit(event, DETAIL_MAX))
            .event_bus_name(&self.bus)
            .build();
        match self.client.put_events().entries(entry).send().await {
            Ok(output) => taken(&output),
            Err(error) => Err(refused(error)),
        }
    }
}

/// The event in at most `max` bytes: names of packages are left out if need be, and `data.packagesCut` says so.
pub fn fit(event: &Event, max: usize) -> String {
    let whole = json!(event).to_string();
    if whole.len() <= max {
        return whole;
    }
    let mut event = event.clone();
    loop {
        let mut cut = json!(event);
        cut["data"]["packagesCut"] = json!(true);
        let text = cut.to_string();
        let lists = event.data.packages.as_mut();
        let lists = lists.map(|packages| [&mut packages.added, &mut packages.removed, &mut packages.changed]);
        let longest = lists.into_iter().flatten().max_by_key(|list| list.len());
        match longest {
            Some(list) if text.len() > max && !list.is_empty() => list.truncate(list.len() / 2),
            _ => return text,
        }
    }
}

/// A request that succeeds may have failed for its only entry.
fn taken(output: &PutEventsOutput) -> Result<(), SendError> {
    if output.failed_entry_count() == 0 {
        return Ok(());
    }
    let entry = output.entries().iter().find(|entry| entry.error_code().is_some());
    let code = entry
        .and_then(|entry| entry.error_code())
        .unwrap_or("unknown")
        .to_owned();
    let message = entry
        .and_then(|entry| entry.error_message())
        .unwrap_or_default()
        .to_owned();
    let passes = PASSING.contains(&code.as_str());
    let error = BusError::Entry { code, message };
    Err(if passes {
        SendError::temporary(error)
    } else {
        SendError::Refused(error.into())
    })
}

/// Permissions and names are for somebody to change; throttling, trouble of theirs and the network pass.
fn refused(error: SdkError<aws_sdk_eventbridge::operation::put_events::PutEventsError>) -> SendError {
    let is_theirs = error.raw_response().is_none_or(|response| {
        let status = response.status();
        status.is_server_error() || status.as_u16() == 429
    });
    let passes = is_theirs || error.code().is_some_and(|code| PASSING.contains(&code));
    let error = BusError::Request(Box::new(error));
    if passes {
        SendError::temporary(error)
    } else {
        SendError::Refused(error.into())
    }
}
