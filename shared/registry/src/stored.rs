use std::io;

use bytes::Bytes;
use model::{Sha256, decode_zstd, encode_zstd};
use prost::Message;

use crate::{Graph, GraphBuilder, PackageRecord, RegistryError};

/// Compression level of a graph: 19 makes it a tenth smaller and takes twenty times as long.
const GRAPH_LEVEL: i32 = 9;

/// Maximum size of a graph, in bytes: thirteen times that of the largest real catalog. A Snapshot with a larger one has none.
pub const GRAPH_BYTES_MAX: usize = 64 << 20;

impl PackageRecord {
    /// Returns the record of lines that opm would not serve, so that they are not read again. The reason is not empty.
    pub fn refused(name: &str, lines: Sha256, reason: String) -> Self {
        Self {
            name: name.to_owned(),
            lines: lines.as_bytes().to_vec(),
            refusal: reason,
            ..Self::default()
        }
    }

    /// Returns the record as [`GraphBuilder::push_raw`] takes it.
    pub fn to_bytes(&self) -> Bytes {
        self.encode_to_vec().into()
    }
}

impl GraphBuilder {
    /// Returns the stored bytes of the graph: one zstd frame. `None` if it is larger than [`GRAPH_BYTES_MAX`].
    ///
    /// # Errors
    /// Fails if the compressor cannot allocate its memory.
    pub fn into_stored(self) -> io::Result<Option<Vec<u8>>> {
        let bytes = self.finish();
        let is_small = bytes.len() <= GRAPH_BYTES_MAX;
        is_small.then(|| encode_zstd(&bytes, GRAPH_LEVEL)).transpose()
    }
}

impl Graph {
    /// Reads stored bytes.
    ///
    /// # Errors
    /// Fails if the bytes are not one zstd frame within [`GRAPH_BYTES_MAX`], else as [`Self::parse`].
    pub fn from_stored(stored: &[u8]) -> Result<Self, RegistryError> {
        let bytes = decode_zstd(stored, GRAPH_BYTES_MAX as u64);
        let bytes = bytes.map_err(|_| RegistryError::Damaged("it cannot be decompressed"))?;
        Self::parse(bytes.into(), GRAPH_BYTES_MAX)
    }
}
