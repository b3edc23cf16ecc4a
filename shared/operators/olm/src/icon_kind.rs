//! Formats of icons, as their bytes tell them.

/// Maximum number of pixels of an icon: a browser holds four bytes for each. Few bytes can say that
/// they are a picture of gigabytes.
const PIXELS_MAX: u64 = 4096 * 4096;

/// Number of bytes at the start of an SVG image in which its element begins.
const SVG_START: usize = 4 << 10;

/// Format of an icon, as its first bytes tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IconKind {
    /// Scalable Vector Graphics.
    Svg,
    /// Portable Network Graphics.
    Png,
    /// JPEG.
    Jpeg,
    /// Graphics Interchange Format.
    Gif,
    /// WebP.
    Webp,
}

impl IconKind {
    /// Returns the ending of the names of files.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Png => "png",
            Self::Jpeg => "jpg",
            Self::Gif => "gif",
            Self::Webp => "webp",
        }
    }

    /// Returns the media type, such as `image/png`.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Svg => "image/svg+xml",
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }

    /// Returns the format that bytes have.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x89, b'P', b'N', b'G', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', ..] => Some(Self::Gif),
            [
                b'R',
                b'I',
                b'F',
                b'F',
                _,
                _,
                _,
                _,
                b'W',
                b'E',
                b'B',
                b'P',
                ..,
            ] => Some(Self::Webp),
            _ => {
                let start = &bytes[..bytes.len().min(SVG_START)];
                start
                    .windows(4)
                    .any(|part| part == b"<svg")
                    .then_some(Self::Svg)
            }
        }
    }

    /// Returns true if the image says how many pixels it has, and a browser can hold them.
    pub(crate) fn has_few_pixels(self, bytes: &[u8]) -> bool {
        self.pixels(bytes)
            .is_some_and(|pixels| pixels <= PIXELS_MAX)
    }

    fn pixels(self, bytes: &[u8]) -> Option<u64> {
        let [width, height] = match self {
            // It is drawn in the size in which it is shown.
            Self::Svg => return Some(0),
            Self::Png => [number(bytes, 16, 4)?, number(bytes, 20, 4)?],
            Self::Gif => [reversed(bytes, 6, 2)?, reversed(bytes, 8, 2)?],
            Self::Jpeg => jpeg_size(bytes)?,
            Self::Webp => webp_size(bytes)?,
        };
        Some(width * height)
    }
}

/// Returns a number whose first byte counts most.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let digits = bytes.get(at..at + length)?;
    Some(
        digits
            .iter()
            .fold(0, |sum, digit| sum << 8 | u64::from(*digit)),
    )
}

/// Returns a number whose last byte counts most.
fn reversed(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let digits = bytes.get(at..at + length)?;
    Some(
        digits
            .iter()
            .rev()
            .fold(0, |sum, digit| sum << 8 | u64::from(*digit)),
    )
}

/// Returns width and height by the first frame header (ITU-T T.81, B.2.2).
fn jpeg_size(bytes: &[u8]) -> Option<[u64; 2]> {
    let mut at = 2;
    loop {
        let marker = number(bytes, at, 2)?;
        let is_frame =
            (0xffc0..=0xffcf).contains(&marker) && ![0xffc4, 0xffc8, 0xffcc].contains(&marker);
        if is_frame {
            return Some([number(bytes, at + 7, 2)?, number(bytes, at + 5, 2)?]);
        }
        at += 2 + usize::try_from(number(bytes, at + 2, 2)?.max(2)).ok()?;
    }
}

/// Returns width and height of the canvas (RFC 9649, section 2).
fn webp_size(bytes: &[u8]) -> Option<[u64; 2]> {
    match bytes.get(12..16)? {
        b"VP8X" => Some([reversed(bytes, 24, 3)? + 1, reversed(bytes, 27, 3)? + 1]),
        b"VP8L" => {
            let packed = reversed(bytes, 21, 4)?;
            Some([(packed & 0x3fff) + 1, (packed >> 14 & 0x3fff) + 1])
        }
        b"VP8 " => Some([
            reversed(bytes, 26, 2)? & 0x3fff,
            reversed(bytes, 28, 2)? & 0x3fff,
        ]),
        _ => None,
    }
}
