//! Adapters for streams of body chunks. None holds more than a few chunks.

use std::{collections::VecDeque, io, mem, ops::Range};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use model::{Key, ZSTD_WINDOW_LOG_MAX};
use zstd::stream::raw::{DParameter, Decoder, Operation};
use zstd::zstd_safe::{InBuffer, OutBuffer};

use crate::{error::ReaderError, objects::check_size};

/// Bytes of a body, in order. An error ends them.
pub type Chunks = BoxStream<'static, Result<Bytes, ReaderError>>;

/// Returns the chunks of an object that a store sends.
pub(crate) fn stored(body: store::Body) -> Chunks {
    body.map_err(ReaderError::Store).boxed()
}

/// Returns a stream of one chunk.
pub(crate) fn once(bytes: Bytes) -> Chunks {
    stream::once(async { Ok(bytes) }).boxed()
}

/// Passes on what `map` makes of each chunk and, at a clean end, of `None`. Leaves out empty
/// chunks, and ends with the first error.
pub fn map_chunks<M>(chunks: Chunks, map: M) -> Chunks
where
    M: FnMut(Option<Bytes>) -> Result<Bytes, ReaderError> + Send + 'static,
{
    let state = (Some(chunks), map);
    stream::try_unfold(state, |(mut chunks, mut map)| async move {
        while let Some(left) = &mut chunks {
            let chunk = left.try_next().await?;
            if chunk.is_none() {
                chunks = None;
            }
            let made = map(chunk)?;
            if !made.is_empty() {
                return Ok(Some((made, (chunks, map))));
            }
        }
        Ok(None)
    })
    .boxed()
}

/// Passes on exactly `expected` bytes or fails. The last chunk is held back until a clean end was
/// seen, so that no client takes a body with an error at its end, such as a wrong hash, for a
/// complete one. Other chunks are not: each would take memory while the client takes another.
pub(crate) fn exact(chunks: Chunks, expected: u64, key: Key) -> Chunks {
    let mut last = Bytes::new();
    let mut found = 0_u64;
    map_chunks(chunks, move |chunk| {
        let Some(chunk) = chunk else {
            check_size(&key, expected, found)?;
            return Ok(mem::take(&mut last));
        };
        found += chunk.len() as u64;
        if found > expected {
            check_size(&key, expected, found)?;
        }
        if found < expected || chunk.is_empty() {
            return Ok(chunk);
        }
        last = chunk;
        Ok(Bytes::new())
    })
}

/// Passes on only the bytes in `ranges`, which ascend, and ends with the last of them. The caller
/// counts bytes and notices a stream that is too short.
pub fn pick(chunks: Chunks, ranges: impl IntoIterator<Item = Range<u64>>) -> Chunks {
    let ranges: VecDeque<_> = ranges
        .into_iter()
        .filter(|range| !range.is_empty())
        .collect();
    let state = (chunks, ranges, 0);
    let picked = stream::try_unfold(state, |(mut chunks, mut ranges, start)| async move {
        if ranges.is_empty() {
            return Ok(None);
        }
        let Some(chunk) = chunks.try_next().await? else {
            return Ok(None);
        };
        let end = start + chunk.len() as u64;
        let mut pieces = Vec::new();
        while let Some(range) = ranges.pop_front_if(|range| range.start < end) {
            let piece = range.start.max(start) - start..range.end.min(end) - start;
            pieces.push(Ok(chunk.slice(small(piece.start)..small(piece.end))));
            if range.end > end {
                ranges.push_front(end..range.end);
            }
        }
        Ok::<_, ReaderError>(Some((stream::iter(pieces), (chunks, ranges, end))))
    });
    picked.try_flatten().boxed()
}

/// Converts a length that is at most that of bytes in memory.
pub fn small(length: u64) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}

/// Size of the chunks that decompression returns, in bytes: large enough to keep system calls few,
/// small enough for a thousand requests at a time.
const CHUNK: usize = 64 << 10;

/// Memory of the chunks of one stream, in bytes: one that the client takes, and the next one.
pub const CHUNKS_BYTES: u64 = 2 * CHUNK as u64;

/// Returns the memory of a decoder of one frame of `size` bytes, in bytes: its window, two blocks
/// and its tables.
pub(crate) fn decoder_memory(size: u64) -> u64 {
    let window = size.next_power_of_two().min(1 << ZSTD_WINDOW_LOG_MAX);
    window + DECODER_BYTES
}

/// Memory of a decoder beside its window, in bytes: `ZSTD_estimateDStreamSize`.
const DECODER_BYTES: u64 = 480 << 10;

/// Decompresses a stream of one zstd frame of exactly `size` bytes. Fails if the frame ends early
/// or if bytes follow it.
pub(crate) fn decode(body: Chunks, size: u64, key: Key) -> Result<Chunks, ReaderError> {
    let mut decoder = Decoder::new().map_err(ReaderError::coding(&key))?;
    let limit = DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX);
    // The window bounds the memory of the decoder. A frame in a damaged or foreign store could ask
    // for gigabytes.
    decoder
        .set_parameter(limit)
        .map_err(ReaderError::coding(&key))?;
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
                    None => {
                        return Err(ReaderError::coding(&self.key)(
                            io::ErrorKind::UnexpectedEof.into(),
                        ));
                    }
                }
                continue;
            }
            if self.ended {
                // Several clients stop after the first frame, so a second one would be read
                // differently by them.
                return Err(ReaderError::coding(&self.key)(
                    io::ErrorKind::InvalidData.into(),
                ));
            }
            let output = self.step().map_err(ReaderError::coding(&self.key))?;
            if !output.is_empty() {
                return Ok(Some((output, self)));
            }
        }
    }

    /// Returns the next chunk. Sets `ended` when the frame is complete and its checksum, if it has
    /// one, is right.
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
}

#[cfg(test)]
#[expect(
    clippy::single_range_in_vec_init,
    reason = "ranges are what is compared"
)]
mod tests {
    use super::*;

    fn chunks(parts: &'static [&'static str]) -> Chunks {
        stream::iter(
            parts
                .iter()
                .map(|part| Ok(Bytes::from_static(part.as_bytes()))),
        )
        .boxed()
    }

    async fn text(mut chunks: Chunks) -> (String, bool) {
        let mut text = String::new();
        loop {
            match chunks.try_next().await {
                Ok(Some(chunk)) => text.push_str(std::str::from_utf8(&chunk).unwrap()),
                Ok(None) => return (text, true),
                Err(_) => return (text, false),
            }
        }
    }

    #[tokio::test]
    async fn exact_fails_unless_all_bytes_came() {
        for (parts, length, expected) in [
            (&["ab", "cd"][..], 4, ("abcd", true)),
            (&["ab", "", "cd", ""], 4, ("abcd", true)),
            (&[], 0, ("", true)),
            (&["ab", "cd"], 5, ("abcd", false)),
            (&["ab", "cd"], 4, ("abcd", true)),
            (&["ab", "cd", "", "e"], 4, ("ab", false)),
            (&["ab", "cd"], 3, ("ab", false)),
            (&["abcd"], 5, ("abcd", false)),
        ] {
            let (found, complete) = text(exact(chunks(parts), length, Key::Catalogs)).await;
            assert_eq!((found.as_str(), complete), expected, "{parts:?} {length}");
        }
    }

    #[tokio::test]
    async fn exact_holds_the_last_chunk_until_the_end_is_clean() {
        let broken = stream::iter([
            Ok(Bytes::from_static(b"ab")),
            Err(ReaderError::UnknownPackage(String::new())),
        ])
        .boxed();
        assert_eq!(
            text(exact(broken, 2, Key::Catalogs)).await,
            (String::new(), false)
        );
    }

    #[tokio::test]
    async fn pick_takes_ranges_across_chunks() {
        for (ranges, expected) in [
            (vec![0..9], "abcdefghi"),
            (vec![0..1, 1..2, 8..9], "abi"),
            (vec![1..5], "bcde"),
            (vec![2..2, 4..5], "e"),
            (vec![], ""),
            (vec![7..100], "hi"),
        ] {
            let picked = pick(chunks(&["abc", "d", "", "efghi"]), ranges.clone());
            assert_eq!(
                text(picked).await,
                (expected.to_owned(), true),
                "{ranges:?}"
            );
        }
    }

    #[tokio::test]
    async fn decode_reads_whole_frames_alone_in_chunks_of_all_sizes() {
        let lines: Bytes = (0_u32..200_000).flat_map(u32::to_be_bytes).collect();
        let frame = zstd::bulk::compress(&lines, 3).unwrap();
        let longer = [&frame[..], b"x"].concat();
        for (bytes, expected) in [
            (&frame[..], Some(&lines)),
            (&frame[..frame.len() - 1], None),
            (&longer, None),
            (b"", None),
            (b"no zstd", None),
        ] {
            for chunk in [1 << 10, 100 << 10, 10 << 20] {
                let pieces = bytes
                    .chunks(chunk)
                    .map(|piece| Ok(Bytes::copy_from_slice(piece)));
                let body = stream::iter(pieces.collect::<Vec<_>>()).boxed();
                let decoded =
                    store::collect(decode(body, 800_000, Key::Catalogs).unwrap(), 800_000).await;
                assert!(
                    decoded.ok().as_ref() == expected,
                    "{} bytes by {chunk}",
                    bytes.len()
                );
            }
        }
    }
}
