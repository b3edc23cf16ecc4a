//! Two gzip members (RFC 1952) made of the same segments: `all.json.gz`, and the image's layer,
//! which has the headers of a tar archive between them. Each is one member: curl, reqwest and httpx
//! read only the first.
//!
//! Segments are deflated on several threads, and once for both members. Lines come in blocks of one
//! Shard, and each is a segment (see [`crate::deflate`]). Therefore the segments in a row are one
//! deflate stream, also with other segments between them. Measured on 333 Packages, this makes
//! `all.json.gz` 3 % larger, and the layer costs only its frames and hashes.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Scope;

use flate2::Crc;
use model::{Hasher, ObjectDigest, Sha256};

use crate::RenderError;
use crate::deflate::Deflate;
use crate::write_all::{HashingWriter, Piece, Sink, failed};

/// Magic, deflate, no flags, no time, no hints, unknown system: the same on every machine.
pub(crate) const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// An empty last deflate block.
pub(crate) const LAST_BLOCK: [u8; 2] = [0x03, 0x00];

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
pub(crate) fn write(
    segments: &Segments,
    all: Option<Sink>,
    layer: Option<Sink>,
) -> Result<GzipDigests, RenderError> {
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

/// Threads that deflate in parallel. Piece number `n` goes to lane `n` modulo the number of lanes,
/// and its result comes back from that lane, so the order is kept.
pub(crate) struct Lanes {
    inputs: Vec<SyncSender<Piece>>,
    next: usize,
}

/// The results of [`Lanes`], in the order of the pieces.
pub(crate) struct Segments(Vec<Receiver<io::Result<Segment>>>);

/// A piece after compression.
pub(crate) struct Segment {
    pub(crate) piece: Piece,
    pub(crate) frame: Deflated,
    pub(crate) lines: Deflated,
}

/// Compressed bytes, with the checksum of the plain bytes, which knows their number too. A gzip
/// member records both.
pub(crate) struct Deflated {
    pub(crate) bytes: Vec<u8>,
    pub(crate) checksum: Crc,
}

pub(crate) fn lanes<'scope>(
    scope: &'scope Scope<'scope, '_>,
    count: usize,
    level: i32,
) -> (Lanes, Segments) {
    let (inputs, outputs) = (0..count.max(1)).map(|_| lane(scope, level)).unzip();
    (Lanes { inputs, next: 0 }, Segments(outputs))
}

fn lane<'scope>(
    scope: &'scope Scope<'scope, '_>,
    level: i32,
) -> (SyncSender<Piece>, Receiver<io::Result<Segment>>) {
    let (input, pieces) = sync_channel::<Piece>(1);
    let (results, output) = sync_channel(1);
    scope.spawn(move || {
        let mut deflate = Deflate::new(level);
        for piece in pieces {
            if results.send(Segment::new(&mut deflate, piece)).is_err() {
                break;
            }
        }
    });
    (input, output)
}

impl Lanes {
    /// Sends a piece to the next lane. False if the lanes have stopped.
    pub(crate) fn send(&mut self, piece: Piece) -> bool {
        let lane = self.next;
        self.next = (lane + 1) % self.inputs.len();
        self.inputs[lane].send(piece).is_ok()
    }
}

impl Segments {
    /// Returns the segments in the order of their pieces.
    pub(crate) fn iter(&self) -> impl Iterator<Item = io::Result<Segment>> {
        self.0.iter().cycle().map_while(|lane| lane.recv().ok())
    }
}

impl Segment {
    fn new(deflate: &mut Deflate, mut piece: Piece) -> io::Result<Self> {
        let lines = match piece.deflated.take() {
            Some(published) => published,
            None => deflate.segment(&piece.block)?,
        };
        Ok(Self {
            frame: Deflated::of(deflate.segment(&piece.frame)?, &piece.frame),
            lines: Deflated::of(lines, &piece.block),
            piece,
        })
    }
}

impl Deflated {
    fn of(bytes: Vec<u8>, plain: &[u8]) -> Self {
        let mut checksum = Crc::new();
        checksum.update(plain);
        Self { bytes, checksum }
    }
}
