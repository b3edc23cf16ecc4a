//! Sends changed catalogs to the queue, so that other invocations publish them.

use std::time::Duration;

use model::text::chain;
use model::{CatalogName, Outcome};

use publish::{PollOrder, Report};

use crate::{CatalogMessage, Services};

/// Maximum number of messages in one request (Amazon SQS API reference, `SendMessageBatch`).
const BATCH: usize = 10;
/// Maximum number of attempts for one message. The next schedule event sends the rest, since those catalogs are still
/// changed then.
const ATTEMPTS: u32 = 3;
/// Wait before the second attempt; it doubles with each further one.
const PAUSE: Duration = Duration::from_millis(100);

/// Catalogs by the result of sending their messages.
#[derive(Debug, Default)]
pub(crate) struct SentMessages {
    pub(crate) queued: Vec<CatalogName>,
    /// Refused by the queue in every attempt.
    pub(crate) left: Vec<CatalogName>,
}

/// Sends the messages in batches. Sends refused ones again, at most [`ATTEMPTS`] times in all.
pub(crate) async fn send(services: &dyn Services, messages: Vec<CatalogMessage>) -> SentMessages {
    let mut sent = SentMessages::default();
    // One batch after the other: a throttled queue would refuse more if they came at once.
    for batch in messages.chunks(BATCH) {
        let refused = send_batch(services, batch.to_vec()).await;
        for message in batch {
            let names = if refused.contains(message) {
                &mut sent.left
            } else {
                &mut sent.queued
            };
            names.push(message.catalog.clone());
        }
    }
    sent
}

/// Returns the messages that were refused in the last attempt.
async fn send_batch(services: &dyn Services, mut batch: Vec<CatalogMessage>) -> Vec<CatalogMessage> {
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            tokio::time::sleep(PAUSE * 2_u32.pow(attempt - 1)).await;
        }
        match services.send(&batch).await {
            Ok(refused) => batch = refused.into_iter().filter_map(|at| batch.get(at).cloned()).collect(),
            Err(error) => tracing::warn!(
                attempt,
                messages = batch.len(),
                error = chain(error.as_ref()),
                "cannot send messages to the queue"
            ),
        }
        if batch.is_empty() {
            return batch;
        }
    }
    tracing::error!(messages = batch.len(), "gave up sending messages to the queue");
    batch
}

/// Returns a message for each composition of a published catalog that was not polled itself.
pub(crate) fn followers(order: &PollOrder, reports: &[Report]) -> Vec<CatalogMessage> {
    let is_polled = |name: &CatalogName| reports.iter().any(|report| report.catalog == *name);
    let mut messages = Vec::new();
    for report in reports.iter().filter(|report| report.outcome == Outcome::Published) {
        let revision = report.content_hash.map(|hash| hash.to_string()).unwrap_or_default();
        let followers = order.followers(&report.catalog).filter(|name| !is_polled(name));
        messages.extend(followers.map(|name| CatalogMessage {
            catalog: name.clone(),
            // Another content of the input is another message, also within the five minutes of a FIFO queue.
            digest: format!("{}@{revision}", report.catalog),
        }));
    }
    messages
}
