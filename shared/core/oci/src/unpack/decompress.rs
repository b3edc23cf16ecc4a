//! Decompression of layers. The first bytes decide about the format, because media types are often
//! wrong; containerd does the same.

use std::io::{self, BufRead, Cursor, Read};

use flate2::bufread::MultiGzDecoder;
use work::OverBudget;

use crate::{LayerError, LayerScan, NamedLimit};

/// Maximum window of zstd, 128 MiB: the default limit of every decoder.
const MAX_WINDOW_LOG: u32 = 27;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// Skippable zstd frames start with 0x184D2A50 to 0x184D2A5F, in little endian.
const ZSTD_SKIPPABLE: &[u8] = &[0x2a, 0x4d, 0x18];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];
const BZIP2: &[u8] = b"BZh";

/// Returns the decompressed bytes of `raw`: of gzip, of zstd, or as they are.
///
/// # Errors
/// Another compression, and a stream whose first bytes cannot be read.
pub fn decompress<'a>(raw: &'a mut impl BufRead) -> Result<Box<dyn Read + 'a>, LayerError> {
    let mut start = Vec::with_capacity(8);
    // `fill_buf` would not do: a chunk can be shorter than a magic number.
    let taken = raw.by_ref().take(6).read_to_end(&mut start);
    taken.map_err(LayerError::Format)?;
    let raw = Cursor::new(start.clone()).chain(raw);
    if start.starts_with(GZIP) {
        Ok(Box::new(MultiGzDecoder::new(raw)))
    } else if start.starts_with(ZSTD) || start.get(1..4) == Some(ZSTD_SKIPPABLE) {
        let mut decoder = zstd::Decoder::with_buffer(raw).map_err(LayerError::Format)?;
        decoder
            .window_log_max(MAX_WINDOW_LOG)
            .map_err(LayerError::Format)?;
        Ok(Box::new(decoder))
    } else if start.starts_with(XZ) {
        Err(LayerError::Compression("xz"))
    } else if start.starts_with(BZIP2) {
        Err(LayerError::Compression("bzip2"))
    } else {
        Ok(Box::new(raw))
    }
}

/// Counts the bytes that a decompressor returns. An exceeded limit ends the stream with the limit
/// as the error.
pub(crate) struct MeteredReader<'a, R> {
    pub(crate) inner: R,
    pub(crate) scan: &'a LayerScan,
    /// Number of bytes so far.
    pub(crate) bytes: u64,
}

impl<R: Read> Read for MeteredReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let LayerScan { budget, layer, .. } = self.scan;
        if budget.work.is_stopped() {
            return Err(io::Error::other(OverBudget::Stopped));
        }
        let count = self.inner.read(buffer)? as u64;
        // The whole image first, so that many layers below their own ratio cannot exceed the total.
        let counted = budget.count_bytes(count, || self.scan.place());
        counted.map_err(io::Error::other)?;
        self.bytes += count;
        let limits = &budget.limits;
        let most = limits.ratio.saturating_mul(layer.size);
        if self.bytes > most.max(limits.ratio_floor_bytes) {
            let limit = NamedLimit::new("ratio", limits.ratio);
            return Err(io::Error::other(limit.exceeded(self.scan.place())));
        }
        Ok(count as usize)
    }
}

#[cfg(test)]
mod tests {
    use testkit::{gzip, zstd};

    use super::*;

    #[test]
    fn stream_of_several_members_is_decompressed_to_its_end() {
        let skippable = [0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9];
        for stream in [
            b"hello world".to_vec(),
            [gzip(b"hello "), gzip(b"world")].concat(),
            [zstd(b"hello "), zstd(b"world")].concat(),
            [&skippable[..], &zstd(b"hello world")].concat(),
        ] {
            let mut out = String::new();
            // A buffer of one byte stands for the shortest chunks of a network.
            let mut raw = io::BufReader::with_capacity(1, stream.as_slice());
            decompress(&mut raw)
                .unwrap()
                .read_to_string(&mut out)
                .unwrap();
            assert_eq!(out, "hello world");
        }
    }

    #[test]
    fn read_of_stopped_work_fails() {
        let layer = crate::BlobRef {
            digest: crate::Digest::of(b""),
            size: 100,
        };
        let work = work::Budget::default();
        let scan = LayerScan {
            depth: 0,
            layer,
            root: crate::Root::plain(Vec::new()),
            budget: crate::UnpackBudget::new(&crate::ImageLimits::default(), work.clone()).into(),
        };
        let mut reader = MeteredReader {
            inner: io::repeat(0),
            scan: &scan,
            bytes: 0,
        };
        let mut buffer = [1; 4];
        reader.read_exact(&mut buffer).unwrap();
        work.stop();
        assert!(reader.read(&mut buffer).is_err());
    }

    #[test]
    fn unsupported_compression_is_named() {
        for (start, name) in [(XZ, "xz"), (b"BZh91AY", "bzip2")] {
            let error = decompress(&mut &start[..]).err().unwrap();
            assert!(error.to_string().contains(name));
        }
    }
}
