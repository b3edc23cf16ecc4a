//! Icons of packages. Browsers show them, so only bytes that are what their media type says count,
//! and only a size that a browser can hold many of.

use std::borrow::Cow;

use serde::Deserialize;

use crate::{IconKind, decode_base64, svg};

/// Maximum size of an icon, in bytes. The largest real one has 290 kB.
const ICON_BYTES_MAX: usize = 512 << 10;

/// Icon of a package, which a browser can show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Icon {
    /// Bytes of the image, at most 512 KiB.
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
