//! Services that the function uses besides the store and the registries.

use async_trait::async_trait;
use notify::Receiver;

use crate::CatalogMessage;

/// `catalogs.yaml` as it was read from S3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigDocument {
    /// Content of the object, YAML in UTF-8.
    pub text: String,
    /// Entity tag of the object, sent as the condition of the next read.
    pub tag: Option<String>,
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
