use std::io::{self, BufReader, Read};

use futures_util::TryStreamExt;
use layout::{Form, Hasher, Key, Sha256, Stored};
use store::{Fetched, Get, Object, Store, StoreError, Version};
use tokio_util::io::{StreamReader, SyncIoBridge};

/// What an object turned out to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examined {
    /// Its bytes as stored.
    pub stored: Stored,
    /// The sha256 of its content; none if the bytes do not decompress.
    pub content: Option<Sha256>,
    /// The state that was read, for [`Condition::Replace`](store::Condition::Replace).
    pub version: Version,
}

/// Reads an object to its end and hashes it, stored and decompressed.
///
/// # Errors
/// As [`Store::get`]. Bytes that do not decompress are no error.
pub async fn examine(store: &dyn Store, key: &Key) -> Result<Examined, StoreError> {
    let Fetched::Object(Object { info, body }) = store.get(key, Get::default()).await? else {
        unreachable!("a read without `unless` always finds the object or fails");
    };
    let coding = key.content_encoding();
    let bridge = SyncIoBridge::new(StreamReader::new(body.map_err(io::Error::other)));
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| StoreError::Failed {
        operation: store::Operation::Get,
        key: key.to_string(),
        source,
    };
    let read = tokio::task::spawn_blocking(move || read(bridge, coding)).await;
    let read = read.map_err(|error| failed(error.into()))?;
    let (stored, content) = read.map_err(|error| failed(error.into()))?;
    Ok(Examined {
        stored,
        content,
        version: info.version,
    })
}

/// Only errors of `source` itself are errors.
fn read(source: impl Read, coding: Option<&str>) -> io::Result<(Stored, Option<Sha256>)> {
    let mut tee = Tee {
        source,
        hasher: Hasher::new(),
        size: 0,
        error: None,
    };
    let content = content(&mut tee, coding);
    // The decoder may have stopped early: the rest counts as stored bytes all the same.
    if tee.error.is_none() {
        io::copy(&mut tee, &mut io::sink())?;
    }
    match tee.error {
        Some(error) => Err(error),
        None => {
            let stored = Stored {
                size: tee.size,
                sha256: tee.hasher.finish(),
            };
            Ok((stored, content.ok()))
        }
    }
}

fn content(tee: &mut impl Read, coding: Option<&str>) -> io::Result<Sha256> {
    if coding == Form::Zstd.content_encoding() {
        hash(zstd::Decoder::new(tee)?)
    } else if coding == Form::Gzip.content_encoding() {
        hash(flate2::bufread::MultiGzDecoder::new(BufReader::new(tee)))
    } else {
        hash(tee)
    }
}

fn hash(mut content: impl Read) -> io::Result<Sha256> {
    let mut hasher = Hasher::new();
    let mut block = vec![0; 64 << 10];
    loop {
        match content.read(&mut block)? {
            0 => return Ok(hasher.finish()),
            length => hasher.update(&block[..length]),
        }
    }
}

/// Hashes what is read and tells the errors of the source from those of a decoder behind it.
struct Tee<R> {
    source: R,
    hasher: Hasher,
    size: u64,
    error: Option<io::Error>,
}

impl<R: Read> Read for Tee<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.source.read(buffer) {
            Ok(length) => {
                self.hasher.update(&buffer[..length]);
                self.size += length as u64;
                Ok(length)
            }
            Err(error) => {
                let kind = error.kind();
                self.error = Some(error);
                Err(kind.into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use store::{Condition, MemoryStore};

    use super::*;

    async fn examined(bytes: Vec<u8>) -> Examined {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let key = Key::Shard(Sha256::of(b"lines\n"));
        store.put(&key, bytes.into(), Condition::Always).await.unwrap();
        examine(&*store, &key).await.unwrap()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn tells_what_is_stored_and_what_it_holds() {
        let bytes = zstd::bulk::compress(b"lines\n", 3).unwrap();
        let expected = Stored {
            size: bytes.len() as u64,
            sha256: Sha256::of(&bytes),
        };
        let found = examined(bytes).await;
        assert_eq!(found.stored, expected);
        assert_eq!(found.content, Some(Sha256::of(b"lines\n")));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn damaged_bytes_have_no_content() {
        let mut bytes = zstd::bulk::compress(&[7; 1000], 3).unwrap();
        bytes.truncate(bytes.len() - 1);
        let found = examined(bytes.clone()).await;
        assert_eq!(
            found.stored,
            Stored {
                size: bytes.len() as u64,
                sha256: Sha256::of(&bytes)
            }
        );
        assert_eq!(found.content, None);
    }
}
