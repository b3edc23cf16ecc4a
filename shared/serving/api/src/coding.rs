//! Content codings of answers: compression in memory, or while an answer is sent.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use model::{Encoding, Key};
use reader::{Chunks, ReaderError, map_chunks};

// The compressors' own defaults. Stored objects are made once at denser levels; here a client
// waits.
const ZSTD_LEVEL: i32 = 3;
const GZIP_LEVEL: u32 = 6;

/// Window of zstd for what is compressed while it is sent, as a power of two. Measured on the
/// 132 MB of lines of a large catalog: 8.5 MB by an encoder of 2.5 MB of memory; the default takes
/// 3.5 MB for 7.3 MB, and 2^18 takes 1.5 MB for 12.6 MB.
const ZSTD_WINDOW_LOG: u32 = 20;

/// Returns the memory of an encoder, in bytes: of zstd by `ZSTD_estimateCStreamSize`.
pub(crate) const fn encoder_memory(encoding: Encoding) -> u64 {
    match encoding {
        Encoding::Identity => 0,
        Encoding::Gzip => 320 << 10,
        Encoding::Zstd => 2560 << 10,
    }
}

/// Compresses in memory. Identity returns the bytes as they are.
pub(crate) fn encode_all(bytes: Bytes, coding: Encoding) -> io::Result<Bytes> {
    let Some(mut encoder) = CodingEncoder::new(coding)? else {
        return Ok(bytes);
    };
    let mut output = encoder.push(Some(&bytes))?.to_vec();
    output.extend_from_slice(&encoder.push(None)?);
    Ok(output.into())
}

/// Compresses a stream; identity returns it as it is. Other chunks give equal content but not
/// always equal bytes, so a body that was compressed on the fly is never served in parts.
pub(crate) fn encode(body: Chunks, coding: Encoding, key: Key) -> Result<Chunks, ReaderError> {
    let Some(mut encoder) = CodingEncoder::new(coding).map_err(ReaderError::coding(&key))? else {
        return Ok(body);
    };
    Ok(map_chunks(body, move |chunk| {
        encoder
            .push(chunk.as_deref())
            .map_err(ReaderError::coding(&key))
    }))
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
            Encoding::Gzip => Some(Self::Gzip(GzEncoder::new(
                Vec::new(),
                Compression::new(GZIP_LEVEL),
            ))),
            Encoding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?;
                encoder.window_log(ZSTD_WINDOW_LOG)?;
                Some(Self::Zstd(encoder))
            }
        })
    }

    /// Compresses bytes, or ends the output after the last ones. Returns the output since the last
    /// call, which is often empty.
    fn push(&mut self, bytes: Option<&[u8]>) -> io::Result<Bytes> {
        match (&mut *self, bytes) {
            (Self::Gzip(encoder), Some(bytes)) => encoder.write_all(bytes)?,
            (Self::Zstd(encoder), Some(bytes)) => encoder.write_all(bytes)?,
            (Self::Gzip(encoder), None) => encoder.try_finish()?,
            (Self::Zstd(encoder), None) => encoder.do_finish()?,
        }
        let output = match self {
            Self::Gzip(encoder) => encoder.get_mut(),
            Self::Zstd(encoder) => encoder.get_mut(),
        };
        Ok(std::mem::take(output).into())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt, TryStreamExt, stream};

    use super::*;

    #[tokio::test]
    async fn encode_makes_one_frame_of_chunks_of_all_sizes() {
        let lines: Vec<u8> = (0_u32..200_000).flat_map(u32::to_be_bytes).collect();
        for chunk in [1 << 10, 100 << 10, 10 << 20] {
            let pieces = lines
                .chunks(chunk)
                .map(|piece| Ok(Bytes::copy_from_slice(piece)));
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
