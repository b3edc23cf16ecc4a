//! The lines of a catalog, from the stored object of another mirror.

use std::io::{self, Read};

use model::{Current, Sha256};
use oci::{Budget, ContentReader, Digest, DigestHasher, FileSink, ImageLimits, LayerError, LimitExceeded, decompress};

use crate::error::Error;
use crate::mirror::{MirrorError, MirrorLocation};
use crate::stream::ChannelReader;

/// Path of the one file that a sink gets.
const FILE: &str = "all.json";

/// Expected hash and sizes of the lines.
pub(crate) struct ExpectedLines {
    hash: Sha256,
    bytes: u64,
}

impl ExpectedLines {
    /// Takes hash and size from the pointer, if they are within the limits.
    pub(crate) fn new(
        location: &MirrorLocation,
        current: &Current,
        limits: &ImageLimits,
    ) -> Result<Self, LimitExceeded> {
        let stored = current.all.zstd.digest.size;
        let place = || format!("{FILE} of {location}");
        let exceeded = |name, limit| LimitExceeded {
            name,
            limit,
            place: place(),
        };
        if stored > limits.compressed_bytes {
            return Err(exceeded("compressedBytes", limits.compressed_bytes));
        }
        let budget = Budget::new(limits);
        budget.count_bytes(current.size, place)?;
        budget.check_file(FILE, current.size)?;
        if current.size > limits.decompressed_of(stored) {
            return Err(exceeded("ratio", limits.ratio));
        }
        Ok(Self {
            hash: current.content_hash,
            bytes: current.size,
        })
    }

    /// Decompresses `raw` and passes it to `sink` as one file. Reads all of it, also what the sink leaves.
    pub(crate) fn feed<S: FileSink>(
        &self,
        location: &MirrorLocation,
        mut raw: ChannelReader,
        mut sink: S,
    ) -> Result<S, Error> {
        let fed = self.feed_from(location, &mut raw, &mut sink);
        // To the end of the stream, because a wrong digest there explains the failure better.
        raw.drain();
        fed.map(|()| sink)
    }

    fn feed_from<S: FileSink>(
        &self,
        location: &MirrorLocation,
        raw: &mut ChannelReader,
        sink: &mut S,
    ) -> Result<(), Error> {
        let broken = |source| location.error(MirrorError::Content(source));
        let plain = decompress(raw).map_err(broken)?;
        let mut lines = HashedLines {
            // One byte more shows that there are more than the pointer states.
            inner: plain.take(self.bytes.saturating_add(1)),
            hasher: DigestHasher::default(),
            seen: 0,
        };
        let mut stated = lines.by_ref().take(self.bytes);
        let mut content = ContentReader::new(&mut stated, self.bytes);
        let outcome = sink.file(FILE, self.bytes, &mut content);
        if let Some(source) = content.take_failure() {
            return Err(broken(LayerError::Format(source)));
        }
        outcome.map_err(Error::Sink)?;
        drop(content);
        io::copy(&mut lines, &mut io::sink()).map_err(|source| broken(LayerError::Format(source)))?;
        // The sink got no more than was stated, so longer lines must not pass, whatever their hash is.
        if lines.seen != self.bytes {
            return Err(location.error(MirrorError::Longer(self.bytes)));
        }
        let actual = lines.hasher.finish();
        let expected = content_digest(self.hash);
        if actual == expected {
            return Ok(());
        }
        Err(Error::Digest {
            what: FILE,
            expected,
            actual,
        })
    }
}

/// Returns a hash of the mirror as a digest.
pub(crate) fn content_digest(hash: Sha256) -> Digest {
    let digest = format!("sha256:{hash}").parse();
    digest.expect("a sha256 is 64 hex digits in lower case")
}

struct HashedLines<R> {
    inner: R,
    hasher: DigestHasher,
    seen: u64,
}

impl<R: Read> Read for HashedLines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        self.seen += count as u64;
        Ok(count)
    }
}
