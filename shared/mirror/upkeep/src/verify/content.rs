//! Checks the meaning of an object: its recorded size and hash, and the content that it decodes to.

use std::io::{self, Write};

use model::text::chain;
use model::{
    Content, DocumentCheck, Encoding, Hasher, Kind, ManifestEntry, ObjectDigest, Sha256,
    ZSTD_WINDOW_LOG_MAX,
};

/// Defect of one stored object or document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectProblem {
    /// A document names the object, and it is not there.
    #[error("is missing")]
    Missing,
    /// Its bytes do not hash to its key.
    #[error("is damaged: its {} bytes have the sha256 {}", .found.size, .found.sha256)]
    Hash {
        /// Size and hash that were found.
        found: ObjectDigest,
    },
    /// It has more bytes than recorded.
    #[error("has more than the recorded {0} bytes")]
    TooLong(u64),
    /// Its bytes are the recorded ones, and do not decode to the recorded content.
    #[error("does not decode to the content that is recorded for it")]
    Content,
    /// A document that cannot be read.
    #[error("cannot be used: {0}")]
    Document(String),
    /// A document that contradicts another one.
    #[error("does not agree with {0}")]
    Disagrees(&'static str),
    /// `catalogs.json` does not have the name of a catalog.
    #[error("does not list the catalog; the next poll puts it back")]
    Unlisted,
}

/// Checks the bytes of one object as they stream by: hash and size as stored, and the content that
/// they decode to. Decoding stops as soon as there is more content than recorded.
pub struct IntegrityCheck {
    recorded: ObjectDigest,
    hasher: Hasher,
    seen: u64,
    /// Decoder of the content; `None` for an object without recorded content.
    decoder: Option<ContentDecoder>,
    /// Reader of a document, which can only be read as a whole.
    document: Option<DocumentCheck>,
    /// Bytes of the document so far.
    held: Vec<u8>,
}

enum ContentDecoder {
    Identity(Box<ContentHasher>),
    Zstd(Box<zstd::stream::write::Decoder<'static, ContentHasher>>),
    Gzip(Box<flate2::write::MultiGzDecoder<ContentHasher>>),
    /// The decoder cannot be made, so the content cannot be checked.
    Broken,
}

/// Hashes content, and refuses more than recorded before it costs anything.
struct ContentHasher {
    recorded: Sha256,
    hasher: Hasher,
    left: u64,
}

impl IntegrityCheck {
    /// Creates a check that expects the object of `entry`.
    pub fn new(entry: &ManifestEntry) -> Self {
        let decoder = |content| ContentDecoder::new(entry.object.kind, content);
        Self {
            recorded: entry.object.digest,
            hasher: Hasher::new(),
            seen: 0,
            decoder: entry.content.map(decoder),
            document: entry.object.kind.document(),
            held: Vec::new(),
        }
    }

    /// Checks the next chunk. To be called before the chunk goes anywhere.
    ///
    /// # Errors
    /// [`ObjectProblem::TooLong`] and [`ObjectProblem::Content`] as soon as they are certain.
    pub fn update(&mut self, bytes: &[u8]) -> Result<(), ObjectProblem> {
        self.seen += bytes.len() as u64;
        if self.seen > self.recorded.size {
            return Err(ObjectProblem::TooLong(self.recorded.size));
        }
        // A larger document is refused at the end as unreadable, without a copy of it in memory.
        if let Some(document) = &self.document
            && self.recorded.size <= document.max_bytes
        {
            self.held.extend_from_slice(bytes);
        }
        self.hasher.update(bytes);
        let decoded = self
            .decoder
            .as_mut()
            .map_or(Ok(()), |decoder| decoder.write(bytes));
        decoded.map_err(|_| ObjectProblem::Content)
    }

    /// Checks the whole object. To be called before the object gets its key.
    ///
    /// # Errors
    /// [`ObjectProblem::Hash`], [`ObjectProblem::Document`], [`ObjectProblem::Content`].
    pub fn finish(self) -> Result<(), ObjectProblem> {
        let (sha256, size) = (self.hasher.finish(), self.seen);
        let found = ObjectDigest { sha256, size };
        if found != self.recorded {
            return Err(ObjectProblem::Hash { found });
        }
        if let Some(document) = self.document {
            (document.read)(&self.held).map_err(|error| ObjectProblem::Document(chain(&error)))?;
        }
        match self.decoder.map(ContentDecoder::finish) {
            None | Some(Ok(true)) => Ok(()),
            Some(_) => Err(ObjectProblem::Content),
        }
    }
}

impl ContentDecoder {
    fn new(kind: Kind, content: Content) -> Self {
        let sink = ContentHasher {
            recorded: content.sha256,
            hasher: Hasher::new(),
            left: content.size,
        };
        match kind.encoding() {
            Encoding::Identity => Self::Identity(Box::new(sink)),
            Encoding::Gzip => Self::Gzip(Box::new(flate2::write::MultiGzDecoder::new(sink))),
            Encoding::Zstd => {
                zstd_decoder(sink).map_or(Self::Broken, |decoder| Self::Zstd(Box::new(decoder)))
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Identity(sink) => sink.write_all(bytes),
            Self::Zstd(decoder) => decoder.write_all(bytes),
            Self::Gzip(decoder) => decoder.write_all(bytes),
            // An error and not a pass: content that could not be checked must not count as
            // verified.
            Self::Broken => Err(io::ErrorKind::OutOfMemory.into()),
        }
    }

    /// Returns true if the content is the recorded one.
    fn finish(self) -> io::Result<bool> {
        let sink = match self {
            Self::Broken => return Ok(false),
            Self::Identity(sink) => *sink,
            Self::Zstd(mut decoder) => {
                decoder.flush()?;
                decoder.into_inner()
            }
            Self::Gzip(decoder) => decoder.finish()?,
        };
        Ok(sink.left == 0 && sink.hasher.finish() == sink.recorded)
    }
}

fn zstd_decoder(
    sink: ContentHasher,
) -> io::Result<zstd::stream::write::Decoder<'static, ContentHasher>> {
    let mut decoder = zstd::stream::write::Decoder::new(sink)?;
    // A larger window would let a stored frame demand any amount of memory.
    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
    Ok(decoder)
}

impl Write for ContentHasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.left.checked_sub(bytes.len() as u64);
        self.left = left.ok_or(io::ErrorKind::FileTooLarge)?;
        self.hasher.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use model::{Document, Index};

    use super::*;

    const LINES: &[u8] = b"{\"schema\":\"olm.package\"}\n";

    fn entry(kind: Kind, bytes: &[u8], lines: &[u8]) -> ManifestEntry {
        ManifestEntry {
            object: ObjectDigest::of(bytes).with_kind(kind),
            content: Some(Content::of(lines)),
        }
    }

    fn check(entry: &ManifestEntry, bytes: &[u8]) -> Result<(), ObjectProblem> {
        let mut check = IntegrityCheck::new(entry);
        // Byte by byte, so that every boundary is tested.
        bytes.chunks(1).try_for_each(|byte| check.update(byte))?;
        check.finish()
    }

    fn packed(lines: &[u8]) -> Vec<u8> {
        zstd::bulk::compress(lines, 3).unwrap()
    }

    #[test]
    fn integrity_check_accepts_only_the_recorded_bytes() {
        let plain = Kind::All(Encoding::Identity);
        for (kind, bytes) in [(Kind::Package, packed(LINES)), (plain, LINES.to_vec())] {
            let entry = entry(kind, &bytes, LINES);
            assert_eq!(check(&entry, &bytes), Ok(()));
            let longer = [&bytes[..], b"x"].concat();
            assert_eq!(
                check(&entry, &longer),
                Err(ObjectProblem::TooLong(bytes.len() as u64))
            );
            assert!(check(&entry, &bytes[1..]).is_err());
            for at in 0..bytes.len() {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1;
                assert!(check(&entry, &flipped).is_err(), "{kind:?}: byte {at}");
            }
        }
    }

    #[test]
    fn integrity_check_reads_documents() {
        let checked = |kind, content: &[u8]| {
            let bytes = packed(content);
            let document = ManifestEntry {
                content: None,
                ..entry(kind, &bytes, LINES)
            };
            check(&document, &bytes)
        };
        let facts = br#"{"formatVersion":3,"version":1,"packages":{"db":{"errors":1}}}"#;
        assert_eq!(checked(Kind::Index, &Index::default().to_bytes()), Ok(()));
        assert_eq!(checked(Kind::Facts, facts), Ok(()));
        let shards = b"{\"formatVersion\":3,\"shards\":[{}]}";
        for (kind, content) in [(Kind::Index, &shards[..]), (Kind::Facts, LINES)] {
            let error = checked(kind, content).unwrap_err();
            assert!(
                matches!(error, ObjectProblem::Document(_)),
                "{kind:?}: {error}"
            );
        }
    }

    #[test]
    fn integrity_check_refuses_other_content_and_bombs() {
        for other in [&b"other\n"[..], &[b'x'; 1 << 20]] {
            let bytes = packed(other);
            let entry = entry(Kind::Package, &bytes, LINES);
            assert_eq!(check(&entry, &bytes), Err(ObjectProblem::Content));
        }
    }
}
