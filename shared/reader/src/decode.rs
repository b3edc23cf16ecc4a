//! Decompression of streams, with the memory of one window.

use std::io;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use model::{Key, ZSTD_WINDOW_LOG_MAX};
use zstd::{
    stream::raw::{DParameter, Decoder, Operation},
    zstd_safe::{InBuffer, OutBuffer},
};

use crate::{
    error::ReaderError,
    stream::{Chunks, exact},
};

/// Size of the chunks that decompression returns, in bytes: large enough to keep system calls few, small enough for a
/// thousand requests at a time.
const CHUNK: usize = 128 << 10;

/// Decompresses a stream of one zstd frame of exactly `size` bytes. Fails if the frame ends early or if bytes follow it.
pub(crate) fn decode(body: Chunks, size: u64, key: Key) -> Result<Chunks, ReaderError> {
    let mut decoder = Decoder::new().map_err(ReaderError::coding(&key))?;
    let limit = DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX);
    // The window bounds the memory of the decoder. A frame in a damaged or foreign store could ask for gigabytes.
    decoder.set_parameter(limit).map_err(ReaderError::coding(&key))?;
    let decoding = FrameDecoder {
        body,
        decoder,
        input: Bytes::new(),
        full: false,
        ended: false,
        key: key.clone(),
    };
    let decoded = stream::try_unfold(decoding, FrameDecoder::next).boxed();
    Ok(exact(decoded, size, key))
}

struct FrameDecoder {
    body: Chunks,
    decoder: Decoder<'static>,
    input: Bytes,
    /// True if the last step filled its chunk: the decoder may hold more output without more input.
    full: bool,
    ended: bool,
    key: Key,
}

impl FrameDecoder {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, ReaderError> {
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
                // Several clients stop after the first frame, so a second one would be read differently by them.
                return Err(self.failed(io::ErrorKind::InvalidData.into()));
            }
            let output = self.step().map_err(|error| self.failed(error))?;
            if !output.is_empty() {
                return Ok(Some((output, self)));
            }
        }
    }

    /// Returns the next chunk. Sets `ended` when the frame is complete and its checksum, if it has one, is right.
    fn step(&mut self) -> io::Result<Bytes> {
        let mut output: Vec<u8> = Vec::with_capacity(CHUNK);
        let mut source = InBuffer::around(&self.input);
        let mut sink = OutBuffer::around(&mut output);
        // Reads all input unless the chunk is full or the frame ends before.
        self.ended = self.decoder.run(&mut source, &mut sink)? == 0;
        self.full = !self.ended && sink.pos() == sink.capacity();
        let read = source.pos();
        drop(self.input.split_to(read));
        Ok(output.into())
    }

    fn failed(&self, error: io::Error) -> ReaderError {
        ReaderError::coding(&self.key)(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> Vec<u8> {
        (0_u32..200_000).flat_map(u32::to_be_bytes).collect()
    }

    async fn decoded(bytes: &[u8], chunk: usize) -> Option<Bytes> {
        let pieces = bytes.chunks(chunk).map(|piece| Ok(Bytes::copy_from_slice(piece)));
        let body = stream::iter(pieces.collect::<Vec<_>>()).boxed();
        store::collect(decode(body, 800_000, Key::Catalogs).unwrap(), 800_000)
            .await
            .ok()
    }

    #[tokio::test]
    async fn decode_reads_a_frame_in_chunks_of_all_sizes() {
        let frame = zstd::bulk::compress(&lines(), 3).unwrap();
        for chunk in [1 << 10, 100 << 10, 10 << 20] {
            assert!(decoded(&frame, chunk).await == Some(lines().into()), "{chunk}");
        }
    }

    #[tokio::test]
    async fn decode_refuses_incomplete_frames_and_trailing_bytes() {
        let frame = zstd::bulk::compress(&lines(), 3).unwrap();
        assert_eq!(decoded(&frame[..frame.len() - 1], 1000).await, None);
        assert_eq!(decoded(&[&frame[..], b"x"].concat(), 1 << 20).await, None);
        assert_eq!(decoded(b"", 1).await, None);
        assert_eq!(decoded(b"no zstd", 1).await, None);
    }
}
