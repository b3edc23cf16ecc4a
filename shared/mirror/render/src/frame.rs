//! One zstd frame (RFC 8878, section 3.1.1) of the blocks of other frames: `all.json.zst` has those
//! of its Shards, so that no line is compressed twice.
//!
//! A block may refer to bytes, to entropy tables, and to the last three offsets before it. The
//! first blocks of a frame have no bytes and no tables before them, but three offsets: 1, 4 and 8
//! (section 3.1.1.5). Some compressors use the 1 for a run of one character before the first match,
//! as in 4 of 333 Packages. Other blocks before such a frame would leave other offsets, so its
//! lines are compressed again: before they are stored, or each time they are joined if an older
//! program stored them.
//!
//! Measured on these Packages, a frame that is compressed as a whole at level 2 is 6 % smaller than
//! the joined one, and takes a tenth of the processor time of a publication.

use std::io::{self, Write};
use std::mem;

use model::{ObjectDigest, ZSTD_WINDOW_LOG_MAX};
use xxhash_rust::xxh64::Xxh64;
use zstd::bulk::Decompressor;

use crate::write_all::{Block, HashingWriter, Sink, fill};

const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Frame header descriptor: eight bytes of content size, a window descriptor, and a checksum at the
/// end.
const DESCRIPTOR: u8 = 0xc4;
/// Smallest window, as a power of two.
const WINDOW_LOG_MIN: u32 = 10;
const BLOCK_HEADER_BYTES: usize = 3;
/// Type of a block with sequences. Those of the other types have only literals, or one byte.
const COMPRESSED: u8 = 2;
/// Maximum number of bytes that a block decodes to.
const BLOCK_MAX: usize = 128 << 10;
/// An empty raw block, the last one of a frame.
const LAST_BLOCK: [u8; BLOCK_HEADER_BYTES] = [1, 0, 0];
const CHECKSUM_BYTES: usize = 4;
/// Magic, descriptor and window: the header of a frame of unknown size without a checksum.
const STREAM_HEADER_BYTES: usize = 6;

/// Number of bytes at the start of lines that are tried without compression, in this order, until
/// the rest needs no offsets.
const UNCOMPRESSED: [usize; 3] = [0, 1 << 10, 16 << 10];

/// Writer of one frame.
pub(crate) struct JoinedFrame<W = Sink> {
    sink: HashingWriter<W>,
    checksum: Xxh64,
    level: i32,
    /// Lines of the frame that was not taken last: fewer than a block, because what they are
    /// compressed to must not depend on the pieces in which they come.
    waiting: Block,
    /// Compressor of the lines before them.
    encoder: Option<zstd::Encoder<'static, Vec<u8>>>,
    trial: Trial,
}

impl<W: Write> JoinedFrame<W> {
    /// Begins a frame of `size` bytes of lines. Those of frames that cannot be joined are
    /// compressed at `level`.
    pub(crate) fn begin(sink: W, size: u64, level: i32) -> io::Result<Self> {
        let mut sink = HashingWriter::new(sink);
        let window = size.clamp(1 << WINDOW_LOG_MIN, 1 << ZSTD_WINDOW_LOG_MAX);
        let window_log = window.next_power_of_two().ilog2();
        sink.write_all(&MAGIC)?;
        sink.write_all(&[DESCRIPTOR, ((window_log - WINDOW_LOG_MIN) << 3) as u8])?;
        sink.write_all(&size.to_le_bytes())?;
        Ok(Self {
            sink,
            checksum: Xxh64::new(0),
            level,
            waiting: Block::new(),
            encoder: None,
            trial: Trial::new()?,
        })
    }

    /// Adds the blocks of a frame. Returns false, and adds none, if they do not mean the same after
    /// other blocks. Their lines are given to [`Self::count`], or to [`Self::add_lines`] if this
    /// returns false.
    pub(crate) fn add_frame(&mut self, frame: &[u8]) -> io::Result<bool> {
        self.end_lines()?;
        match self.trial.joinable(frame) {
            Some(blocks) => self.add(blocks).map(|()| true),
            None => Ok(false),
        }
    }

    /// Compresses the next lines of a frame that was not taken, and adds them.
    pub(crate) fn add_lines(&mut self, mut lines: &[u8]) -> io::Result<()> {
        self.count(lines);
        while !lines.is_empty() {
            if fill(&mut self.waiting, &mut lines) {
                self.compress_waiting()?;
            }
        }
        Ok(())
    }

    fn compress_waiting(&mut self) -> io::Result<()> {
        let lines = mem::take(&mut self.waiting);
        if lines.is_empty() {
            return Ok(());
        }
        if let Some(encoder) = &mut self.encoder {
            let bytes = compress_more(encoder, &lines)?;
            return self.add(Blocks(&bytes));
        }
        for length in UNCOMPRESSED {
            let (plain, rest) = lines.split_at(length.min(lines.len()));
            let mut encoder = zstd::Encoder::new(Vec::new(), self.level)?;
            encoder.window_log(ZSTD_WINDOW_LOG_MAX)?;
            let bytes = compress_more(&mut encoder, rest)?;
            let blocks = Blocks(bytes.get(STREAM_HEADER_BYTES..).unwrap_or_default());
            if self.trial.passes(blocks, true) {
                self.encoder = Some(encoder);
                self.add_uncompressed(plain)?;
                return self.add(blocks);
            }
        }
        self.add_uncompressed(&lines)
    }

    /// Adds the lines that wait, the last ones of their frame.
    fn end_lines(&mut self) -> io::Result<()> {
        self.compress_waiting()?;
        // All that it was given is written.
        self.encoder = None;
        Ok(())
    }

    /// Counts lines whose blocks were added.
    pub(crate) fn count(&mut self, lines: &[u8]) {
        self.checksum.update(lines);
    }

    fn add(&mut self, blocks: Blocks<'_>) -> io::Result<()> {
        for block in blocks {
            // Whichever was the last one of its frame.
            self.sink.write_all(&[block[0] & !1, block[1], block[2]])?;
            self.sink.write_all(&block[BLOCK_HEADER_BYTES..])?;
        }
        Ok(())
    }

    fn add_uncompressed(&mut self, lines: &[u8]) -> io::Result<()> {
        for block in lines.chunks(BLOCK_MAX) {
            let header = (block.len() as u32) << 3;
            self.sink
                .write_all(&header.to_le_bytes()[..BLOCK_HEADER_BYTES])?;
            self.sink.write_all(block)?;
        }
        Ok(())
    }

    /// Ends the frame.
    pub(crate) fn end(mut self) -> io::Result<ObjectDigest> {
        self.end_lines()?;
        self.sink.write_all(&LAST_BLOCK)?;
        let checksum = self.checksum.digest().to_le_bytes();
        self.sink.write_all(&checksum[..CHECKSUM_BYTES])?;
        self.sink.finish()
    }
}

/// Compresses lines. Returns all bytes that the encoder did not return before.
fn compress_more(encoder: &mut zstd::Encoder<'_, Vec<u8>>, lines: &[u8]) -> io::Result<Vec<u8>> {
    encoder.write_all(lines)?;
    encoder.flush()?;
    Ok(mem::take(encoder.get_mut()))
}

/// The blocks of a frame, each with its header.
#[derive(Clone, Copy)]
struct Blocks<'a>(&'a [u8]);

impl<'a> Blocks<'a> {
    /// Finds the blocks of a frame with a checksum, a window that readers accept, and no
    /// dictionary. `None` for any other bytes.
    fn of_frame(frame: &'a [u8]) -> Option<Self> {
        let (descriptor, rest) = frame.strip_prefix(&MAGIC)?.split_first()?;
        let is_one_segment = descriptor & 0x20 != 0;
        let (window, rest) = rest.split_at_checked(usize::from(!is_one_segment))?;
        // A size of two bytes does not count the first 256.
        let (length, least) = match (descriptor >> 6, is_one_segment) {
            (0, false) => (0, 0),
            (0, true) => (1, 0),
            (1, _) => (2, 256),
            (size, _) => (1 << size, 0),
        };
        let (content, rest) = rest.split_at_checked(length)?;
        let mut size = [0; 8];
        size[..length].copy_from_slice(content);
        let size = u64::from_le_bytes(size).saturating_add(least);
        let window = match window.first() {
            Some(byte) => ((8 + u64::from(byte & 7)) << (byte >> 3)) << (WINDOW_LOG_MIN - 3),
            None => size,
        };
        let (body, _) = rest.split_at_checked(rest.len().checked_sub(CHECKSUM_BYTES)?)?;
        let mut blocks = Self(body);
        let is_whole = blocks.by_ref().any(|block| block[0] & 1 != 0) && blocks.0.is_empty();
        // No dictionary and no reserved bit.
        let is_joinable = descriptor & 0xf == 4 && window <= 1 << ZSTD_WINDOW_LOG_MAX;
        (is_whole && is_joinable).then_some(Self(body))
    }
}

impl<'a> Iterator for Blocks<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let header = self.0.first_chunk::<BLOCK_HEADER_BYTES>()?;
        let size = usize::from(header[2]) << 13
            | usize::from(header[1]) << 5
            | usize::from(header[0]) >> 3;
        let is_run = header[0] >> 1 & 3 == 1;
        let length = BLOCK_HEADER_BYTES + if is_run { 1 } else { size };
        let (block, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(block)
    }
}

/// Decoder of first blocks after others that left the three offsets at zero bytes, which no
/// canonical line has. A zero byte in what they decode to shows that they need the offsets of a new
/// frame.
pub(crate) struct Trial {
    decoder: Decompressor<'static>,
    frame: Vec<u8>,
    decoded: Vec<u8>,
}

/// Begin of the frame of a trial: a window of 256 KiB, more zeros than a block decodes to, and one
/// block that sets all offsets.
#[rustfmt::skip]
const ZEROS: [u8; 30] = [
    MAGIC[0], MAGIC[1], MAGIC[2], MAGIC[3], 0, 8 << 3,
    // Blocks of 128 KiB and of 64 bytes, each the run of one byte.
    2, 0, 0x10, 0, 2, 2, 0, 0,
    // A compressed block of 13 bytes: no literals; three sequences with the codes 0, 17 and 0 for
    // the lengths of literals, offset and match. Each takes no literals and three bytes at the
    // offset 2^17 + 5, with 8 in 17 bits for the offset. A one ends the bits.
    0x6c, 0, 0, 0, 3, 0x54, 0, 17, 0, 8, 0, 0x10, 0, 0x20, 0, 8,
];
const ZEROS_DECODED: usize = BLOCK_MAX + 64 + 9;

/// A compressed block of 10 bytes that uses each offset: three literals; three sequences with the
/// codes 1, 1 and 0, so each takes one literal and three bytes at the third of the last offsets,
/// which then becomes the first.
const USE_OFFSETS: [u8; 13] = [0x54, 0, 0, 0x18, b'x', b'x', b'x', 3, 0x54, 1, 1, 0, 0x0f];
const OFFSETS_DECODED: usize = 12;

impl Trial {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            decoder: Decompressor::new()?,
            frame: Vec::new(),
            decoded: vec![0; ZEROS_DECODED + BLOCK_MAX + OFFSETS_DECODED],
        })
    }

    /// Returns true if [`JoinedFrame::add_frame`] takes a frame.
    pub(crate) fn is_joinable(&mut self, frame: &[u8]) -> bool {
        self.joinable(frame).is_some()
    }

    fn joinable<'a>(&mut self, frame: &'a [u8]) -> Option<Blocks<'a>> {
        Blocks::of_frame(frame).filter(|blocks| self.passes(*blocks, false))
    }

    /// True if blocks, and `more` that may follow them, do not use the offsets before them. Only
    /// the first compressed block is decoded, so it must replace all offsets if it is not the only
    /// one.
    fn passes(&mut self, mut blocks: Blocks<'_>, more: bool) -> bool {
        let Some(first) = blocks.find(|block| block[0] >> 1 & 3 == COMPRESSED) else {
            return !more;
        };
        self.frame.clear();
        self.frame.extend(ZEROS);
        self.frame.push(first[0] & !1);
        self.frame.extend(&first[1..]);
        if more || !blocks.0.is_empty() {
            self.frame.extend(USE_OFFSETS);
        }
        self.frame.extend(LAST_BLOCK);
        let decoded = self
            .decoder
            .decompress_to_buffer(&self.frame, &mut self.decoded[..]);
        decoded.is_ok_and(|length| !self.decoded[ZEROS_DECODED..length].contains(&0))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;

    use tempfile::tempfile;
    use zstd::bulk::Compressor;

    use super::*;

    const PIECE: usize = 512 << 10;

    /// Bytes without a match, of 64 characters.
    fn noise(length: usize, mut seed: u64) -> Vec<u8> {
        let next = move || {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            b' ' + (seed >> 58) as u8
        };
        std::iter::repeat_with(next).take(length).collect()
    }

    fn lines(count: u32) -> Vec<u8> {
        let line = |number: u32| {
            format!(
                "{{\"number\":{number},\"square\":{}}}\n",
                number.wrapping_mul(number)
            )
            .into_bytes()
        };
        (0..count).flat_map(line).collect()
    }

    fn frame_of(lines: &[u8], level: i32) -> Vec<u8> {
        let mut compressor = Compressor::new(level).unwrap();
        compressor.include_checksum(true).unwrap();
        compressor.compress(lines).unwrap()
    }

    /// Joins frames, the lines of which come in pieces. Returns which of them were taken, and the
    /// bytes that were written.
    fn joined(frames: &[(&[u8], &[u8])], piece: usize) -> (Vec<bool>, Vec<u8>) {
        let mut file: File = tempfile().unwrap();
        let size = frames.iter().map(|(_, lines)| lines.len() as u64).sum();
        let mut joined = JoinedFrame::begin(Box::new(file.try_clone().unwrap()), size, 6).unwrap();
        let taken = frames.iter().map(|(frame, lines)| {
            let is_taken = joined.add_frame(frame).unwrap();
            match is_taken {
                true => joined.count(lines),
                false => lines
                    .chunks(piece)
                    .for_each(|block| joined.add_lines(block).unwrap()),
            }
            is_taken
        });
        let taken = taken.collect();
        let digest = joined.end().unwrap();
        let mut bytes = Vec::new();
        io::Seek::rewind(&mut file).unwrap();
        file.read_to_end(&mut bytes).unwrap();
        assert_eq!(digest, ObjectDigest::of(&bytes));
        (taken, bytes)
    }

    #[test]
    fn joined_frames_decode_to_all_lines_wherever_their_offsets_begin() {
        let run = [b"{\"key\":\"".to_vec(), vec![b'a'; 50], lines(20_000)].concat();
        let late_run = [noise(200 << 10, 1), vec![b'b'; 50], lines(2_000)].concat();
        let short_run = [&b"#-----------"[..], &lines(1)].concat();
        let (small, large) = (lines(3), lines(60_000));
        let plain = noise(300 << 10, 2);
        let cases = [
            ("several blocks", &large, true),
            ("one block", &small, true),
            ("no lines", &Vec::new(), true),
            ("a run before the first match", &run, false),
            ("a run, and one block", &short_run, false),
            ("a run after a block without a match", &late_run, false),
            ("no match at all", &plain, false),
        ];
        for level in [1, 3, 6, 9] {
            let frames: Vec<_> = cases
                .iter()
                .map(|(_, lines, _)| frame_of(lines, level))
                .collect();
            for (at, (name, first, expected)) in cases.iter().enumerate() {
                for (behind, (_, second, _)) in frames.iter().zip(cases) {
                    let (taken, bytes) = joined(
                        &[(behind, second), (&frames[at], first), (&frames[0], &large)],
                        PIECE,
                    );
                    assert_eq!(taken[1], *expected, "{name}, level {level}");
                    let all = [&second[..], first, &large].concat();
                    assert!(
                        zstd::bulk::decompress(&bytes, all.len()).unwrap() == all,
                        "{name}, level {level}"
                    );
                }
            }
        }
    }

    #[test]
    fn lines_of_a_frame_that_is_not_taken_may_come_in_small_pieces() {
        let lines = [
            noise(900, 4),
            vec![b'c'; 2_000],
            lines(100),
            vec![b'd'; 900],
        ]
        .concat();
        for piece in [1, 7, 900, 1_000, 2_000] {
            let (_, bytes) = joined(&[(b"no frame", &lines)], piece);
            assert!(
                zstd::bulk::decompress(&bytes, lines.len()).unwrap() == lines,
                "pieces of {piece}"
            );
        }
    }

    #[test]
    fn joined_frames_are_as_large_as_their_blocks() {
        // It repeats itself from block to block of those that a catalog is written in.
        let part = [lines(1_000), noise(600 << 10, 3)].concat();
        let (large, run) = (lines(60_000), [vec![b'a'; 50], part.repeat(5)].concat());
        let frame = frame_of(&large, 6);
        let (_, bytes) = joined(&[(&frame[..], &large[..]); 5], PIECE);
        assert!(
            bytes.len() < 5 * frame.len(),
            "{} of 5 times {}",
            bytes.len(),
            frame.len()
        );
        let frame = frame_of(&run, 6);
        let (_, bytes) = joined(&[(&frame, &run)], PIECE);
        assert!(
            bytes.len() < frame.len() + 2 * UNCOMPRESSED[1],
            "{} of {}",
            bytes.len(),
            frame.len()
        );
    }

    #[test]
    fn frames_with_other_rules_are_not_joined() {
        let lines = lines(60_000);
        let frame = frame_of(&lines, 6);
        let with = |change: &dyn Fn(&mut zstd::Encoder<'_, Vec<u8>>) -> io::Result<()>| {
            let mut encoder = zstd::Encoder::new(Vec::new(), 6).unwrap();
            encoder.include_checksum(true).unwrap();
            change(&mut encoder).unwrap();
            encoder.write_all(&lines).unwrap();
            encoder.finish().unwrap()
        };
        let mut of_dictionary = frame.clone();
        of_dictionary[4] |= 1;
        // Before the size: the window is that of all lines.
        of_dictionary.insert(5, 7);
        for (name, frame, expected) in [
            ("size not known before", with(&|_| Ok(())), true),
            (
                "window of 8 MiB",
                with(&|encoder| encoder.window_log(23)),
                true,
            ),
            (
                "window of 16 MiB",
                with(&|encoder| encoder.window_log(24)),
                false,
            ),
            (
                "no checksum",
                with(&|encoder| encoder.include_checksum(false)),
                false,
            ),
            ("a dictionary", of_dictionary, false),
            ("two frames", frame.repeat(2), false),
            ("a byte behind it", [&frame[..], b"x"].concat(), false),
            ("a byte less", frame[..frame.len() - 1].to_vec(), false),
            ("only its header", frame[..9].to_vec(), false),
            ("other bytes", lines.clone(), false),
            ("nothing", Vec::new(), false),
        ] {
            let (taken, bytes) = joined(&[(&frame, &lines)], PIECE);
            assert_eq!(taken, [expected], "{name}");
            assert!(
                zstd::bulk::decompress(&bytes, lines.len()).unwrap() == lines,
                "{name}"
            );
        }
        let mut short = frame_of(&lines[..200], 6);
        for length in 0..short.len() {
            assert!(
                Blocks::of_frame(&short[..length]).is_none(),
                "{length} bytes"
            );
        }
        let mut trial = Trial::new().unwrap();
        for bit in 0..short.len() * 8 {
            short[bit / 8] ^= 1 << (bit % 8);
            // Another frame, or none: it does not panic.
            let _ = Blocks::of_frame(&short).map(|blocks| trial.passes(blocks, false));
            short[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
