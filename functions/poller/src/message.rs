use model::{CatalogName, Sha256};
use serde::{Deserialize, Serialize};

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
