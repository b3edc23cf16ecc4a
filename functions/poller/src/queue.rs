//! Sends changed catalogs to the queue, so that other invocations publish them.

use std::{collections::BTreeSet, time::Duration};

use model::text::Chain;
use model::{CatalogName, Outcome, Sha256};
use publish::{PollOrder, Report};
use serde::{Deserialize, Serialize};

use crate::Services;

/// Maximum number of messages in one request (Amazon SQS API reference, `SendMessageBatch`).
const BATCH: usize = 10;
/// Maximum number of attempts for one message. The next schedule event sends the rest, since those
/// catalogs are still changed then.
const ATTEMPTS: u32 = 3;
/// Wait before the second attempt; it doubles with each further one.
const PAUSE: Duration = Duration::from_millis(100);

/// Message of the queue: a changed catalog, or a composition of one, that another invocation should
/// publish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatalogMessage {
    /// Name of the catalog whose source has changed, or an input of it.
    pub catalog: CatalogName,
    /// Digest that its tag had, or `NAME@CONTENT-HASH` of the input. Informational: the source is
    /// resolved again before the pull.
    #[serde(default)]
    pub digest: String,
}

/// Maximum length of a FIFO queue's message group, in characters (Amazon SQS API reference,
/// `SendMessageBatchRequestEntry`). A catalog's name may have 253.
const GROUP_MAX: usize = 128;

impl CatalogMessage {
    /// Returns the message group: the catalog's name, or its hash if it is too long. SQS delivers
    /// the messages of a group one after the other, so a catalog is never pulled twice at the same
    /// time.
    pub fn group(&self) -> String {
        if self.catalog.as_str().len() <= GROUP_MAX {
            return self.catalog.to_string();
        }
        Sha256::of(self.catalog.as_str().as_bytes()).to_string()
    }

    /// Returns the deduplication id, equal for the same digest of the same catalog. A FIFO queue
    /// accepts it once in five minutes.
    pub fn deduplication(&self) -> String {
        // A space is in no name and no digest, so different pairs give different texts.
        Sha256::of(format!("{} {}", self.catalog, self.digest).as_bytes()).to_string()
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn message(catalog: &str, digest: &str) -> CatalogMessage {
        CatalogMessage {
            catalog: catalog.parse().unwrap(),
            digest: digest.to_owned(),
        }
    }

    #[test]
    fn group_of_a_long_name_is_its_hash() {
        let longest = "a".repeat(GROUP_MAX);
        assert_eq!(message(&longest, "d").group(), longest);
        let too_long = "a".repeat(GROUP_MAX + 1);
        assert_eq!(message(&too_long, "d").group().len(), 64);
    }

    #[test]
    fn deduplication_differs_by_catalog_and_digest() {
        let id = message("a", "d").deduplication();
        assert_eq!(id, message("a", "d").deduplication());
        assert_ne!(id, message("b", "d").deduplication());
        assert_ne!(id, message("a", "e").deduplication());
    }
}
