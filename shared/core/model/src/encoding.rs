use std::io::{self, Read, Write};

use zstd::stream::raw::{DParameter, Decoder, Operation};

/// Largest window of a stored zstd frame, as a power of two: 8 MiB (RFC 9659). It also bounds the
/// memory that decompression takes.
pub const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// Encoding of the stored bytes of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Encoding {
    /// One zstd frame with the content size in its header and a window of at most 8 MiB.
    Zstd,
    /// One gzip member: several break curl, reqwest and httpx.
    Gzip,
    /// The bytes of the content itself.
    Identity,
}

impl Encoding {
    /// All encodings, the densest first.
    pub const ALL: [Self; 3] = [Self::Zstd, Self::Gzip, Self::Identity];

    /// Returns the `Content-Encoding` value (RFC 9110, section 8.4); `None` for plain bytes.
    pub const fn content_encoding(self) -> Option<&'static str> {
        match self {
            Self::Zstd => Some("zstd"),
            Self::Gzip => Some("gzip"),
            Self::Identity => None,
        }
    }

    /// Returns the end of the entity tag of a content that is encoded as it is sent: no two
    /// encodings of one content share a tag.
    pub const fn tag_suffix(self) -> &'static str {
        match self {
            Self::Zstd => "-zstd",
            Self::Gzip => "-gzip",
            Self::Identity => "",
        }
    }
}

/// Window of documents, as a power of two: 256 kB. The compressor takes 8 MB with it and 71 MB
/// without it at level 15 for a document of 2 MB. Snapshots and indexes, whose entries resemble
/// their neighbours, are smaller with it, and facts of 450 kB 0.4 % larger.
pub const DOCUMENT_WINDOW_LOG: u32 = 18;

/// Compresses a document into one zstd frame.
///
/// # Errors
/// Fails if the compressor cannot allocate its memory.
pub(crate) fn encode_zstd(bytes: &[u8], level: i32) -> io::Result<Vec<u8>> {
    let mut compressor = zstd::bulk::Compressor::new(level)?;
    compressor.window_log(DOCUMENT_WINDOW_LOG)?;
    compressor.compress(bytes)
}

/// Decompresses exactly one zstd frame of at most `max` decoded bytes.
///
/// # Errors
/// Fails with [`io::ErrorKind::InvalidData`] if the bytes are no zstd frame, if bytes follow the
/// frame, if its window is larger than 8 MiB, or if it decodes to more than `max` bytes.
pub fn decode_zstd(bytes: &[u8], max: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    decode_zstd_to(bytes, max, &mut content)?;
    Ok(content)
}

/// Decompresses exactly one zstd frame of at most `max` decoded bytes into `sink`, block by block.
/// What an invalid frame decodes to before its fault reaches the sink too. Returns the number of
/// decoded bytes.
///
/// # Errors
/// Fails as [`decode_zstd`] does, and with the errors of `sink`.
pub fn decode_zstd_to(bytes: &[u8], max: u64, sink: &mut impl Write) -> io::Result<u64> {
    // One frame: several clients stop after the first, so a second one would be seen by some
    // readers only.
    let mut decoder = zstd::Decoder::with_buffer(bytes)?.single_frame();
    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
    // One byte more than allowed tells a frame that is too large from one that fits exactly.
    let decoded = io::copy(&mut (&mut decoder).take(max.saturating_add(1)), sink)?;
    if decoded > max {
        return Err(invalid("the content is larger than its limit"));
    }
    if !decoder.finish().is_empty() {
        return Err(invalid("bytes follow the zstd frame"));
    }
    Ok(decoded)
}

/// Size of the pieces that a [`ZstdFrameDecoder`] decodes, in bytes.
const DECODED_BYTES: usize = 128 << 10;

/// Decoder of exactly one zstd frame whose bytes come in pieces. Its window is at most 8 MiB.
pub struct ZstdFrameDecoder {
    decoder: Decoder<'static>,
    decoded: Vec<u8>,
    has_ended: bool,
}

impl ZstdFrameDecoder {
    /// Creates a decoder at the start of a frame.
    ///
    /// # Errors
    /// Fails if the decompressor cannot allocate its memory.
    pub fn new() -> io::Result<Self> {
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX))?;
        Ok(Self {
            decoder,
            decoded: vec![0; DECODED_BYTES],
            has_ended: false,
        })
    }

    /// Decodes the next bytes of the frame into `sink`.
    ///
    /// # Errors
    /// Fails if the bytes are not those of a frame, with [`io::ErrorKind::InvalidData`] if they
    /// follow the frame, and with the errors of `sink`.
    pub fn decode(&mut self, mut bytes: &[u8], sink: &mut impl Write) -> io::Result<()> {
        let mut is_full = false;
        // A full buffer may leave more to decode, though all bytes were read.
        while !bytes.is_empty() || is_full {
            if self.has_ended {
                return Err(invalid("bytes follow the zstd frame"));
            }
            let status = self.decoder.run_on_buffers(bytes, &mut self.decoded)?;
            sink.write_all(&self.decoded[..status.bytes_written])?;
            bytes = &bytes[status.bytes_read..];
            self.has_ended = status.remaining == 0;
            is_full = !self.has_ended && status.bytes_written == self.decoded.len();
        }
        Ok(())
    }

    /// True if the frame was decoded to its end.
    pub const fn has_ended(&self) -> bool {
        self.has_ended
    }
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(content: &[u8]) -> Vec<u8> {
        zstd::bulk::compress(content, 3).unwrap()
    }

    #[test]
    fn encode_zstd_reads_back_contents_around_the_window() {
        for size in [0, 1 << 18, (1 << 18) + 1, 1 << 20] {
            let content: Vec<u8> = (0..size as u32)
                .flat_map(|number| (number / 7).to_le_bytes())
                .take(size)
                .collect();
            let frame = encode_zstd(&content, 15).unwrap();
            assert_eq!(decode_zstd(&frame, size as u64).unwrap(), content);
        }
    }

    #[test]
    fn decode_zstd_refuses_damaged_frames_trailing_bytes_and_one_byte_above_the_limit() {
        assert_eq!(decode_zstd(&frame(&[7; 100]), 100).unwrap(), [7; 100]);
        let mut two = frame(b"one");
        two.extend(frame(b"two"));
        let mut cut = frame(b"some content");
        cut.pop();
        for bytes in [&b""[..], b"plain", &two, &cut, &frame(&[7; 101])] {
            assert!(decode_zstd(bytes, 100).is_err(), "{bytes:?}");
        }
    }

    /// Decodes a frame in pieces. `None` if it is not exactly one.
    fn decoded(frame: &[u8], piece: usize) -> Option<Vec<u8>> {
        let mut content = Vec::new();
        let mut decoder = ZstdFrameDecoder::new().unwrap();
        for bytes in frame.chunks(piece) {
            decoder.decode(bytes, &mut content).ok()?;
        }
        decoder.has_ended().then_some(content)
    }

    #[test]
    fn zstd_frame_decoder_takes_exactly_one_frame_in_any_pieces() {
        for content in [
            vec![],
            vec![7; 100],
            vec![7; DECODED_BYTES],
            vec![7; 1 << 20],
        ] {
            let frame = frame(&content);
            let cut = &frame[..frame.len() - 1];
            let trailing = [&frame[..], b"a"].concat();
            for piece in [1, 7, 1 << 20] {
                assert!(decoded(&frame, piece) == Some(content.clone()), "{piece}");
                assert_eq!(decoded(cut, piece), None);
                assert_eq!(decoded(&trailing, piece), None);
                assert_eq!(decoded(&frame.repeat(2), piece), None);
            }
        }
        assert_eq!(decoded(b"plain", 1), None);
        assert_eq!(decoded(b"", 1), None);
    }

    #[test]
    fn zstd_frame_decoder_refuses_a_window_above_its_limit() {
        let content = vec![7; (8 << 20) + 1];
        for (window_log, expected) in [
            (ZSTD_WINDOW_LOG_MAX, true),
            (ZSTD_WINDOW_LOG_MAX + 1, false),
        ] {
            let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
            encoder.window_log(window_log).unwrap();
            encoder.write_all(&content).unwrap();
            let frame = encoder.finish().unwrap();
            assert_eq!(decoded(&frame, 1 << 20).is_some(), expected, "{window_log}");
        }
    }
}
