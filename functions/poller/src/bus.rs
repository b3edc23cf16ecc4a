//! Sends publications to an EventBridge bus.

use async_trait::async_trait;
use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_eventbridge::operation::put_events::{PutEventsError, PutEventsOutput};
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use notify::{Event, Receiver, SendError};
use serde_json::json;

/// `source` of every event. Rules of operators match on it, so it must not change.
const SOURCE: &str = "catalog-mirror";
/// `detail-type` of every event, matched by rules as well.
const DETAIL_TYPE: &str = "Catalog Changed";

/// Maximum size of an event's detail, in bytes. An entry may have 256 KB, of which source, detail
/// type and time take less than 256 bytes (Amazon EventBridge User Guide, "Calculating PutEvents
/// event entry size").
const DETAIL_MAX: usize = (256 << 10) - 256;

/// Error codes of entries that a later attempt may not get (Amazon EventBridge API reference,
/// `PutEventsResultEntry`).
const TEMPORARY_CODES: [&str; 2] = ["InternalFailure", "ThrottlingException"];

/// Receiver that puts each event on one EventBridge bus.
#[derive(Debug)]
pub(crate) struct Bus {
    pub(crate) client: Client,
    /// Name or ARN of the bus.
    pub(crate) bus: String,
}

#[async_trait]
impl Receiver for Bus {
    // The cursor is stored under this name, so another name would be a new receiver.
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
            Ok(output) => check_entries(&output),
            Err(error) => Err(request_error(error)),
        }
    }
}

/// Returns the event as JSON of at most `max` bytes. Drops names of packages if it is longer, and
/// then sets `data.packagesCut`.
fn fit(event: &Event, max: usize) -> String {
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
        let lists = lists.map(|packages| {
            [
                &mut packages.added,
                &mut packages.removed,
                &mut packages.changed,
            ]
        });
        // The longest list is halved, so that a short list of removed packages survives a long one
        // of changed packages.
        let longest = lists.into_iter().flatten().max_by_key(|list| list.len());
        match longest {
            Some(list) if text.len() > max && !list.is_empty() => list.truncate(list.len() / 2),
            _ => return text,
        }
    }
}

/// Returns the error of the only entry, if it has one: a request may succeed although its entry
/// failed.
fn check_entries(output: &PutEventsOutput) -> Result<(), SendError> {
    if output.failed_entry_count() == 0 {
        return Ok(());
    }
    let entry = output
        .entries()
        .iter()
        .find(|entry| entry.error_code().is_some());
    let code = entry
        .and_then(|entry| entry.error_code())
        .unwrap_or("unknown");
    let message = entry
        .and_then(|entry| entry.error_message())
        .unwrap_or_default();
    let refused = format!("EventBridge refused the event: {code}: {message}");
    Err(send_error(refused, TEMPORARY_CODES.contains(&code)))
}

fn request_error(error: SdkError<PutEventsError>) -> SendError {
    // No response at all is a failure of the network, which is temporary. Missing permissions and
    // wrong names are not: an operator has to correct them.
    let is_temporary = error.raw_response().is_none_or(|response| {
        let status = response.status();
        status.is_server_error() || status.as_u16() == 429
    });
    let is_temporary = is_temporary
        || error
            .code()
            .is_some_and(|code| TEMPORARY_CODES.contains(&code));
    send_error(error, is_temporary)
}

fn send_error(
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    is_temporary: bool,
) -> SendError {
    if is_temporary {
        SendError::temporary(error)
    } else {
        SendError::Refused(error.into())
    }
}
