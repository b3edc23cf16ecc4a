use std::io;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{TryStreamExt, stream::BoxStream};
use http::HeaderMap;
use model::{Encoding, Key};
use tokio::{fs::File, io::AsyncWriteExt};

use crate::TreeError;

/// Bytes of a file.
pub type FileBody = BoxStream<'static, io::Result<Bytes>>;

/// Form of the files of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeForm {
    /// Texts plain and as `.gz`; manifests with an ending for their media type.
    Files,
    /// Texts as `.gz` alone, and the rest as in [`Self::Files`].
    GzipFiles,
    /// Texts as gzip under their plain names: a bucket has the coding and the media type beside the bytes.
    Bucket,
}

impl TreeForm {
    /// Returns the codings in which a text is written.
    pub(crate) const fn codings(self) -> &'static [Encoding] {
        match self {
            Self::Files => &[Encoding::Identity, Encoding::Gzip],
            Self::GzipFiles | Self::Bucket => &[Encoding::Gzip],
        }
    }
}

/// Place of a tree.
#[async_trait]
pub trait TreeTarget: Send + Sync + 'static {
    /// Returns the form of its files.
    fn form(&self) -> TreeForm;

    /// Returns the list of files, or `None` for an empty place.
    ///
    /// # Errors
    /// [`TreeError::Foreign`] for a place with other files, and failures of the place.
    async fn index(&self) -> Result<Option<Bytes>, TreeError>;

    /// Returns true if the file is there with this size, as far as the place tells without a request for each file.
    async fn has(&self, path: &str, size: u64) -> bool;

    /// Makes the file a link to an object of the store. Returns false where that cannot be done.
    ///
    /// # Errors
    /// Failures of the place.
    async fn link(&self, path: &str, key: &Key) -> Result<bool, TreeError>;

    /// Writes a whole file with the header fields of its answer. Others see all of it or nothing of it. Returns its size in bytes.
    ///
    /// # Errors
    /// Failures of the place, or of the body.
    async fn write(&self, path: &str, fields: &HeaderMap, body: FileBody) -> Result<u64, TreeError>;

    /// Deletes a file. One that is not there is no error.
    ///
    /// # Errors
    /// Failures of the place.
    async fn delete(&self, path: &str) -> Result<(), TreeError>;
}

/// Writes a body to a file. Returns its size in bytes.
pub(crate) async fn copy(mut body: FileBody, mut file: File) -> io::Result<u64> {
    let mut size = 0;
    while let Some(chunk) = body.try_next().await? {
        file.write_all(&chunk).await?;
        size += chunk.len() as u64;
    }
    file.flush().await?;
    Ok(size)
}
