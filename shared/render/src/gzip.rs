//! Two gzip members (RFC 1952) made of the same segments: `all.json.gz`, and the image's layer, which has the headers of
//! a tar archive between them. Each is one member: curl, reqwest and httpx read only the first.

use std::io::{self, Write};

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
    checksum: crc32fast::Hasher,
    size: u32,
}

impl Member {
    fn begin(sink: Sink, name: &'static str) -> Result<Self, RenderError> {
        let mut member = Self {
            sink: HashingWriter::new(sink),
            name,
            checksum: crc32fast::Hasher::new(),
            size: 0,
        };
        member.put(&HEADER)?;
        Ok(member)
    }

    fn add(&mut self, deflated: &Deflated) -> Result<(), RenderError> {
        self.checksum.combine(&deflated.checksum);
        // The member records its size modulo 2^32.
        self.size = self.size.wrapping_add(deflated.size as u32);
        self.put(&deflated.bytes)
    }

    fn end(mut self) -> Result<ObjectDigest, RenderError> {
        self.put(&LAST_BLOCK)?;
        let checksum = std::mem::take(&mut self.checksum).finalize();
        self.put(&checksum.to_le_bytes())?;
        self.put(&self.size.to_le_bytes())?;
        self.sink.finish().map_err(failed(self.name))
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), RenderError> {
        self.sink.write_all(bytes).map_err(failed(self.name))
    }
}

fn failed(part: &'static str) -> impl FnOnce(io::Error) -> RenderError {
    move |source| RenderError::Sink { part, source }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Read,
        sync::{Arc, Mutex},
        thread,
    };

    use super::*;
    use crate::{deflate::lanes, write_all::Piece};

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns `all.json.gz` and the layer.
    fn members(pieces: &[Piece], count: usize) -> (Vec<u8>, Vec<u8>) {
        let (all, layer) = (Shared::default(), Shared::default());
        let sinks = (all.clone(), layer.clone());
        let written = thread::scope(|scope| {
            let (mut lanes, segments) = lanes(scope, count, 6);
            let writer =
                scope.spawn(move || write(&segments, Some(Box::new(sinks.0)), Some(Box::new(sinks.1))).unwrap());
            for piece in pieces {
                assert!(lanes.send(piece.clone()));
            }
            drop(lanes);
            writer.join().unwrap()
        });
        let (all, layer) = (all.0.lock().unwrap().clone(), layer.0.lock().unwrap().clone());
        assert_eq!(written.all.unwrap().sha256, Sha256::of(&all));
        assert_eq!(written.layer.unwrap().sha256, Sha256::of(&layer));
        assert_eq!(written.diff_id.unwrap(), Sha256::of(&unpacked(&layer)));
        (all, layer)
    }

    fn unpacked(bytes: &[u8]) -> Vec<u8> {
        let mut read = Vec::new();
        let mut decoder = flate2::bufread::GzDecoder::new(bytes);
        decoder.read_to_end(&mut read).unwrap();
        assert!(decoder.into_inner().is_empty(), "no bytes follow the first member");
        read
    }

    /// Returns seven pieces, of which every second begins a Shard and has a frame, and a frame at the end.
    fn pieces(block: impl Fn(u32) -> Vec<u8>) -> Vec<Piece> {
        let piece = |at: u32| Piece {
            frame: vec![at as u8; if at.is_multiple_of(2) { 700 } else { 0 }],
            block: Arc::new(block(at)),
            deflated: None,
            begins: at.is_multiple_of(2),
        };
        let end = Piece {
            frame: vec![0; 1024],
            block: Arc::default(),
            deflated: None,
            begins: true,
        };
        (0..7).map(piece).chain([end]).collect()
    }

    fn lines(block: u32) -> Vec<u8> {
        let number = |at: u32| at.wrapping_mul(2_654_435_761);
        let line = |at: u32| format!("{{\"name\":\"operator.v{}\",\"n\":{}}}\n", at % 97, number(at));
        (0..4000).flat_map(|at| line(block * 4000 + at).into_bytes()).collect()
    }

    fn noise(block: u32) -> Vec<u8> {
        let mut seed = u64::from(block);
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as u8
        };
        (0..100_000).map(|_| next()).collect()
    }

    #[test]
    fn members_decompress_to_their_content() {
        for pieces in [pieces(lines), pieces(noise), Vec::new()] {
            let (all, layer) = members(&pieces, 2);
            let blocks: Vec<u8> = pieces.iter().flat_map(|piece| piece.block.to_vec()).collect();
            assert_eq!(unpacked(&all), blocks);
            let both = pieces
                .iter()
                .flat_map(|piece| [piece.frame.clone(), piece.block.to_vec()]);
            assert_eq!(unpacked(&layer), both.collect::<Vec<_>>().concat());
        }
    }

    #[test]
    fn number_of_lanes_does_not_change_the_bytes() {
        assert_eq!(members(&pieces(lines), 1), members(&pieces(lines), 3));
    }
}
