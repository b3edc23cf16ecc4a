#![doc = include_str!("../README.md")]

mod buffer;
mod canon;
mod chunks;
mod error;
mod index_ignore;
mod json;
mod meta;
mod stream;
mod yaml;

pub use buffer::ChunkBuffers;
pub use chunks::{Chunk, Chunks};
pub use error::{FbcError, FbcErrorKind};
pub use index_ignore::IndexIgnore;
pub use meta::{DocumentPosition, Meta, walk_order};
pub use yaml::{is_yaml, yaml_to_json};

/// Limits on the input. A value equal to its limit passes; one more gives [`FbcErrorKind::Limit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FbcLimits {
    /// Maximum size of one document as written in the file, in bytes. Default 64 MiB: a document is
    /// held in memory, and the largest known bundles have about 10 MB.
    pub document_bytes: usize,
    /// Maximum depth of nested objects and arrays. Default 10,000, the limit of Go's JSON and YAML
    /// decoders.
    pub depth: usize,
    /// Maximum number of canonical bytes that the aliases of one YAML document may add. Default 64
    /// MiB.
    ///
    /// Real catalogs use no aliases. Without a limit, a few lines of nested aliases expand without
    /// end.
    pub alias_bytes: usize,
    /// Maximum number of bytes of memory for each byte of a chunk while it is parsed, the chunk and
    /// its lines included. Default 8: real catalogs take 3 to 5. Chunks below 512 KiB may take as
    /// much as one of 512 KiB.
    pub memory_ratio: usize,
    /// Maximum number of bytes of memory for one document. A document that needs more, by
    /// `memory_ratio`, is refused before it is read to its end. Default 256 MiB.
    pub memory_bytes: usize,
}

impl FbcLimits {
    /// Returns the size of the largest document that fits into the memory for one, in bytes.
    pub(crate) fn memory_document_bytes(&self) -> usize {
        self.memory_bytes / self.memory_ratio.max(1)
    }

    /// Checks the size of a document in bytes.
    pub(crate) fn check_document(&self, size: usize) -> Result<(), FbcErrorKind> {
        if size > self.document_bytes {
            return Err(FbcErrorKind::limit("documentBytes", self.document_bytes));
        }
        if size > self.memory_document_bytes() {
            return Err(FbcErrorKind::limit("memoryBytes", self.memory_bytes));
        }
        Ok(())
    }
}

impl Default for FbcLimits {
    fn default() -> Self {
        Self {
            document_bytes: 64 << 20,
            depth: 10_000,
            alias_bytes: 64 << 20,
            memory_ratio: 8,
            memory_bytes: 256 << 20,
        }
    }
}
