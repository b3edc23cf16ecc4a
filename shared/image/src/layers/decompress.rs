//! Layers are told apart by their first bytes: media types lie, and containerd does not believe them either.

use std::cell::Cell;
use std::io::{self, BufRead, Cursor, Read};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;

use crate::digest::Digest;
use crate::error::{Error, LayerError, Limit};
use crate::layers::budget::Budget;

/// zstd's own default bound of the window, 128 MiB: what any decoder accepts without being asked to take more.
const MOST_WINDOW_LOG: u32 = 27;

/// Tar archives are made of such blocks.
const BLOCK_BYTES: u64 = 512;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// Skippable zstd frames start with 0x184D2A50 to 0x184D2A5F, in little endian.
const ZSTD_SKIPPABLE: &[u8] = &[0x2a, 0x4d, 0x18];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];
const BZIP2: &[u8] = b"BZh";

/// The tar stream inside `raw`, whatever it is compressed with.
pub(crate) fn decompress<'a>(raw: &'a mut impl BufRead) -> Result<Box<dyn Read + 'a>, LayerError> {
    let start = peek(raw).map_err(LayerError::Format)?;
    let start = start.as_slice();
    let raw = Cursor::new(start.to_owned()).chain(raw);
    if start.starts_with(GZIP) {
        Ok(Box::new(MultiGzDecoder::new(raw)))
    } else if start.starts_with(ZSTD) || start.get(1..4) == Some(ZSTD_SKIPPABLE) {
        let mut decoder = zstd::Decoder::with_buffer(raw).map_err(LayerError::Format)?;
        decoder.window_log_max(MOST_WINDOW_LOG).map_err(LayerError::Format)?;
        Ok(Box::new(decoder))
    } else if start.starts_with(XZ) {
        Err(LayerError::Compression("xz"))
    } else if start.starts_with(BZIP2) {
        Err(LayerError::Compression("bzip2"))
    } else {
        Ok(Box::new(raw))
    }
}

/// The first bytes, taken out of the stream: a chunk may be shorter than a magic number.
fn peek(raw: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut start = Vec::with_capacity(8);
    raw.take(6).read_to_end(&mut start)?;
    Ok(start)
}

/// Counts what comes out of a decompressor, against the image's budget and against the end of headers.
pub(crate) struct Metered<'a, R> {
    inner: R,
    budget: &'a Budget,
    layer: &'a Digest,
    gauge: Gauge,
}

/// Where a tar stream is, and how far it may go before the next entry must have appeared.
#[derive(Clone, Default)]
pub(crate) struct Gauge(Rc<GaugeState>);

#[derive(Default)]
struct GaugeState {
    at: Cell<u64>,
    bound: Cell<Option<u64>>,
    content_end: Cell<u64>,
    exceeded: Cell<Option<Limit>>,
}

impl Gauge {
    /// Headers may go on until `bound`.
    pub(crate) fn bound(&self, bound: Option<u64>) {
        self.0.bound.set(bound);
    }

    /// The content of the last entry ends here; what may still come of it is padding.
    pub(crate) fn content_end(&self, end: u64) {
        self.0.content_end.set(end);
    }

    /// Zeros that make up for a last block which was not padded. Some tools leave that and the end of
    /// the archive out, and Go reads such archives.
    fn padding(&self) -> usize {
        let at = self.0.at.get();
        if at < self.0.content_end.get() {
            return 0;
        }
        (at.next_multiple_of(BLOCK_BYTES) - at) as usize
    }

    /// The limit that ended the stream, if one did.
    pub(crate) fn exceeded(&self) -> Option<Error> {
        self.0.exceeded.take().map(Error::Limit)
    }
}

impl<'a, R> Metered<'a, R> {
    pub(crate) fn new(inner: R, budget: &'a Budget, layer: &'a Digest, gauge: Gauge) -> Self {
        Self {
            inner,
            budget,
            layer,
            gauge,
        }
    }

    fn check(&self, count: u64) -> Result<(), Limit> {
        self.budget.bytes(self.layer, count)?;
        let state = &self.gauge.0;
        state.at.set(state.at.get() + count);
        if state.bound.get().is_some_and(|bound| state.at.get() > bound) {
            let place = format!("headers of an entry of layer {}", self.layer);
            return Err(Limit {
                name: "header_bytes",
                limit: self.budget.limits.header_bytes,
                place,
            });
        }
        Ok(())
    }
}

impl<R: Read> Read for Metered<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut count = self.inner.read(buffer)?;
        if count == 0 {
            count = self.gauge.padding().min(buffer.len());
            buffer[..count].fill(0);
        }
        self.check(count as u64).map_err(|limit| {
            self.gauge.0.exceeded.set(Some(limit));
            io::Error::other("a limit was exceeded")
        })?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, 1).unwrap()
    }

    #[test]
    fn streams_of_several_parts_decode_whole() {
        let skippable = [0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9];
        for stream in [
            b"hello world".to_vec(),
            [gzip(b"hello "), gzip(b"world")].concat(),
            [zstd(b"hello "), zstd(b"world")].concat(),
            [&skippable[..], &zstd(b"hello world")].concat(),
        ] {
            let mut out = String::new();
            // A one-byte buffer stands for the shortest chunks a network can bring.
            let mut raw = io::BufReader::with_capacity(1, stream.as_slice());
            decompress(&mut raw).unwrap().read_to_string(&mut out).unwrap();
            assert_eq!(out, "hello world");
        }
    }

    #[test]
    fn other_compressions_are_named() {
        for (start, name) in [(XZ, "xz"), (b"BZh91AY", "bzip2")] {
            let error = decompress(&mut &start[..]).err().unwrap();
            assert!(error.to_string().contains(name));
        }
    }
}
