//! Segments of gzip members, deflated on several threads and once for all members that have them in common.
//!
//! The lines come in blocks. Each is deflated with the end of the one before as its dictionary, but never with that of
//! another Shard, and ends on a byte border (RFC 1951: an empty stored block). So the segments one after the other are
//! one deflate stream, and so they are with other segments between those of two Shards: `all.json.gz` and the image's
//! layer are made of the same ones. Measured on 333 Packages this makes the first 1 % larger, and the second costs
//! nothing but its frames and hashes.

use std::{
    io,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::Scope,
};

use flate2::{Compress, Compression, FlushCompress, Status};

use crate::whole::{Block, Piece};

/// How far back deflate can look.
const WINDOW: usize = 32 << 10;

/// Piece number `n` goes to lane `n` modulo the number of lanes, and comes back from it in turn.
pub(crate) struct Lanes {
    inputs: Vec<SyncSender<Job>>,
    next: usize,
    before: Option<Arc<Block>>,
}

/// The other end of [`Lanes`].
pub(crate) struct Segments(Vec<Receiver<io::Result<Segment>>>);

struct Job {
    before: Option<Arc<Block>>,
    piece: Piece,
}

/// A piece, deflated.
pub(crate) struct Segment {
    pub(crate) piece: Piece,
    pub(crate) frame: Deflated,
    pub(crate) lines: Deflated,
}

/// Bytes and what a member records of them.
pub(crate) struct Deflated {
    pub(crate) bytes: Vec<u8>,
    pub(crate) checksum: crc32fast::Hasher,
    pub(crate) size: usize,
}

pub(crate) fn lanes<'scope>(scope: &'scope Scope<'scope, '_>, count: usize, level: u32) -> (Lanes, Segments) {
    let (inputs, outputs) = (0..count.max(1)).map(|_| lane(scope, level)).unzip();
    let lanes = Lanes {
        inputs,
        next: 0,
        before: None,
    };
    (lanes, Segments(outputs))
}

fn lane<'scope>(scope: &'scope Scope<'scope, '_>, level: u32) -> (SyncSender<Job>, Receiver<io::Result<Segment>>) {
    let (input, jobs) = sync_channel::<Job>(1);
    let (results, output) = sync_channel(1);
    scope.spawn(move || {
        let mut deflate = Compress::new(Compression::new(level), false);
        for job in jobs {
            if results.send(job.run(&mut deflate)).is_err() {
                break;
            }
        }
    });
    (input, output)
}

impl Lanes {
    /// Hands out a piece; `false` when nobody listens any more.
    pub(crate) fn send(&mut self, piece: Piece) -> bool {
        let before = self.before.replace(piece.block.clone());
        let job = Job {
            before: before.filter(|_| !piece.begins),
            piece,
        };
        let lane = self.next;
        self.next = (lane + 1) % self.inputs.len();
        self.inputs[lane].send(job).is_ok()
    }
}

impl Segments {
    /// The segments in the order of their pieces.
    pub(crate) fn iter(&self) -> impl Iterator<Item = io::Result<Segment>> {
        self.0.iter().cycle().map_while(|lane| lane.recv().ok())
    }
}

impl Job {
    fn run(self, deflate: &mut Compress) -> io::Result<Segment> {
        let before = self.before.as_ref().map(|before| &before[..]);
        Ok(Segment {
            frame: Deflated::new(deflate, &self.piece.frame, None)?,
            lines: Deflated::new(deflate, &self.piece.block, before)?,
            piece: self.piece,
        })
    }
}

impl Deflated {
    fn new(deflate: &mut Compress, plain: &[u8], before: Option<&[u8]>) -> io::Result<Self> {
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(plain);
        let bytes = match plain {
            [] => Vec::new(),
            _ => {
                deflate.reset();
                if let Some(before) = before {
                    deflate.set_dictionary(&before[before.len().saturating_sub(WINDOW)..])?;
                }
                deflate_all(deflate, plain)?
            }
        };
        Ok(Self {
            bytes,
            checksum,
            size: plain.len(),
        })
    }
}

fn deflate_all(deflate: &mut Compress, mut input: &[u8]) -> io::Result<Vec<u8>> {
    let mut output = Vec::with_capacity(input.len() / 4 + 1024);
    loop {
        let before = deflate.total_in();
        let status = deflate.compress_vec(input, &mut output, FlushCompress::Sync)?;
        input = &input[(deflate.total_in() - before) as usize..];
        // The flush is complete once the output was not filled to its end.
        if input.is_empty() && output.len() < output.capacity() && status != Status::StreamEnd {
            return Ok(output);
        }
        output.reserve(output.capacity() / 2 + 1024);
    }
}
