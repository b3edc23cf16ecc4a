//! Implements [`Services`] with AWS, or with servers that speak its protocols.

use anyhow::Context;
use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_sdk_s3::error::SdkError;
use aws_sdk_s3::operation::get_object::{GetObjectError, GetObjectOutput};
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use serde_json::json;
use upkeep::Receiver;

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
        let request = self
            .s3
            .get_object()
            .bucket(bucket)
            .key(key)
            .set_if_none_match(known.map(str::to_owned));
        let object = match request.send().await {
            Ok(object) => object,
            // The SDK treats a 304 as an error.
            Err(error) if status(&error) == Some(304) => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read s3://{bucket}/{key}"));
            }
        };
        let document = read_document(object).await;
        let document =
            document.with_context(|| format!("s3://{bucket}/{key} is not a configuration"))?;
        Ok(Some(document))
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
        let mut request = aws_sdk_sqs::Client::new(&self.sdk)
            .send_message_batch()
            .queue_url(queue);
        let kind = if queue.ends_with(".fifo") {
            QueueKind::Fifo
        } else {
            QueueKind::Standard
        };
        for (at, message) in messages.iter().enumerate() {
            request = request.entries(entry(at, message, kind)?);
        }
        let sent = request.send().await;
        let sent = sent.with_context(|| format!("cannot send to {queue}"))?;
        let mut refused = Vec::new();
        for failed in sent.failed() {
            let Ok(at) = failed.id().parse::<usize>() else {
                continue;
            };
            let catalog = messages.get(at).map(|message| message.catalog.as_str());
            tracing::warn!(
                catalog,
                code = failed.code(),
                message = failed.message(),
                "the queue refused a message"
            );
            refused.push(at);
        }
        Ok(refused)
    }

    fn bus(&self, bus: &str) -> Box<dyn Receiver> {
        Box::new(Bus {
            client: aws_sdk_eventbridge::Client::new(&self.sdk),
            bus: bus.to_owned(),
        })
    }
}

/// Returns the HTTP status of the response that was an error; `None` if there was no response.
fn status(error: &SdkError<GetObjectError>) -> Option<u16> {
    Some(error.raw_response()?.status().as_u16())
}

async fn read_document(object: GetObjectOutput) -> anyhow::Result<ConfigDocument> {
    // Checked before the body is read: a wrong key may name an object of gigabytes.
    match object.content_length() {
        Some(length) if length <= CATALOGS_MAX => {}
        _ => anyhow::bail!("it has more than {CATALOGS_MAX} bytes"),
    }
    let tag = object.e_tag().map(str::to_owned);
    let bytes = object.body.collect().await?;
    let text = String::from_utf8(bytes.to_vec())?;
    Ok(ConfigDocument { text, tag })
}

/// Kind of an SQS queue, by which it orders messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueueKind {
    Standard,
    Fifo,
}

/// Returns the entry of a batch. Its id is the index of the message.
fn entry(
    at: usize,
    message: &CatalogMessage,
    kind: QueueKind,
) -> anyhow::Result<SendMessageBatchRequestEntry> {
    let mut entry = SendMessageBatchRequestEntry::builder()
        .id(at.to_string())
        .message_body(json!(message).to_string());
    // A standard queue refuses a deduplication id.
    if kind == QueueKind::Fifo {
        entry = entry
            .message_group_id(message.group())
            .message_deduplication_id(message.deduplication());
    }
    Ok(entry.build()?)
}
