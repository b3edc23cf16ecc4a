//! Handing changed catalogs to others.

use std::time::Duration;

use layout::CatalogName;
use telemetry::chain;

use crate::{Message, Outside};

/// What SQS takes at once (Amazon SQS API reference, `SendMessageBatch`).
const BATCH: usize = 10;
/// How often a message is sent at most. What is not taken then is seen as changed again by the next schedule event.
const ATTEMPTS: u32 = 3;
/// The wait before the second attempt; it doubles.
const PAUSE: Duration = Duration::from_millis(100);

/// What became of messages.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    pub(crate) queued: Vec<CatalogName>,
    pub(crate) left: Vec<CatalogName>,
}

/// Sends messages in batches, and again what was not taken.
pub(crate) async fn send(outside: &dyn Outside, messages: Vec<Message>) -> Sent {
    let mut sent = Sent::default();
    for batch in messages.chunks(BATCH) {
        let refused = send_batch(outside, batch.to_vec()).await;
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

/// Returns what was not taken at last.
async fn send_batch(outside: &dyn Outside, mut batch: Vec<Message>) -> Vec<Message> {
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            tokio::time::sleep(PAUSE * 2_u32.pow(attempt - 1)).await;
        }
        match outside.send(&batch).await {
            Ok(refused) => batch = refused.into_iter().filter_map(|at| batch.get(at).cloned()).collect(),
            Err(error) => tracing::warn!(attempt, error = chain(error.as_ref()), "the queue takes no messages"),
        }
        if batch.is_empty() {
            return batch;
        }
    }
    tracing::error!(messages = batch.len(), "the queue did not take all messages");
    batch
}
