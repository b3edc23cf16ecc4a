//! What the function needs beside the store and the registries. AWS is one of them, the tests' is another.

use async_trait::async_trait;
use layout::{CatalogName, Sha256};
use notify::Receiver;
use serde::Serialize;

/// The configuration as it lies in S3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// What it says.
    pub text: String,
    /// Its entity tag, to ask only for another one the next time.
    pub tag: Option<String>,
}

/// A catalog that somebody else should pull, as it is put into the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    /// Its name.
    pub catalog: CatalogName,
    /// The digest that was seen, for people: whoever pulls looks again.
    pub digest: String,
}

/// The services around the function.
#[async_trait]
pub trait Outside: Send + Sync + 'static {
    /// The configuration; none if it still has the tag `known`.
    ///
    /// # Errors
    /// If it cannot be read, or is no text.
    async fn catalogs(&self, known: Option<&str>) -> anyhow::Result<Option<Document>>;

    /// The text of a secret.
    ///
    /// # Errors
    /// If it cannot be had. The error tells nothing of it.
    async fn secret(&self, id: &str) -> anyhow::Result<String>;

    /// Puts at most ten messages into the queue. Returns the places in `messages` of those that it did not take.
    ///
    /// # Errors
    /// If it took none.
    async fn send(&self, messages: &[Message]) -> anyhow::Result<Vec<usize>>;

    /// The bus that hears of publications, if there is one.
    fn bus(&self) -> Option<Box<dyn Receiver>>;
}

/// The longest group of a FIFO queue (Amazon SQS API reference, `SendMessageBatchRequestEntry`).
const GROUP_MAX: usize = 128;

impl Message {
    /// Messages of one group are handed out one after the other: a catalog is never pulled twice at the same time.
    pub fn group(&self) -> String {
        if self.catalog.as_str().len() <= GROUP_MAX {
            return self.catalog.to_string();
        }
        Sha256::of(self.catalog.as_str().as_bytes()).to_string()
    }

    /// Equal for the same digest of the same catalog, which a FIFO queue then takes only once in five minutes.
    pub fn deduplication(&self) -> String {
        // No name and no digest has a space.
        Sha256::of(format!("{} {}", self.catalog, self.digest).as_bytes()).to_string()
    }
}
