use std::io::{self, Read};

/// Largest window of a stored zstd frame, as a power of two: 8 MiB (RFC 9659). It also bounds the memory that
/// decompression takes.
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
}

/// Decompresses exactly one zstd frame of at most `max` decoded bytes.
///
/// # Errors
/// Fails with [`io::ErrorKind::InvalidData`] if the bytes are no zstd frame, if bytes follow the frame, if its window is
/// larger than 8 MiB, or if it decodes to more than `max` bytes.
pub fn decode_zstd(bytes: &[u8], max: u64) -> io::Result<Vec<u8>> {
    let invalid = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text);
    // One frame: several clients stop after the first, so a second one would be seen by some readers only.
    let mut decoder = zstd::Decoder::with_buffer(bytes)?.single_frame();
    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
    let mut content = Vec::new();
    // One byte more than allowed tells a frame that is too large from one that fits exactly.
    (&mut decoder).take(max.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > max {
        return Err(invalid("the content is larger than its limit"));
    }
    if !decoder.finish().is_empty() {
        return Err(invalid("bytes follow the zstd frame"));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(content: &[u8]) -> Vec<u8> {
        zstd::bulk::compress(content, 3).unwrap()
    }

    #[test]
    fn decode_zstd_accepts_the_limit_and_refuses_one_byte_more() {
        assert_eq!(decode_zstd(&frame(&[7; 100]), 100).unwrap(), [7; 100]);
        assert!(decode_zstd(&frame(&[7; 101]), 100).is_err());
    }

    #[test]
    fn decode_zstd_refuses_damaged_frames_and_trailing_bytes() {
        let mut two = frame(b"one");
        two.extend(frame(b"two"));
        let mut cut = frame(b"some content");
        cut.pop();
        for bytes in [&b""[..], b"plain", &two, &cut] {
            assert!(decode_zstd(bytes, 100).is_err(), "{bytes:?}");
        }
    }
}
