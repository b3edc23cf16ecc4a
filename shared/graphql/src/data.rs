use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;

use crate::error::DataError;

/// Lines of Metas in chunks of any size. Each line is a JSON object and ends with a line break.
pub type LineStream = BoxStream<'static, Result<Bytes, DataError>>;

/// Metas that a field of the root asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetaPage {
    /// Schema of the Metas.
    pub schema: String,
    /// Package that they belong to. An `olm.package` belongs to the package that it is.
    pub package: Option<String>,
    /// Name that they have.
    pub name: Option<String>,
    /// Number of matching Metas to leave out.
    pub offset: u64,
    /// Maximum number of Metas, at most 100.
    pub limit: u64,
}

/// Metas of one published state of a catalog.
#[async_trait]
pub trait CatalogData: Send + Sync {
    /// Returns the number of Metas of a schema.
    fn total(&self, schema: &str) -> u64;

    /// Streams the lines of Metas in the order of the catalog.
    ///
    /// # Errors
    /// Any failure to read them, also as an item of the stream. The request fails with it.
    async fn lines(&self, page: &MetaPage) -> Result<LineStream, DataError>;
}
