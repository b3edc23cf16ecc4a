//! One gzip member (RFC 1952), compressed on several threads.
//!
//! The content comes in blocks of a fixed size. Each is deflated with the end of the one before as its dictionary and
//! ends on a byte border (RFC 1951: an empty stored block), so that the segments one after the other are one deflate
//! stream. Several members would be simpler, but curl, reqwest and httpx read only the first.

use std::{
    io::{self, Write},
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::Scope,
};

use flate2::{Compress, Compression, FlushCompress, Status};

use crate::whole::Block;

/// How far back deflate can look.
const WINDOW: usize = 32 << 10;
/// Magic, deflate, no flags, no time, no hints, unknown system: nothing that depends on where it is made.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// An empty last block.
const LAST_BLOCK: [u8; 2] = [0x03, 0x00];

/// Block number `n` goes to lane `n` modulo the number of lanes, and comes back from it in turn.
pub(crate) struct Lanes {
    inputs: Vec<SyncSender<Job>>,
    next: usize,
    before: Option<Arc<Block>>,
}

/// The other end of [`Lanes`].
pub(crate) struct Segments(Vec<Receiver<io::Result<Segment>>>);

struct Job {
    before: Option<Arc<Block>>,
    block: Arc<Block>,
}

struct Segment {
    deflated: Vec<u8>,
    checksum: crc32fast::Hasher,
    size: usize,
}

pub(crate) fn lanes<'scope>(scope: &'scope Scope<'scope, '_>, count: usize, level: u32) -> (Lanes, Segments) {
    let (inputs, outputs) = (0..count.max(1)).map(|_| lane(scope, level)).unzip();
    (
        Lanes {
            inputs,
            next: 0,
            before: None,
        },
        Segments(outputs),
    )
}

fn lane<'scope>(scope: &'scope Scope<'scope, '_>, level: u32) -> (SyncSender<Job>, Receiver<io::Result<Segment>>) {
    let (input, jobs) = sync_channel::<Job>(1);
    let (results, output) = sync_channel(1);
    scope.spawn(move || {
        let mut deflate = Compress::new(Compression::new(level), false);
        for job in jobs {
            if results.send(job.deflate(&mut deflate)).is_err() {
                break;
            }
        }
    });
    (input, output)
}

impl Lanes {
    /// Hands out a block; `false` when nobody listens any more.
    pub(crate) fn send(&mut self, block: &Arc<Block>) -> bool {
        let job = Job {
            before: self.before.replace(block.clone()),
            block: block.clone(),
        };
        let lane = self.next;
        self.next = (lane + 1) % self.inputs.len();
        self.inputs[lane].send(job).is_ok()
    }
}

impl Segments {
    /// Writes the member.
    pub(crate) fn write<W: Write>(self, mut sink: W) -> io::Result<W> {
        let mut checksum = crc32fast::Hasher::new();
        let mut size = 0_u32;
        sink.write_all(&HEADER)?;
        for lane in self.0.iter().cycle() {
            let Ok(segment) = lane.recv() else { break };
            let segment = segment?;
            sink.write_all(&segment.deflated)?;
            checksum.combine(&segment.checksum);
            // The member records its size modulo 2^32.
            size = size.wrapping_add(segment.size as u32);
        }
        sink.write_all(&LAST_BLOCK)?;
        sink.write_all(&checksum.finalize().to_le_bytes())?;
        sink.write_all(&size.to_le_bytes())?;
        Ok(sink)
    }
}

impl Job {
    fn deflate(&self, deflate: &mut Compress) -> io::Result<Segment> {
        deflate.reset();
        if let Some(before) = &self.before {
            deflate.set_dictionary(&before[before.len().saturating_sub(WINDOW)..])?;
        }
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&self.block);
        let deflated = deflate_all(deflate, &self.block)?;
        Ok(Segment {
            deflated,
            checksum,
            size: self.block.len(),
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

#[cfg(test)]
mod tests {
    use std::{io::Read, thread};

    use super::*;

    fn member(blocks: &[Vec<u8>], count: usize) -> Vec<u8> {
        thread::scope(|scope| {
            let (mut lanes, segments) = lanes(scope, count, 6);
            let writer = scope.spawn(move || segments.write(Vec::new()).unwrap());
            for block in blocks {
                assert!(lanes.send(&Arc::new(block.clone())));
            }
            drop(lanes);
            writer.join().unwrap()
        })
    }

    fn blocks() -> Vec<Vec<u8>> {
        let line = |at: u32| {
            format!(
                "{{\"name\":\"operator.v{}\",\"n\":{}}}\n",
                at % 97,
                at.wrapping_mul(2_654_435_761)
            )
        };
        (0..7)
            .map(|block| (0..4000).flat_map(|at| line(block * 4000 + at).into_bytes()).collect())
            .collect()
    }

    #[test]
    fn one_member_that_every_reader_understands() {
        let bytes = member(&blocks(), 2);
        let mut read = Vec::new();
        let mut decoder = flate2::bufread::GzDecoder::new(&bytes[..]);
        decoder.read_to_end(&mut read).unwrap();
        assert_eq!(read, blocks().concat());
        assert!(decoder.into_inner().is_empty(), "nothing follows the first member");
    }

    #[test]
    fn the_same_bytes_whatever_the_number_of_lanes() {
        assert_eq!(member(&blocks(), 1), member(&blocks(), 3));
    }

    #[test]
    fn nothing_is_a_valid_member_too() {
        let mut read = Vec::new();
        flate2::bufread::GzDecoder::new(&member(&[], 2)[..])
            .read_to_end(&mut read)
            .unwrap();
        assert!(read.is_empty());
    }

    #[test]
    fn incompressible_blocks_survive() {
        let mut seed = 1_u64;
        let mut noise = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as u8
        };
        let blocks: Vec<Vec<u8>> = (0..3).map(|_| (0..100_000).map(|_| noise()).collect()).collect();
        let mut read = Vec::new();
        flate2::bufread::GzDecoder::new(&member(&blocks, 2)[..])
            .read_to_end(&mut read)
            .unwrap();
        assert_eq!(read, blocks.concat());
    }
}
