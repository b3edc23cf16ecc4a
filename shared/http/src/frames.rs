//! Lines of Shards in small compressed frames in memory, so that a few lines of a large Shard are read without the others.

use std::{io, ops::Range, sync::Arc};

use bytes::Bytes;
use futures_util::TryStreamExt;
use model::{Kind, Sha256, ShardRef};
use quick_cache::{Weighter, sync::Cache};

use crate::{
    app::{App, blocking},
    coding::{decode, decode_all},
    error::{ApiError, Corruption},
    stored::Extent,
    stream,
};

/// Memory for frames, in bytes: those of a large catalog, whose lines are ten times as long.
const FRAMES_BYTES: u64 = 24 << 20;

/// Estimated number of Shards with frames.
const SHARDS: usize = 512;

/// Size from which a frame ends with the next line, in bytes: decompressing it takes a tenth of a millisecond.
const FRAME_MIN: usize = 128 << 10;

/// Size at which a frame ends within a line, in bytes. It bounds the memory for one frame.
const FRAME_MAX: usize = 1 << 20;

/// Level of the compression. A client waits for the first lines of a Shard.
const LEVEL: i32 = 1;

/// Frames of Shards, by the hash of their lines.
#[derive(Debug)]
pub(crate) struct FrameCache(Cache<Sha256, Arc<Frames>, FramesWeight>);

/// Lines of one Shard, compressed in parts.
#[derive(Debug)]
struct Frames {
    frames: Vec<Frame>,
    /// Length of the lines, in bytes.
    size: u64,
}

#[derive(Debug)]
struct Frame {
    /// Position of its first byte in the lines.
    start: u64,
    compressed: Box<[u8]>,
}

/// Weighs frames by the memory that they take, in bytes.
#[derive(Debug, Clone, Copy)]
struct FramesWeight;

impl Weighter<Sha256, Arc<Frames>> for FramesWeight {
    fn weight(&self, _: &Sha256, frames: &Arc<Frames>) -> u64 {
        let frames = frames.frames.iter();
        frames
            .map(|frame| (frame.compressed.len() + size_of::<Frame>()) as u64)
            .sum::<u64>()
            + 256
    }
}

impl Default for FrameCache {
    fn default() -> Self {
        Self(Cache::with_weighter(SHARDS, FRAMES_BYTES, FramesWeight))
    }
}

impl FrameCache {
    /// Returns parts of the lines of a Shard, in the order of `ranges`, which end within the lines.
    pub(crate) async fn lines(
        &self,
        app: &App,
        shard: &ShardRef,
        ranges: Vec<Range<u64>>,
    ) -> Result<Vec<Bytes>, ApiError> {
        let key = shard.stored.with_kind(Kind::Package).key();
        let frames = Box::pin(self.0.get_or_insert_async(&shard.lines.sha256, load(app, shard))).await?;
        let length = ranges.iter().map(|range| range.end - range.start).sum();
        let read = blocking(length, move || frames.read(&ranges)).await;
        read.map_err(stream::coding(&key))
    }
}

/// Reads the whole Shard once.
async fn load(app: &App, shard: &ShardRef) -> Result<Arc<Frames>, ApiError> {
    let object = shard.stored.with_kind(Kind::Package);
    let key = object.key();
    // Its compressed bytes are not kept: the frames take their place.
    let stored = app.stream_object(&object, Extent::Whole).await?;
    let mut chunks = decode(stored, key.clone())?;
    let mut cutter = FrameCutter::default();
    while let Some(chunk) = chunks.try_next().await? {
        let cut = move || cutter.push(&chunk).map(|()| cutter);
        cutter = blocking(FRAME_MIN as u64, cut).await.map_err(stream::coding(&key))?;
    }
    let frames = cutter.finish().map_err(stream::coding(&key))?;
    let (expected, found) = (shard.lines.size, frames.size);
    match found == expected {
        true => Ok(Arc::new(frames)),
        false => Err(ApiError::corrupt(&key, Corruption::Size { expected, found })),
    }
}

/// Cuts lines into frames.
#[derive(Default)]
struct FrameCutter {
    frames: Vec<Frame>,
    /// Position of the first byte of `frame`.
    start: u64,
    frame: Vec<u8>,
}

impl FrameCutter {
    fn push(&mut self, mut chunk: &[u8]) -> io::Result<()> {
        while !chunk.is_empty() {
            let length = self.frame.len();
            // A line that lies in two frames is read from both.
            let wanted = match length < FRAME_MIN {
                true => FRAME_MIN - length,
                false => {
                    let end = memchr::memchr(b'\n', chunk).map_or(chunk.len(), |at| at + 1);
                    end.min(FRAME_MAX - length)
                }
            };
            let (part, rest) = chunk.split_at(wanted.min(chunk.len()));
            self.frame.extend_from_slice(part);
            chunk = rest;
            let ends = self.frame.len() >= FRAME_MIN && part.ends_with(b"\n");
            if ends || self.frame.len() >= FRAME_MAX {
                self.cut()?;
            }
        }
        Ok(())
    }

    fn cut(&mut self) -> io::Result<()> {
        let compressed = zstd::bulk::compress(&self.frame, LEVEL)?.into_boxed_slice();
        self.frames.push(Frame {
            start: self.start,
            compressed,
        });
        self.start += self.frame.len() as u64;
        self.frame.clear();
        Ok(())
    }

    fn finish(mut self) -> io::Result<Frames> {
        if !self.frame.is_empty() {
            self.cut()?;
        }
        Ok(Frames {
            frames: self.frames,
            size: self.start,
        })
    }
}

impl Frames {
    fn read(&self, ranges: &[Range<u64>]) -> io::Result<Vec<Bytes>> {
        // Neighbouring ranges lie in one frame.
        let mut last: Option<(usize, Bytes)> = None;
        let mut frame = |at: usize| match &last {
            Some((known, bytes)) if *known == at => Ok(bytes.clone()),
            _ => {
                let bytes = self.decompress(at)?;
                last = Some((at, bytes.clone()));
                Ok::<_, io::Error>(bytes)
            }
        };
        let read = ranges.iter().map(|range| {
            let first = self.frames.partition_point(|frame| frame.start <= range.start);
            let end = self.frames.partition_point(|frame| frame.start < range.end);
            let mut parts = (first.saturating_sub(1)..end).map(|at| {
                let start = self.frames[at].start;
                let bytes = frame(at)?;
                let from = stream::small(range.start.saturating_sub(start)).min(bytes.len());
                let to = stream::small(range.end - start).min(bytes.len());
                Ok::<_, io::Error>(bytes.slice(from..to))
            });
            let Some(one) = parts.next().transpose()? else {
                return Ok(Bytes::new());
            };
            let mut joined = Vec::new();
            for part in parts {
                if joined.is_empty() {
                    joined.extend_from_slice(&one);
                }
                joined.extend_from_slice(&part?);
            }
            match joined.is_empty() {
                true => Ok(one),
                false => Ok(joined.into()),
            }
        });
        read.collect()
    }

    fn decompress(&self, at: usize) -> io::Result<Bytes> {
        let end = self.frames.get(at + 1).map_or(self.size, |next| next.start);
        decode_all(&self.frames[at].compressed, end - self.frames[at].start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(lines: &[u8], chunk: usize) -> Frames {
        let mut cutter = FrameCutter::default();
        for chunk in lines.chunks(chunk) {
            cutter.push(chunk).unwrap();
        }
        cutter.finish().unwrap()
    }

    #[test]
    fn frames_end_with_lines_unless_a_line_is_very_long() {
        let mut lines = Vec::new();
        for length in [10, FRAME_MIN, 20, 30, FRAME_MIN - 1, 5, 2 * FRAME_MAX, 7] {
            lines.extend(vec![b'a'; length]);
            lines.push(b'\n');
        }
        let ends = |length: usize| length as u64;
        let first = ends(10 + 1 + FRAME_MIN + 1);
        let second = first + ends(20 + 1 + 30 + 1 + FRAME_MIN);
        let third = second + ends(FRAME_MAX);
        for chunk in [1000, FRAME_MIN, lines.len()] {
            let frames = frames(&lines, chunk);
            let starts: Vec<u64> = frames.frames.iter().map(|frame| frame.start).collect();
            assert_eq!(starts, [0, first, second, third, third + ends(FRAME_MAX)], "{chunk}");
            assert_eq!(frames.size, lines.len() as u64);
        }
    }

    #[test]
    fn read_returns_ranges_in_their_order() {
        let lines: Vec<u8> = (0..FRAME_MAX as u32)
            .flat_map(|at| format!("{at}\n").into_bytes())
            .collect();
        let frames = frames(&lines, 1 << 16);
        assert!(frames.frames.len() > 20);
        let second = frames.frames[1].start;
        let ranges = [
            second..second + 5,
            0..9,
            second - 3..second + 3,
            4..4,
            0..lines.len() as u64,
            lines.len() as u64..lines.len() as u64,
            1000..FRAME_MAX as u64,
        ];
        let read = frames.read(&ranges).unwrap();
        for (range, bytes) in ranges.iter().zip(read) {
            assert_eq!(bytes, lines[range.start as usize..range.end as usize], "{range:?}");
        }
    }
}
