//! Two gzip members (RFC 1952) made of the same segments: `all.json.gz`, and the image's layer, which has the headers of
//! a tar archive between them. Each is one member: curl, reqwest and httpx read only the first.

use std::io::{self, Write};

use flate2::Crc;
use model::{Hasher, ObjectDigest, Sha256};

use crate::{
    RenderError,
    deflate::{Deflated, Segments},
    write_all::{HashingWriter, Sink},
};

/// Magic, deflate, no flags, no time, no hints, unknown system: the same on every machine.
pub(crate) const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// An empty last deflate block.
const LAST_BLOCK: [u8; 2] = [0x03, 0x00];

pub(crate) const ALL: &str = "all.json.gz";
const LAYER: &str = "the image's layer";

/// Digests of the members that were written.
#[derive(Default)]
pub(crate) struct GzipDigests {
    pub(crate) all: Option<ObjectDigest>,
    pub(crate) layer: Option<ObjectDigest>,
    /// The sha256 of the uncompressed tar archive.
    pub(crate) diff_id: Option<Sha256>,
}

/// Writes the members that have a sink.
pub(crate) fn write(segments: &Segments, all: Option<Sink>, layer: Option<Sink>) -> Result<GzipDigests, RenderError> {
    let mut all = all.map(|sink| Member::begin(sink, ALL)).transpose()?;
    let mut layer = layer.map(|sink| Member::begin(sink, LAYER)).transpose()?;
    let mut diff_id = layer.as_ref().map(|_| Hasher::new());
    for segment in segments.iter() {
        let segment = segment.map_err(|source| RenderError::Sink { part: ALL, source })?;
        if let Some(all) = &mut all {
            all.add(&segment.lines)?;
        }
        if let Some((layer, diff_id)) = layer.as_mut().zip(diff_id.as_mut()) {
            diff_id.update(&segment.piece.frame);
            diff_id.update(&segment.piece.block);
            layer.add(&segment.frame)?;
            layer.add(&segment.lines)?;
        }
    }
    Ok(GzipDigests {
        all: all.map(Member::end).transpose()?,
        layer: layer.map(Member::end).transpose()?,
        diff_id: diff_id.map(Hasher::finish),
    })
}

struct Member {
    sink: HashingWriter<Sink>,
    name: &'static str,
    checksum: Crc,
}

impl Member {
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

fn failed(part: &'static str) -> impl FnOnce(io::Error) -> RenderError {
    move |source| RenderError::Sink { part, source }
}
