use std::io::{self, Read};

use layout::{Document, DocumentError, Index, ZSTD_WINDOW_LOG_MAX};

/// Why a stored index cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// It is not compressed with zstd.
    #[error("it does not decompress")]
    Coding(#[source] io::Error),
    /// It has more than [`Index::MAX_BYTES`].
    #[error("it has more than {} bytes", Index::MAX_BYTES)]
    TooLarge,
    /// It decompresses to something else.
    #[error(transparent)]
    Document(#[from] DocumentError),
}

/// Reads an index as it is stored. Its key names the catalog's content and not the index's own, so whatever comes from
/// elsewhere has to be read before it is relied on.
///
/// # Errors
/// [`IndexError`] if it is none.
pub fn read_index(stored: &[u8]) -> Result<Index, IndexError> {
    let mut content = Vec::new();
    let mut decoder = zstd::stream::read::Decoder::with_buffer(stored).map_err(IndexError::Coding)?;
    decoder
        .window_log_max(ZSTD_WINDOW_LOG_MAX)
        .expect("the limit is one that zstd knows");
    let read = decoder.take(Index::MAX_BYTES + 1).read_to_end(&mut content);
    if read.map_err(IndexError::Coding)? as u64 > Index::MAX_BYTES {
        return Err(IndexError::TooLarge);
    }
    Ok(Index::from_bytes(&content)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &[u8]) -> Result<Index, IndexError> {
        read_index(&zstd::bulk::compress(content, 1).unwrap())
    }

    #[test]
    fn what_was_stored_is_read() {
        let index = Index::default();
        assert_eq!(read(&index.to_bytes()).unwrap(), index);
    }

    #[test]
    fn what_is_no_index_is_told() {
        assert!(matches!(read_index(b"plain"), Err(IndexError::Coding(_))));
        assert!(matches!(read(b"{\"shards\": [{}]}"), Err(IndexError::Document(_))));
    }

    #[test]
    fn a_bomb_is_not_unpacked() {
        let spaces = io::repeat(b' ').take(Index::MAX_BYTES + 1);
        let bomb = zstd::stream::encode_all(spaces, 1).unwrap();
        assert!(bomb.len() < 1 << 20);
        assert!(matches!(read_index(&bomb), Err(IndexError::TooLarge)));
    }
}
