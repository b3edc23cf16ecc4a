//! The objects that one pass over the catalog writes.

use std::collections::BTreeMap;
use std::io::Write;
use std::mem;

use flate2::Crc;
use model::{Encoding, Hasher, Kind, ObjectDigest, Sha256, ZSTD_WINDOW_LOG_MAX};

use crate::block::{Block, HashingWriter, Sink, Sinks, encoder, failed};
use crate::gzip::{Deflated, GZIP, HEADER, LAST_BLOCK, Segment, Segments};
use crate::proof::{FrameProof, as_made};
use crate::{RenderError, RenderSettings};

const ZSTD: &str = "all.json.zst";
const IDENTITY: &str = "all.json";
const LAYER: &str = "the image's layer";

/// Hashes and sizes that one pass over the whole catalog found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllFacts {
    /// The sha256 of `all.json`.
    pub content_hash: Sha256,
    /// Size of `all.json`, in bytes.
    pub size: u64,
    /// Objects as they were written, by their kind: those that had a sink.
    pub made: BTreeMap<Kind, ObjectDigest>,
    /// The sha256 of the uncompressed tar archive of the layer, if that had a sink.
    pub diff_id: Option<Sha256>,
    /// Size of each segment of `all.json.gz` in bytes, in their order; none if neither it nor the
    /// layer had a sink.
    pub segments: Vec<u32>,
}

/// The objects that have a sink.
pub(crate) struct Outputs {
    zstd: Option<ZstdFrame>,
    gzip: Option<GzipMember>,
    layer: Option<Layer>,
    identity: Option<Sink>,
    /// Sizes of the segments of lines so far.
    segments: Vec<u32>,
}

/// Digests of the objects that were written.
pub(crate) struct Written {
    /// All but `all.json`, whose digest is that of the content.
    pub(crate) made: BTreeMap<Kind, ObjectDigest>,
    /// The sha256 of the uncompressed tar archive of the layer, if that has a sink.
    pub(crate) diff_id: Option<Sha256>,
    /// Size of each segment of lines in bytes; none if no object has segments.
    pub(crate) segments: Vec<u32>,
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
        Ok(Self {
            zstd: zstd
                .map(|sink| ZstdFrame::begin(sink, size, settings.zstd_level))
                .transpose()?,
            gzip: gzip.map(|sink| GzipMember::begin(sink, GZIP)).transpose()?,
            layer: layer.map(Layer::begin).transpose()?,
            identity: sinks.remove(&Kind::All(Encoding::Identity)),
            segments: Vec::new(),
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
            self.add(segment?)?;
        }
        self.end()
    }

    fn add(&mut self, segment: Segment) -> Result<(), RenderError> {
        if let Some(gzip) = &mut self.gzip {
            gzip.add(&segment.lines)?;
        }
        if let Some(layer) = &mut self.layer {
            layer.add(&segment)?;
        }
        let lines = segment.piece.block;
        // The end of the layer has no lines.
        if lines.is_empty() {
            return Ok(());
        }
        if self.has_segments() {
            self.segments.push(segment.lines.bytes.len() as u32);
        }
        if let Some(identity) = &mut self.identity {
            identity.write_all(&lines).map_err(failed(IDENTITY))?;
        }
        if let Some(zstd) = &mut self.zstd {
            zstd.add(lines)?;
        }
        Ok(())
    }

    fn end(self) -> Result<Written, RenderError> {
        let mut made = BTreeMap::new();
        let mut diff_id = None;
        if let Some(zstd) = self.zstd {
            made.insert(Kind::All(Encoding::Zstd), zstd.end()?);
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
        Ok(Written {
            made,
            diff_id,
            segments: self.segments,
        })
    }
}

/// `all.json.zst`: one frame of all lines.
struct ZstdFrame<W: Write = Sink> {
    encoder: zstd::Encoder<'static, Vec<u8>>,
    proven: ProvenFrame<W>,
}

impl<W: Write> ZstdFrame<W> {
    fn begin(sink: W, size: u64, level: i32) -> Result<Self, RenderError> {
        let mut encoder = encoder(Vec::new(), level, size).map_err(failed(ZSTD))?;
        // Versions of a package repeat each other, some megabytes apart.
        let window = encoder.window_log(ZSTD_WINDOW_LOG_MAX);
        window.map_err(failed(ZSTD))?;
        let proven = ProvenFrame {
            sink: HashingWriter::new(sink),
            proof: FrameProof::new().map_err(failed(ZSTD))?,
        };
        Ok(Self { encoder, proven })
    }

    fn add(&mut self, lines: Block) -> Result<(), RenderError> {
        self.encoder.write_all(&lines).map_err(failed(ZSTD))?;
        self.proven.proof.expect(lines);
        let made = mem::take(self.encoder.get_mut());
        self.proven.put(&as_made(ZSTD, made))
    }

    fn end(mut self) -> Result<ObjectDigest, RenderError> {
        let made = self.encoder.finish().map_err(failed(ZSTD))?;
        self.proven.put(&as_made(ZSTD, made))?;
        self.proven.end()
    }
}

/// A zstd frame that is decompressed as it is written.
struct ProvenFrame<W: Write> {
    sink: HashingWriter<W>,
    proof: FrameProof,
}

impl<W: Write> ProvenFrame<W> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), RenderError> {
        if !self.proof.passes(bytes) {
            return Err(RenderError::NotDecoded { part: ZSTD });
        }
        self.sink.write_all(bytes).map_err(failed(ZSTD))
    }

    fn end(self) -> Result<ObjectDigest, RenderError> {
        if !self.proof.ends() {
            return Err(RenderError::NotDecoded { part: ZSTD });
        }
        self.sink.finish().map_err(failed(ZSTD))
    }
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
            let mut bytes = Vec::new();
            let mut frame = ZstdFrame::begin(&mut bytes, lines.len() as u64, 2).unwrap();
            for piece in lines.as_bytes().chunks(length) {
                frame.add(piece.to_vec()).unwrap();
            }
            let digest = frame.end().unwrap();
            assert_eq!(digest, ObjectDigest::of(&bytes));
            bytes
        };
        let whole = frame_of_pieces(lines.len());
        let decoded = decode_zstd(&whole, lines.len() as u64).unwrap();
        assert!(decoded == lines.as_bytes());
        for length in [1, 1000, 128 << 10, (128 << 10) + 1, 512 << 10] {
            assert!(frame_of_pieces(length) == whole, "pieces of {length} bytes");
        }
    }
}
