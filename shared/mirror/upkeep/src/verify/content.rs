//! Checks the meaning of an object: its recorded size and hash, and the content that it decodes to.

use std::io::{self, Write};

use model::text::chain;
use model::{
    DecodedContent, DocumentCheck, Encoding, Hasher, Kind, ManifestEntry, ObjectDigest, Sha256,
    ZstdFrameDecoder,
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
    Zstd(Box<(ZstdFrameDecoder, ContentHasher)>),
    /// One member: many clients read only the first.
    Gzip(Box<flate2::write::GzDecoder<ContentHasher>>),
    /// The decoder cannot be made, so the content cannot be checked.
    Broken,
}

/// Hashes content, and refuses more than recorded before it costs anything.
struct ContentHasher {
    recorded: Sha256,
    hasher: Hasher,
    left: u64,
    /// True if `left` must be zero at the end, because the size is recorded.
    is_sized: bool,
}

impl IntegrityCheck {
    /// Creates a check that expects the object of `entry`.
    pub fn new(entry: &ManifestEntry) -> Self {
        let kind = entry.object.kind;
        let content = entry.content;
        Self {
            recorded: entry.object.digest,
            hasher: Hasher::new(),
            seen: 0,
            decoder: content.map(|content| ContentDecoder::new(kind, content)),
            document: kind.document(),
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
        let found = ObjectDigest {
            sha256: self.hasher.finish(),
            size: self.seen,
        };
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
    fn new(kind: Kind, content: DecodedContent) -> Self {
        let encoding = match content {
            DecodedContent::Text(_) => kind.encoding(),
            DecodedContent::Layer { .. } => Encoding::Gzip,
        };
        let sink = ContentHasher::new(content);
        match encoding {
            Encoding::Identity => Self::Identity(Box::new(sink)),
            Encoding::Gzip => Self::Gzip(Box::new(flate2::write::GzDecoder::new(sink))),
            Encoding::Zstd => match ZstdFrameDecoder::new() {
                Ok(decoder) => Self::Zstd(Box::new((decoder, sink))),
                Err(_) => Self::Broken,
            },
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Identity(sink) => sink.write_all(bytes),
            Self::Zstd(zstd) => {
                let (decoder, sink) = &mut **zstd;
                decoder.decode(bytes, sink)
            }
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
            Self::Zstd(zstd) => {
                let (decoder, sink) = *zstd;
                if !decoder.has_ended() {
                    return Ok(false);
                }
                sink
            }
            Self::Gzip(decoder) => decoder.finish()?,
        };
        Ok(sink.ends_as_recorded())
    }
}

impl ContentHasher {
    fn new(content: DecodedContent) -> Self {
        let (recorded, left, is_sized) = match content {
            DecodedContent::Text(text) => (text.sha256, text.size, true),
            DecodedContent::Layer { diff_id, size_max } => (diff_id, size_max, false),
        };
        Self {
            recorded,
            hasher: Hasher::new(),
            left,
            is_sized,
        }
    }

    fn ends_as_recorded(self) -> bool {
        let has_size = self.left == 0 || !self.is_sized;
        has_size && self.hasher.finish() == self.recorded
    }
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
    use model::{Content, Document, Index};

    use super::*;

    const LINES: &[u8] = b"{\"schema\":\"olm.package\"}\n";

    fn entry(kind: Kind, bytes: &[u8], lines: &[u8]) -> ManifestEntry {
        ManifestEntry {
            object: ObjectDigest::of(bytes).with_kind(kind),
            content: Some(DecodedContent::Text(Content::of(lines))),
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

    fn gzip(lines: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(lines).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn integrity_check_decodes_one_member_of_gzip_and_the_layer_of_an_image() {
        let whole = gzip(LINES);
        let two = [gzip(&LINES[..5]), gzip(&LINES[5..])].concat();
        let trailing = [&whole[..], b"x"].concat();
        let mut broken = whole.clone();
        broken[12] ^= 0x40;
        let cut = &whole[..whole.len() - 1];
        let layer = |bytes: &[u8], size_max| ManifestEntry {
            object: ObjectDigest::of(bytes).with_kind(Kind::Blob),
            content: Some(DecodedContent::Layer {
                diff_id: Sha256::of(LINES),
                size_max,
            }),
        };
        let max = LINES.len() as u64;
        for (name, bytes, expected) in [
            ("one member", &whole[..], Ok(())),
            ("two members", &two, Err(ObjectProblem::Content)),
            ("a byte behind it", &trailing, Err(ObjectProblem::Content)),
            ("a broken stream", &broken, Err(ObjectProblem::Content)),
            ("cut", cut, Err(ObjectProblem::Content)),
            (
                "other lines",
                &gzip(b"other\n"),
                Err(ObjectProblem::Content),
            ),
            ("no gzip", LINES, Err(ObjectProblem::Content)),
        ] {
            let all = entry(Kind::All(Encoding::Gzip), bytes, LINES);
            assert_eq!(check(&all, bytes), expected, "{name}");
            assert_eq!(check(&layer(bytes, max), bytes), expected, "{name}");
            assert_eq!(check(&layer(bytes, max + 1), bytes), expected, "{name}");
        }
        let larger = check(&layer(&whole, max - 1), &whole);
        assert_eq!(larger, Err(ObjectProblem::Content));
    }
}
