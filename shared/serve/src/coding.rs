//! Compression as a stream of chunks, with the memory of one window.

use std::io::{self, Read, Write};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use futures_util::{StreamExt, TryStreamExt, stream};
use layout::{Key, ZSTD_WINDOW_LOG_MAX};
use zstd::{
    stream::raw::{DParameter, Decoder, Operation},
    zstd_safe::{InBuffer, OutBuffer},
};

use crate::{
    error::Error,
    fields::Coding,
    stream::{self as chunks, Chunks},
};

/// What one step puts out: large enough to keep the system calls few, small enough for a thousand requests.
const CHUNK: usize = 128 << 10;

/// The compressors' own defaults: a stored object is made once with more care, these are made while somebody waits.
const ZSTD_LEVEL: i32 = 3;
const GZIP_LEVEL: u32 = 6;

/// Undoes zstd. A frame that ends early, or is followed by anything, is an error.
pub(crate) fn decode(body: Chunks, key: Key) -> Result<Chunks, Error> {
    let mut decoder = Decoder::new().map_err(chunks::coding(&key))?;
    let limit = DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX);
    decoder.set_parameter(limit).map_err(chunks::coding(&key))?;
    let decoding = Decoding {
        body,
        decoder,
        input: Bytes::new(),
        full: false,
        ended: false,
        key,
    };
    Ok(stream::try_unfold(decoding, Decoding::next).boxed())
}

struct Decoding {
    body: Chunks,
    decoder: Decoder<'static>,
    input: Bytes,
    /// The last step filled its chunk, so the decoder may hold more without more input.
    full: bool,
    ended: bool,
    key: Key,
}

impl Decoding {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, Error> {
        loop {
            if self.input.is_empty() && !self.full {
                match self.body.try_next().await? {
                    Some(next) => self.input = next,
                    None if self.ended => return Ok(None),
                    None => return Err(self.failed(io::ErrorKind::UnexpectedEof.into())),
                }
                continue;
            }
            if self.ended {
                return Err(self.failed(io::ErrorKind::InvalidData.into()));
            }
            let output = self.step().map_err(|error| self.failed(error))?;
            if !output.is_empty() {
                return Ok(Some((output, self)));
            }
        }
    }

    /// Makes one chunk. The frame has ended when it is complete and its checksum, if it has one, is right.
    fn step(&mut self) -> io::Result<Bytes> {
        let mut output: Vec<u8> = Vec::with_capacity(CHUNK);
        let mut source = InBuffer::around(&self.input);
        let mut sink = OutBuffer::around(&mut output);
        loop {
            self.ended = self.decoder.run(&mut source, &mut sink)? == 0;
            self.full = !self.ended && sink.pos() == sink.capacity();
            if self.ended || self.full || source.pos() == source.src.len() {
                break;
            }
        }
        let read = source.pos();
        drop(self.input.split_to(read));
        Ok(output.into())
    }

    fn failed(&self, error: io::Error) -> Error {
        chunks::coding(&self.key)(error)
    }
}

/// Undoes zstd in memory.
pub(crate) fn decode_all(bytes: &[u8], size: u64) -> io::Result<Bytes> {
    let capacity = usize::try_from(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let decoded = zstd::bulk::decompress(bytes, capacity)?;
    if decoded.len() == capacity {
        Ok(decoded.into())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

/// Undoes zstd in memory where the size is not known.
pub(crate) fn decode_at_most(bytes: &[u8], limit: u64) -> io::Result<Vec<u8>> {
    let mut decoded = Vec::new();
    let decoder = zstd::stream::read::Decoder::with_buffer(bytes)?;
    decoder.take(limit + 1).read_to_end(&mut decoded)?;
    if decoded.len() as u64 > limit {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(decoded)
}

/// Compresses in memory.
pub(crate) fn encode_all(bytes: &[u8], coding: Coding) -> io::Result<Bytes> {
    let mut encoder = Encoder::new(coding)?;
    let mut output = encoder.write(bytes)?.to_vec();
    output.extend_from_slice(&encoder.finish()?);
    Ok(output.into())
}

/// Compresses as it goes. The same bytes in the same chunks or others give equal content, but not always equal
/// bytes: such a body is never served in parts.
pub(crate) fn encode(body: Chunks, coding: Coding, key: Key) -> Result<Chunks, Error> {
    let encoder = Encoder::new(coding).map_err(chunks::coding(&key))?;
    let state = Some((body, encoder, key));
    let encoded = stream::try_unfold(state, |state| async {
        let Some((mut body, mut encoder, key)) = state else {
            return Ok::<_, Error>(None);
        };
        while let Some(chunk) = body.try_next().await? {
            let output = encoder.write(&chunk).map_err(chunks::coding(&key))?;
            if !output.is_empty() {
                return Ok(Some((output, Some((body, encoder, key)))));
            }
        }
        let last = encoder.finish().map_err(chunks::coding(&key))?;
        Ok(Some((last, None)))
    });
    Ok(encoded.boxed())
}

enum Encoder {
    Identity(Vec<u8>),
    Gzip(GzEncoder<Vec<u8>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Encoder {
    fn new(coding: Coding) -> io::Result<Self> {
        Ok(match coding {
            Coding::Identity => Self::Identity(Vec::new()),
            Coding::Gzip => Self::Gzip(GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL))),
            Coding::Zstd => Self::Zstd(zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?),
        })
    }

    /// Takes bytes in and gives what has come out, which is often nothing.
    fn write(&mut self, bytes: &[u8]) -> io::Result<Bytes> {
        let output = match self {
            Self::Identity(output) => {
                output.extend_from_slice(bytes);
                output
            }
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
            Self::Identity(output) => Ok(output.into()),
            Self::Gzip(encoder) => Ok(encoder.finish()?.into()),
            Self::Zstd(encoder) => Ok(encoder.finish()?.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> Vec<u8> {
        (0_u32..200_000).flat_map(u32::to_be_bytes).collect()
    }

    fn body(bytes: &[u8], chunk: usize) -> Chunks {
        let pieces: Vec<_> = bytes
            .chunks(chunk)
            .map(|piece| Ok(Bytes::copy_from_slice(piece)))
            .collect();
        stream::iter(pieces).boxed()
    }

    async fn decoded(bytes: &[u8], chunk: usize) -> Option<Vec<u8>> {
        let decoding = decode(body(bytes, chunk), Key::Catalogs).unwrap();
        chunks::collect(decoding, 0).await.ok()
    }

    #[tokio::test]
    async fn what_was_compressed_comes_back_whatever_the_chunks() {
        for chunk in [1 << 10, 100 << 10, 10 << 20] {
            let encoded = encode(body(&lines(), chunk), Coding::Zstd, Key::Catalogs).unwrap();
            let encoded = chunks::collect(encoded, 0).await.unwrap();
            assert!(decoded(&encoded, chunk).await == Some(lines()), "{chunk}");
        }
    }

    #[tokio::test]
    async fn a_frame_has_to_be_whole_and_alone() {
        let frame = encode_all(&lines(), Coding::Zstd).unwrap();
        assert_eq!(decoded(&frame[..frame.len() - 1], 1000).await, None);
        assert_eq!(decoded(&[&frame[..], b"x"].concat(), 1 << 20).await, None);
        assert_eq!(decoded(b"", 1).await, None);
        assert_eq!(decoded(b"no zstd", 1).await, None);
        assert!(decode_all(&frame, 800_000).is_ok());
        assert!(decode_all(&frame, 799_999).is_err() && decode_all(&frame, 800_001).is_err());
    }

    #[test]
    fn exactly_the_limit_is_allowed() {
        let frame = encode_all(&lines(), Coding::Zstd).unwrap();
        assert!(decode_at_most(&frame, 800_000).is_ok());
        assert!(decode_at_most(&frame, 799_999).is_err());
    }
}
