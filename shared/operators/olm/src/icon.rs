//! Icons of packages. Browsers show them, so only bytes that are what their media type says count,
//! and only a size that a browser can hold many of.

use std::borrow::Cow;

use serde::Deserialize;

use crate::{decode_base64, svg};

/// Maximum size of an icon, in bytes. The largest real one has 290 kB.
const ICON_BYTES_MAX: usize = 512 << 10;

/// Maximum number of pixels of an icon: a browser holds four bytes for each. Few bytes can say that
/// they are a picture of gigabytes.
const PIXELS_MAX: u64 = 4096 * 4096;

/// Number of bytes at the start of an SVG image in which its element begins.
const SVG_START: usize = 4 << 10;

/// Format of an icon.
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

/// Icon of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Icon {
    /// Bytes of the image.
    pub bytes: Vec<u8>,
    /// Format of the bytes.
    pub kind: IconKind,
}

/// Fields of an `olm.package` that describe its icon.
#[derive(Deserialize)]
struct IconFields<'a> {
    #[serde(borrow)]
    icon: Option<IconField<'a>>,
}

#[derive(Deserialize)]
struct IconField<'a> {
    #[serde(borrow)]
    base64data: Cow<'a, str>,
    #[serde(borrow)]
    mediatype: Cow<'a, str>,
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

    /// Returns the media type.
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

impl Icon {
    /// Reads the icon in the line of an `olm.package`. Returns `None` if it has no icon that can be
    /// shown.
    pub fn read(line: &[u8]) -> Option<Self> {
        let fields: IconFields<'_> = serde_json::from_slice(line).ok()?;
        let IconField {
            base64data,
            mediatype,
        } = fields.icon?;
        if base64data.len() > 2 * ICON_BYTES_MAX {
            return None;
        }
        let bytes = decode_base64(&base64data).ok()?;
        let kind = IconKind::of(&bytes)?;
        let is_shown = bytes.len() <= ICON_BYTES_MAX
            && kind.media_type() == mediatype
            && kind.has_few_pixels(&bytes)
            && (kind != IconKind::Svg || svg::is_drawable(&bytes));
        is_shown.then_some(Self { bytes, kind })
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

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use serde_json::json;

    use super::*;

    fn line(bytes: &[u8], mediatype: &str) -> Vec<u8> {
        let icon = json!({"base64data": STANDARD.encode(bytes), "mediatype": mediatype});
        let package = json!({"schema": "olm.package", "name": "a", "icon": icon});
        package.to_string().into_bytes()
    }

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend_from_slice(&width.to_be_bytes());
        bytes.extend_from_slice(&height.to_be_bytes());
        bytes
    }

    #[test]
    fn icon_is_read_if_its_bytes_are_what_its_type_says() {
        let gif = b"GIF89a\x10\0\x10\0";
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08\0\x10\0\x20";
        let webp = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x0f\0\0\x0f\0\0";
        let svg = b"<?xml version=\"1.0\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\"/>";
        for (bytes, mediatype, extension) in [
            (png(16, 16), "image/png", "png"),
            (gif.to_vec(), "image/gif", "gif"),
            (jpeg.to_vec(), "image/jpeg", "jpg"),
            (webp.to_vec(), "image/webp", "webp"),
            (svg.to_vec(), "image/svg+xml", "svg"),
        ] {
            let icon = Icon::read(&line(&bytes, mediatype)).unwrap();
            assert_eq!(
                (icon.bytes, icon.kind.extension()),
                (bytes.clone(), extension)
            );
            for other in ["text/html", "image/x-icon", ""] {
                assert_eq!(Icon::read(&line(&bytes, other)), None, "{other}");
            }
        }
        assert_eq!(Icon::read(&line(svg, "image/png")), None);
        assert_eq!(Icon::read(&line(b"<html>", "image/svg+xml")), None);
        assert_eq!(Icon::read(br#"{"schema":"olm.package"}"#), None);
    }

    #[test]
    fn icon_has_at_most_512_kib_and_16_megapixels() {
        assert!(Icon::read(&line(&png(4096, 4096), "image/png")).is_some());
        assert!(Icon::read(&line(&png(4096, 4097), "image/png")).is_none());
        assert!(Icon::read(&line(&png(u32::MAX, u32::MAX), "image/png")).is_none());
        assert!(
            Icon::read(&line(b"\x89PNG", "image/png")).is_none(),
            "no header"
        );
        let mut bytes = png(1, 1);
        bytes.resize(ICON_BYTES_MAX, 0);
        assert!(Icon::read(&line(&bytes, "image/png")).is_some());
        bytes.push(0);
        assert!(Icon::read(&line(&bytes, "image/png")).is_none());
    }
}
