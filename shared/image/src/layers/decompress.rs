//! Layers are told apart by their first bytes: media types lie, and containerd does not believe them either.

use std::io::{self, BufRead, Cursor, Read};

use flate2::bufread::MultiGzDecoder;

use crate::error::LayerError;
use crate::layers::budget::Meter;

/// zstd's own default bound of the window, 128 MiB: what any decoder accepts without being asked to take more.
const MOST_WINDOW_LOG: u32 = 27;

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

/// Counts what comes out of a decompressor. A limit ends the stream with itself as the error.
pub(crate) struct Metered<'a, R> {
    inner: R,
    meter: Meter<'a>,
}

impl<'a, R> Metered<'a, R> {
    pub(crate) fn new(inner: R, meter: Meter<'a>) -> Self {
        Self { inner, meter }
    }
}

impl<R: Read> Read for Metered<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.meter.bytes(count as u64).map_err(io::Error::other)?;
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
