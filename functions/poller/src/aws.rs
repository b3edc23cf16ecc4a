//! Implements [`Services`] with AWS, or with servers that speak its protocols.

use anyhow::Context;
use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use notify::Receiver;
use serde_json::json;

use crate::{CatalogMessage, bus::Bus};

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
    /// Reads the configuration, an object of S3. Returns `None` if it still has the entity tag
    /// `known`.
    ///
    /// # Errors
    /// If it cannot be read, or is not UTF-8 text.
    async fn catalogs(
        &self,
        bucket: &str,
        key: &str,
        known: Option<&str>,
    ) -> anyhow::Result<Option<ConfigDocument>>;

    /// Reads the text of a secret.
    ///
    /// # Errors
    /// If it cannot be read. The error contains nothing of the secret.
    async fn secret(&self, id: &str) -> anyhow::Result<String>;

    /// Sends at most ten messages to the queue of a URL. Returns the indexes of the messages that
    /// it refused.
    ///
    /// # Errors
    /// If it accepted none of them.
    async fn send(&self, queue: &str, messages: &[CatalogMessage]) -> anyhow::Result<Vec<usize>>;

    /// Returns the event bus of a name or ARN.
    fn bus(&self, bus: &str) -> Box<dyn Receiver>;
}

/// Maximum size of `catalogs.yaml`, in bytes: enough for thousands of catalogs.
const CATALOGS_MAX: i64 = 1 << 20;

/// Clients of the services of AWS.
#[derive(Debug)]
pub struct Aws {
    sdk: SdkConfig,
    s3: aws_sdk_s3::Client,
}

impl Aws {
    /// Returns the services behind `sdk`. `path_style` has the meaning of
    /// [`store::s3::S3Settings::path_style`].
    pub fn new(sdk: SdkConfig, path_style: bool) -> Self {
        let s3 = aws_sdk_s3::config::Builder::from(&sdk).force_path_style(path_style);
        Self {
            s3: aws_sdk_s3::Client::from_conf(s3.build()),
            sdk,
        }
    }
}

#[async_trait]
impl Services for Aws {
    async fn catalogs(
        &self,
        bucket: &str,
        key: &str,
        known: Option<&str>,
    ) -> anyhow::Result<Option<ConfigDocument>> {
        let known = known.map(str::to_owned);
        let request = self
            .s3
            .get_object()
            .bucket(bucket)
            .key(key)
            .set_if_none_match(known);
        let object = match request.send().await {
            Ok(object) => object,
            // The SDK treats a 304 as an error.
            Err(error)
                if error
                    .raw_response()
                    .is_some_and(|raw| raw.status().as_u16() == 304) =>
            {
                return Ok(None);
            }
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read s3://{bucket}/{key}"));
            }
        };
        let place = || format!("s3://{bucket}/{key} is not a configuration");
        // Checked before the body is read: a wrong key may name an object of gigabytes.
        if object
            .content_length()
            .is_none_or(|length| length > CATALOGS_MAX)
        {
            return Err(anyhow::anyhow!("it has more than {CATALOGS_MAX} bytes"))
                .with_context(place);
        }
        let tag = object.e_tag().map(str::to_owned);
        let bytes = object.body.collect().await.with_context(place)?;
        let text = String::from_utf8(bytes.to_vec()).with_context(place)?;
        Ok(Some(ConfigDocument { text, tag }))
    }

    async fn secret(&self, id: &str) -> anyhow::Result<String> {
        // A client per call is cheap: it shares connections and credentials through `sdk`.
        let client = aws_sdk_secretsmanager::Client::new(&self.sdk);
        let value = client.get_secret_value().secret_id(id).send().await?;
        value
            .secret_string
            .context("the secret is binary, not text")
    }

    async fn send(&self, queue: &str, messages: &[CatalogMessage]) -> anyhow::Result<Vec<usize>> {
        let is_fifo = queue.ends_with(".fifo");
        let entries = messages
            .iter()
            .enumerate()
            .map(|(at, message)| entry(at, message, is_fifo));
        let entries: anyhow::Result<_> = entries.collect();
        let request = aws_sdk_sqs::Client::new(&self.sdk)
            .send_message_batch()
            .queue_url(queue);
        let sent = request.set_entries(Some(entries?)).send().await;
        let sent = sent.with_context(|| format!("cannot send to {queue}"))?;
        let refused = sent.failed().iter().filter_map(|failed| {
            let at: usize = failed.id().parse().ok()?;
            let catalog = messages.get(at).map(|message| message.catalog.as_str());
            let (code, message) = (failed.code(), failed.message());
            tracing::warn!(catalog, code, message, "the queue refused a message");
            Some(at)
        });
        Ok(refused.collect())
    }

    fn bus(&self, bus: &str) -> Box<dyn Receiver> {
        let client = aws_sdk_eventbridge::Client::new(&self.sdk);
        let bus = bus.to_owned();
        Box::new(Bus { client, bus })
    }
}

/// Returns the entry of a batch. Its id is the index of the message.
fn entry(
    at: usize,
    message: &CatalogMessage,
    is_fifo: bool,
) -> anyhow::Result<SendMessageBatchRequestEntry> {
    let body = json!(message).to_string();
    let mut entry = SendMessageBatchRequestEntry::builder()
        .id(at.to_string())
        .message_body(body);
    // A standard queue refuses a deduplication id.
    if is_fifo {
        let group = entry.message_group_id(message.group());
        entry = group.message_deduplication_id(message.deduplication());
    }
    Ok(entry.build()?)
}
