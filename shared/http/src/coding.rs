//! Compression of answers, with the memory of one window.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use futures_util::{StreamExt, TryStreamExt, stream};
use model::{Encoding, Key};
use reader::{Chunks, ReaderError};

// The compressors' own defaults. Stored objects are made once at denser levels; here a client waits.
const ZSTD_LEVEL: i32 = 3;
const GZIP_LEVEL: u32 = 6;

/// Compresses in memory. Identity returns the bytes as they are.
pub(crate) fn encode_all(bytes: Bytes, coding: Encoding) -> io::Result<Bytes> {
    let Some(mut encoder) = CodingEncoder::new(coding)? else {
        return Ok(bytes);
    };
    let mut output = encoder.write(&bytes)?.to_vec();
    output.extend_from_slice(&encoder.finish()?);
    Ok(output.into())
}

/// Compresses a stream; identity returns it as it is. Other chunks give equal content but not always equal bytes, so a
/// body that was compressed on the fly is never served in parts.
pub(crate) fn encode(body: Chunks, coding: Encoding, key: Key) -> Result<Chunks, ReaderError> {
    let Some(encoder) = CodingEncoder::new(coding).map_err(ReaderError::coding(&key))? else {
        return Ok(body);
    };
    let state = Some((body, encoder, key));
    let encoded = stream::try_unfold(state, |state| async {
        let Some((mut body, mut encoder, key)) = state else {
            return Ok::<_, ReaderError>(None);
        };
        while let Some(chunk) = body.try_next().await? {
            let output = encoder.write(&chunk).map_err(ReaderError::coding(&key))?;
            if !output.is_empty() {
                return Ok(Some((output, Some((body, encoder, key)))));
            }
        }
        let last = encoder.finish().map_err(ReaderError::coding(&key))?;
        Ok(Some((last, None)))
    });
    Ok(encoded.boxed())
}

enum CodingEncoder {
    Gzip(GzEncoder<Vec<u8>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl CodingEncoder {
    /// Returns `None` for identity, which needs no compressor.
    fn new(coding: Encoding) -> io::Result<Option<Self>> {
        Ok(match coding {
            Encoding::Identity => None,
            Encoding::Gzip => Some(Self::Gzip(GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL)))),
            Encoding::Zstd => Some(Self::Zstd(zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?)),
        })
    }

    /// Compresses bytes and returns the output so far, which is often empty.
    fn write(&mut self, bytes: &[u8]) -> io::Result<Bytes> {
        let output = match self {
            Self::Gzip(encoder) => {
                encoder.write_all(bytes)?;
                encoder.get_mut()
            }
            Self::Zstd(encoder) => {
                encoder.write_all(bytes)?;
                encoder.get_mut()
            }
        };
        Ok(std::mem::take(output).into())
    }

    fn finish(self) -> io::Result<Bytes> {
        match self {
            Self::Gzip(encoder) => Ok(encoder.finish()?.into()),
            Self::Zstd(encoder) => Ok(encoder.finish()?.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn encode_makes_one_frame_of_chunks_of_all_sizes() {
        let lines: Vec<u8> = (0_u32..200_000).flat_map(u32::to_be_bytes).collect();
        for chunk in [1 << 10, 100 << 10, 10 << 20] {
            let pieces = lines.chunks(chunk).map(|piece| Ok(Bytes::copy_from_slice(piece)));
            let body = stream::iter(pieces.collect::<Vec<_>>()).boxed();
            let encoded: Vec<Bytes> = encode(body, Encoding::Zstd, Key::Catalogs)
                .unwrap()
                .try_collect()
                .await
                .unwrap();
            let decoded = zstd::bulk::decompress(&encoded.concat(), lines.len());
            assert!(decoded.unwrap() == lines, "{chunk}");
        }
    }
}
