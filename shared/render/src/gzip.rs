//! Two gzip members (RFC 1952) made of the same segments: `all.json.gz`, and the image's layer, which has the frames
//! of a tar archive between them. One member each: curl, reqwest and httpx read only the first.

use std::io::{self, Write};

use layout::{Hasher, Sha256, Stored};

use crate::{
    RenderError,
    deflate::{Deflated, Segments},
    measured::Measured,
};

/// Magic, deflate, no flags, no time, no hints, unknown system: nothing that depends on where it is made.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// An empty last block.
const LAST_BLOCK: [u8; 2] = [0x03, 0x00];

pub(crate) const ALL: &str = "all.json.gz";
const LAYER: &str = "the image's layer";

type Sink = Box<dyn Write + Send>;

/// What was written, where there was a sink for it.
#[derive(Default)]
pub(crate) struct Written {
    pub(crate) all: Option<Stored>,
    pub(crate) layer: Option<LayerFacts>,
}

/// The layer of a catalog's image as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerFacts {
    /// The layer, one gzip member.
    pub stored: Stored,
    /// The sha256 of the tar archive that it holds.
    pub diff_id: Sha256,
}

/// Writes the members that there is a sink for.
pub(crate) fn write(segments: &Segments, all: Option<Sink>, layer: Option<Sink>) -> Result<Written, RenderError> {
    let mut all = all.map(|sink| Member::begin(sink, ALL)).transpose()?;
    let mut layer = layer.map(Layer::begin).transpose()?;
    for segment in segments.iter() {
        let segment = segment.map_err(|source| RenderError::Sink { form: ALL, source })?;
        if let Some(all) = &mut all {
            all.add(&segment.lines)?;
        }
        if let Some(layer) = &mut layer {
            layer.add(&segment.piece.frame, &segment.frame)?;
            layer.add(&segment.piece.block, &segment.lines)?;
        }
    }
    Ok(Written {
        all: all.map(Member::end).transpose()?,
        layer: layer.map(Layer::end).transpose()?,
    })
}

/// A member that also knows the hash of what it holds.
struct Layer {
    member: Member,
    diff_id: Hasher,
}

impl Layer {
    fn begin(sink: Sink) -> Result<Self, RenderError> {
        Ok(Self {
            member: Member::begin(sink, LAYER)?,
            diff_id: Hasher::new(),
        })
    }

    fn add(&mut self, plain: &[u8], deflated: &Deflated) -> Result<(), RenderError> {
        self.diff_id.update(plain);
        self.member.add(deflated)
    }

    fn end(self) -> Result<LayerFacts, RenderError> {
        Ok(LayerFacts {
            stored: self.member.end()?,
            diff_id: self.diff_id.finish(),
        })
    }
}

struct Member {
    sink: Measured<Sink>,
    name: &'static str,
    checksum: crc32fast::Hasher,
    size: u32,
}

impl Member {
    fn begin(sink: Sink, name: &'static str) -> Result<Self, RenderError> {
        let mut member = Self {
            sink: Measured::new(sink),
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

    fn end(mut self) -> Result<Stored, RenderError> {
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

fn failed(form: &'static str) -> impl FnOnce(io::Error) -> RenderError {
    move |source| RenderError::Sink { form, source }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Read,
        sync::{Arc, Mutex},
        thread,
    };

    use super::*;
    use crate::{deflate::lanes, whole::Piece};

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

    /// `all.json.gz` and the layer.
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
        let facts = written.layer.unwrap();
        assert_eq!(facts.stored.sha256, Sha256::of(&layer));
        assert_eq!(facts.diff_id, Sha256::of(&unpacked(&layer)));
        (all, layer)
    }

    fn unpacked(bytes: &[u8]) -> Vec<u8> {
        let mut read = Vec::new();
        let mut decoder = flate2::bufread::GzDecoder::new(bytes);
        decoder.read_to_end(&mut read).unwrap();
        assert!(decoder.into_inner().is_empty(), "nothing follows the first member");
        read
    }

    /// Every second one begins a Shard, and so has a frame; the last is only one.
    fn pieces(block: impl Fn(u32) -> Vec<u8>) -> Vec<Piece> {
        let piece = |at: u32| Piece {
            frame: if at.is_multiple_of(2) {
                vec![at as u8; 700]
            } else {
                Vec::new()
            },
            block: Arc::new(block(at)),
            begins: at.is_multiple_of(2),
        };
        let end = Piece {
            frame: vec![0; 1024],
            block: Arc::default(),
            begins: true,
        };
        (0..7).map(piece).chain([end]).collect()
    }

    fn lines(block: u32) -> Vec<u8> {
        let line = |at: u32| {
            format!(
                "{{\"name\":\"operator.v{}\",\"n\":{}}}\n",
                at % 97,
                at.wrapping_mul(2_654_435_761)
            )
        };
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
    fn two_members_that_every_reader_understands() {
        for pieces in [pieces(lines), pieces(noise)] {
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
    fn the_same_bytes_whatever_the_number_of_lanes() {
        assert_eq!(members(&pieces(lines), 1), members(&pieces(lines), 3));
    }

    #[test]
    fn nothing_is_a_valid_member_too() {
        let (all, layer) = members(&[], 2);
        assert!(unpacked(&all).is_empty() && unpacked(&layer).is_empty());
    }
}
