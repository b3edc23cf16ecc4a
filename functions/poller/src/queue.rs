//! Sends changed catalogs to the queue, so that other invocations publish them.

use std::{collections::BTreeSet, time::Duration};

use model::text::Chain;
use model::{CatalogName, Outcome};
use publish::{PollOrder, Report};

use crate::{CatalogMessage, Services};

/// Maximum number of messages in one request (Amazon SQS API reference, `SendMessageBatch`).
const BATCH: usize = 10;
/// Maximum number of attempts for one message. The next schedule event sends the rest, since those
/// catalogs are still changed then.
const ATTEMPTS: u32 = 3;
/// Wait before the second attempt; it doubles with each further one.
const PAUSE: Duration = Duration::from_millis(100);

/// Sends the messages in batches. Sends refused ones again, at most [`ATTEMPTS`] times in all.
/// Returns the catalogs of those that the queue refused in every attempt.
pub(crate) async fn send(
    services: &dyn Services,
    queue: &str,
    messages: &[CatalogMessage],
) -> Vec<CatalogName> {
    let mut refused = Vec::new();
    // One batch after the other: a throttled queue would refuse more if they came at once.
    for batch in messages.chunks(BATCH) {
        refused.extend(send_batch(services, queue, batch.to_vec()).await);
    }
    refused.into_iter().map(|message| message.catalog).collect()
}

/// Returns the messages that were refused in the last attempt.
async fn send_batch(
    services: &dyn Services,
    queue: &str,
    mut batch: Vec<CatalogMessage>,
) -> Vec<CatalogMessage> {
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            tokio::time::sleep(PAUSE * 2_u32.pow(attempt - 1)).await;
        }
        match services.send(queue, &batch).await {
            Ok(refused) => {
                let refused = refused.into_iter().filter_map(|at| batch.get(at).cloned());
                batch = refused.collect();
            }
            Err(error) => tracing::warn!(
                attempt,
                messages = batch.len(),
                error = %Chain(error.as_ref()),
                "cannot send messages to the queue"
            ),
        }
        if batch.is_empty() {
            return batch;
        }
    }
    tracing::error!(
        messages = batch.len(),
        "gave up sending messages to the queue"
    );
    batch
}

/// Returns a message for each composition of a published catalog that was not polled itself.
pub(crate) fn followers(order: &PollOrder, reports: &[Report]) -> Vec<CatalogMessage> {
    let polled: BTreeSet<&CatalogName> = reports.iter().map(|report| &report.catalog).collect();
    let mut messages = Vec::new();
    for report in reports {
        if report.outcome != Outcome::Published {
            continue;
        }
        let hash = report.content_hash.map(|hash| hash.to_string());
        // Another content of the input is another message, also within the five minutes of a FIFO
        // queue.
        let digest = format!("{}@{}", report.catalog, hash.unwrap_or_default());
        for follower in order.followers(&report.catalog) {
            if !polled.contains(follower) {
                messages.push(CatalogMessage {
                    catalog: follower.clone(),
                    digest: digest.clone(),
                });
            }
        }
    }
    messages
}
