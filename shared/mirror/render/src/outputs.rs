//! The objects that one pass over the catalog writes.

use std::collections::BTreeMap;
use std::io::{self, Write};

use flate2::Crc;
use model::{Encoding, Hasher, Kind, ObjectDigest, Sha256, ZSTD_WINDOW_LOG_MAX};

use crate::block::{HashingWriter, Sink, Sinks, failed};
use crate::gzip::{Deflated, HEADER, LAST_BLOCK, Segment, Segments};
use crate::{RenderError, RenderSettings, shard::encoder};

const ZSTD: &str = "all.json.zst";
pub(crate) const GZIP: &str = "all.json.gz";
const IDENTITY: &str = "all.json";
const LAYER: &str = "the image's layer";

/// The objects that have a sink.
pub(crate) struct Outputs {
    zstd: Option<zstd::Encoder<'static, HashingWriter<Sink>>>,
    gzip: Option<GzipMember>,
    layer: Option<Layer>,
    identity: Option<Sink>,
}

/// Digests of the objects that were written.
pub(crate) struct Written {
    /// All but `all.json`, whose digest is that of the content.
    pub(crate) made: BTreeMap<Kind, ObjectDigest>,
    /// The sha256 of the uncompressed tar archive of the layer, if that has a sink.
    pub(crate) diff_id: Option<Sha256>,
}

impl Outputs {
    /// Begins an object of each kind that has a sink. `size` is that of all lines, in bytes.
    pub(crate) fn begin(
        mut sinks: Sinks,
        size: u64,
        settings: &RenderSettings,
    ) -> Result<Self, RenderError> {
        let zstd = sinks.remove(&Kind::All(Encoding::Zstd));
        let gzip = sinks.remove(&Kind::All(Encoding::Gzip));
        let layer = sinks.remove(&Kind::Blob);
        let zstd = zstd.map(|sink| zstd_frame(HashingWriter::new(sink), size, settings.zstd_level));
        Ok(Self {
            zstd: zstd.transpose().map_err(failed(ZSTD))?,
            gzip: gzip.map(|sink| GzipMember::begin(sink, GZIP)).transpose()?,
            layer: layer.map(Layer::begin).transpose()?,
            identity: sinks.remove(&Kind::All(Encoding::Identity)),
        })
    }

    /// True if one of them is made of deflated segments.
    pub(crate) const fn has_segments(&self) -> bool {
        self.gzip.is_some() || self.layer.is_some()
    }

    /// True if the layer of the image is one of them.
    pub(crate) const fn has_layer(&self) -> bool {
        self.layer.is_some()
    }

    /// Writes all segments to each object.
    pub(crate) fn write(mut self, segments: &Segments) -> Result<Written, RenderError> {
        for segment in segments.iter() {
            self.add(&segment.map_err(failed(GZIP))?)?;
        }
        self.end()
    }

    fn add(&mut self, segment: &Segment) -> Result<(), RenderError> {
        let lines = &segment.piece.block;
        if let Some(zstd) = &mut self.zstd {
            zstd.write_all(lines).map_err(failed(ZSTD))?;
        }
        if let Some(gzip) = &mut self.gzip {
            gzip.add(&segment.lines)?;
        }
        if let Some(layer) = &mut self.layer {
            layer.add(segment)?;
        }
        if let Some(identity) = &mut self.identity {
            identity.write_all(lines).map_err(failed(IDENTITY))?;
        }
        Ok(())
    }

    fn end(self) -> Result<Written, RenderError> {
        let mut made = BTreeMap::new();
        let mut diff_id = None;
        if let Some(zstd) = self.zstd {
            let written = zstd.finish().and_then(HashingWriter::finish);
            made.insert(Kind::All(Encoding::Zstd), written.map_err(failed(ZSTD))?);
        }
        if let Some(gzip) = self.gzip {
            made.insert(Kind::All(Encoding::Gzip), gzip.end()?);
        }
        if let Some(layer) = self.layer {
            diff_id = Some(layer.tar.finish());
            made.insert(Kind::Blob, layer.member.end()?);
        }
        if let Some(mut identity) = self.identity {
            identity.flush().map_err(failed(IDENTITY))?;
        }
        Ok(Written { made, diff_id })
    }
}

/// Begins the frame of `all.json.zst`.
fn zstd_frame<W: Write>(sink: W, size: u64, level: i32) -> io::Result<zstd::Encoder<'static, W>> {
    let mut frame = encoder(sink, level, size)?;
    // Versions of a package repeat each other, some megabytes apart.
    frame.window_log(ZSTD_WINDOW_LOG_MAX)?;
    Ok(frame)
}

/// The layer of the image: a tar archive in one gzip member.
struct Layer {
    member: GzipMember,
    /// Hasher of the archive.
    tar: Hasher,
}

impl Layer {
    fn begin(sink: Sink) -> Result<Self, RenderError> {
        Ok(Self {
            member: GzipMember::begin(sink, LAYER)?,
            tar: Hasher::new(),
        })
    }

    fn add(&mut self, segment: &Segment) -> Result<(), RenderError> {
        self.tar.update(&segment.piece.frame);
        self.tar.update(&segment.piece.block);
        self.member.add(&segment.frame)?;
        self.member.add(&segment.lines)
    }
}

/// A gzip member (RFC 1952) of segments.
struct GzipMember {
    sink: HashingWriter<Sink>,
    name: &'static str,
    checksum: Crc,
}

impl GzipMember {
    fn begin(sink: Sink, name: &'static str) -> Result<Self, RenderError> {
        let mut member = Self {
            sink: HashingWriter::new(sink),
            name,
            checksum: Crc::new(),
        };
        member.put(&HEADER)?;
        Ok(member)
    }

    fn add(&mut self, deflated: &Deflated) -> Result<(), RenderError> {
        self.checksum.combine(&deflated.checksum);
        self.put(&deflated.bytes)
    }

    fn end(mut self) -> Result<ObjectDigest, RenderError> {
        self.put(&LAST_BLOCK)?;
        self.put(&self.checksum.sum().to_le_bytes())?;
        // The size modulo 2^32.
        self.put(&self.checksum.amount().to_le_bytes())?;
        self.sink.finish().map_err(failed(self.name))
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), RenderError> {
        self.sink.write_all(bytes).map_err(failed(self.name))
    }
}

#[cfg(test)]
mod tests {
    use model::decode_zstd;

    use super::*;

    #[test]
    fn zstd_frame_of_lines_in_any_pieces_has_the_same_bytes() {
        let line = |number: u32| format!("{{\"name\":\"demo.v{}\"}}\n", number % 4099);
        let lines: String = (0..40_000).map(line).collect();
        let frame_of_pieces = |length: usize| {
            let mut frame = zstd_frame(Vec::new(), lines.len() as u64, 2).unwrap();
            for piece in lines.as_bytes().chunks(length) {
                frame.write_all(piece).unwrap();
            }
            frame.finish().unwrap()
        };
        let whole = frame_of_pieces(lines.len());
        let decoded = decode_zstd(&whole, lines.len() as u64).unwrap();
        assert!(decoded == lines.as_bytes());
        for length in [1, 1000, 128 << 10, (128 << 10) + 1, 512 << 10] {
            assert!(frame_of_pieces(length) == whole, "pieces of {length} bytes");
        }
    }
}
