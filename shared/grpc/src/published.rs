use std::sync::Arc;

use bytes::Bytes;
use futures_util::{future::BoxFuture, stream::BoxStream};
use registry::Graph;

/// Catalogs that are published. The server asks for the state at the beginning of each call, and keeps it until the call ends.
pub trait Published: Send + Sync + 'static {
    /// Returns the names of the catalogs that clients may name.
    fn names(&self) -> BoxFuture<'_, Result<Vec<String>, PublishedError>>;

    /// Returns the current state of a catalog.
    fn state<'a>(&'a self, catalog: &'a str) -> BoxFuture<'a, Result<Arc<dyn PublishedState>, PublishedError>>;
}

/// State of a catalog. A later publication does not change it.
pub trait PublishedState: Send + Sync {
    /// Returns the graph of its Snapshot.
    fn graph(&self) -> &Graph;

    /// Reads the uncompressed Shard of a Package. An empty name is the global group.
    fn shard<'a>(&'a self, package: &'a str) -> BoxFuture<'a, Result<ShardChunks, PublishedError>>;
}

/// Lines of a Shard in chunks of any size.
pub type ShardChunks = BoxStream<'static, Result<Bytes, PublishedError>>;

/// Reason for which a catalog cannot answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublishedError {
    /// No such catalog is published.
    #[error("there is no such catalog")]
    NotFound,
    /// The catalog was removed, or is not for clients without credentials. Its clients must not get another one.
    #[error("the catalog of this host is not served")]
    NotServed,
    /// opm would refuse the content. The text says why.
    #[error("the catalog has errors that keep opm from serving it: {0}")]
    Refused(String),
    /// The index of the catalog would take too much memory.
    #[error("the catalog is too large for this API")]
    TooLarge,
    /// The store does not answer, or what it has is damaged.
    #[error("the catalog cannot be read now: {0}")]
    Unavailable(String),
}
