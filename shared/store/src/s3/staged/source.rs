use std::{fs::File, io, os::unix::fs::FileExt as _, sync::Arc};

use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use futures_util::{Stream, TryStreamExt as _, stream};
use http_body::Frame;
use http_body_util::StreamBody;
use model::{Hasher, Key, Sha256};
use tokio::task::spawn_blocking;

/// Size of one read of a spooled object, in bytes. The HTTP client holds about two of them for each put. Larger ones were not
/// faster: a connection takes less at a time.
const CHUNK: u64 = 256 << 10;

/// Bytes of an object that is to be written.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Memory(Bytes),
    File { file: Arc<File>, size: u64 },
}

impl From<Bytes> for Source {
    fn from(bytes: Bytes) -> Self {
        Self::Memory(bytes)
    }
}

impl Source {
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File { size, .. } => *size,
        }
    }

    /// Returns the sha256 that the bytes must have. The name of an immutable object is that hash. It is not computed again: the
    /// server compares it with what it receives, so other bytes cannot get under the name.
    pub(crate) async fn sha256(&self, key: &Key) -> io::Result<Sha256> {
        match (key, self) {
            (Key::Object(_, sha256), _) => Ok(*sha256),
            (_, Self::Memory(bytes)) => Ok(Sha256::of(bytes)),
            (_, Self::File { file, size }) => {
                let add = async |mut hasher: Hasher, chunk: Bytes| {
                    hasher.update(&chunk);
                    Ok(hasher)
                };
                Ok(chunks(file, *size).try_fold(Hasher::new(), add).await?.finish())
            }
        }
    }

    /// Returns the body of a request. The SDK can start it again for each attempt.
    pub(crate) fn body(&self) -> SdkBody {
        match self {
            Self::Memory(bytes) => bytes.clone().into(),
            Self::File { file, size } => {
                let (file, size) = (Arc::clone(file), *size);
                SdkBody::retryable(move || {
                    SdkBody::from_body_1_x(StreamBody::new(chunks(&file, size).map_ok(Frame::data)))
                })
            }
        }
    }
}

/// Reads a file from its start. It does not move the file's offset, so several bodies can read one file.
fn chunks(file: &Arc<File>, size: u64) -> impl Stream<Item = io::Result<Bytes>> + Send + Sync + use<> {
    let file = Arc::clone(file);
    stream::try_unfold(0, move |at| {
        let file = Arc::clone(&file);
        async move {
            if at == size {
                return Ok(None);
            }
            let end = size.min(at + CHUNK);
            let chunk = spawn_blocking(move || read_at(&file, at, (end - at) as usize)).await??;
            Ok(Some((chunk, end)))
        }
    })
}

fn read_at(file: &File, start: u64, length: usize) -> io::Result<Bytes> {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, start)?;
    Ok(bytes.into())
}
