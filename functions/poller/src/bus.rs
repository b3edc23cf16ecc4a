//! Sends publications to an EventBridge bus.

use async_trait::async_trait;
use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_eventbridge::operation::put_events::{PutEventsError, PutEventsOutput};
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use serde_json::json;
use upkeep::{Event, Receiver, SendError};

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
        let Some(packages) = &mut event.data.packages else {
            return text;
        };
        // The longest list is halved, so that a short list of removed packages survives a long one
        // of changed packages.
        let mut longest = &mut packages.added;
        for list in [&mut packages.removed, &mut packages.changed] {
            if list.len() >= longest.len() {
                longest = list;
            }
        }
        if text.len() <= max || longest.is_empty() {
            return text;
        }
        longest.truncate(longest.len() / 2);
    }
}

/// Returns the error of the only entry, if it has one: a request may succeed although its entry
/// failed.
fn check_entries(output: &PutEventsOutput) -> Result<(), SendError> {
    if output.failed_entry_count() == 0 {
        return Ok(());
    }
    let mut code = "unknown";
    let mut message = "";
    for entry in output.entries() {
        if let Some(error_code) = entry.error_code() {
            code = error_code;
            message = entry.error_message().unwrap_or_default();
        }
    }
    let refused = format!("EventBridge refused the event: {code}: {message}");
    Err(send_error(refused, TEMPORARY_CODES.contains(&code)))
}

fn request_error(error: SdkError<PutEventsError>) -> SendError {
    let is_temporary = match error.raw_response() {
        // A failure of the network.
        None => true,
        // Missing permissions and wrong names stay until an operator corrects them.
        Some(response) => {
            let status = response.status();
            let is_named = error
                .code()
                .is_some_and(|code| TEMPORARY_CODES.contains(&code));
            is_named || status.is_server_error() || status.as_u16() == 429
        }
    };
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
