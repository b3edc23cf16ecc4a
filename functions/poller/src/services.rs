//! Services that the function uses besides the store and the registries.

use async_trait::async_trait;
use model::{CatalogName, Sha256};
use notify::Receiver;
use serde::Serialize;

/// `catalogs.yaml` as it was read from S3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigDocument {
    /// Content of the object, YAML in UTF-8.
    pub text: String,
    /// Entity tag of the object, sent as the condition of the next read.
    pub tag: Option<String>,
}

/// Message to the queue: a changed catalog, or a composition of one, that another invocation should publish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CatalogMessage {
    /// Name of the catalog whose source has changed, or an input of it.
    pub catalog: CatalogName,
    /// Digest that its tag had, or `NAME@CONTENT-HASH` of the input. Informational: the source is resolved again before the pull.
    pub digest: String,
}

/// Access to configuration, secrets, queue and event bus: AWS in production, a fake in tests.
#[async_trait]
pub trait Services: Send + Sync + 'static {
    /// Reads the configuration. Returns `None` if it still has the entity tag `known`.
    ///
    /// # Errors
    /// If it cannot be read, or is not UTF-8 text.
    async fn catalogs(&self, known: Option<&str>) -> anyhow::Result<Option<ConfigDocument>>;

    /// Reads the text of a secret.
    ///
    /// # Errors
    /// If it cannot be read. The error contains nothing of the secret.
    async fn secret(&self, id: &str) -> anyhow::Result<String>;

    /// Sends at most ten messages to the queue. Returns the indexes of the messages that it refused.
    ///
    /// # Errors
    /// If it accepted none of them.
    async fn send(&self, messages: &[CatalogMessage]) -> anyhow::Result<Vec<usize>>;

    /// Returns the event bus that receives publications, or `None` if none is configured.
    fn bus(&self) -> Option<Box<dyn Receiver>>;
}

/// Maximum length of a FIFO queue's message group, in characters (Amazon SQS API reference,
/// `SendMessageBatchRequestEntry`). A catalog's name may have 253.
const GROUP_MAX: usize = 128;

impl CatalogMessage {
    /// Returns the message group: the catalog's name, or its hash if it is too long. SQS delivers the messages of a group one
    /// after the other, so a catalog is never pulled twice at the same time.
    pub fn group(&self) -> String {
        if self.catalog.as_str().len() <= GROUP_MAX {
            return self.catalog.to_string();
        }
        Sha256::of(self.catalog.as_str().as_bytes()).to_string()
    }

    /// Returns the deduplication id, equal for the same digest of the same catalog. A FIFO queue accepts it once in five
    /// minutes.
    pub fn deduplication(&self) -> String {
        // A space is in no name and no digest, so different pairs give different texts.
        Sha256::of(format!("{} {}", self.catalog, self.digest).as_bytes()).to_string()
    }
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
        let (short, long) = ("a".repeat(GROUP_MAX), "a".repeat(GROUP_MAX + 1));
        assert_eq!(message(&short, "d").group(), short);
        assert_eq!(message(&long, "d").group().len(), 64);
    }

    #[test]
    fn deduplication_differs_by_catalog_and_digest() {
        let id = message("a", "d").deduplication();
        assert_eq!(id, message("a", "d").deduplication());
        assert_ne!(id, message("b", "d").deduplication());
        assert_ne!(id, message("a", "e").deduplication());
    }
}
