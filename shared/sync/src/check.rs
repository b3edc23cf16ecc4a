use std::io::{self, Write};

use keep::read_index;
use layout::{Content, Form, Hasher, Index, Key, Named, Sha256, Stored, ZSTD_WINDOW_LOG_MAX};
use telemetry::chain;

/// What is wrong with the bytes of an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// More bytes than there should be.
    #[error("it has more than {0} bytes")]
    Long(u64),
    /// Other bytes than there should be.
    #[error("it has {found} bytes with the sha256 {sha256}, not {} with {}", .recorded.size, .recorded.sha256)]
    Stored {
        /// How many there are.
        found: u64,
        /// What they hash to.
        sha256: Sha256,
        /// What the snapshot records.
        recorded: Stored,
    },
    /// The right bytes, which are no index although the key says so.
    #[error("it is no index: {0}")]
    Index(String),
    /// The right bytes, which hold something else than the key says.
    #[error("it does not hold what its name says")]
    Content,
}

/// Checks the bytes of one object as they go by: as they are stored, and what they decompress to.
pub(crate) struct Check {
    recorded: Stored,
    content: Option<Content>,
    hasher: Hasher,
    seen: u64,
    decoder: Decoder,
    /// The bytes of an index, which only tell as a whole what they are.
    index: Option<Vec<u8>>,
}

enum Decoder {
    None,
    Plain(Box<Measure>),
    Zstd(Box<zstd::stream::write::Decoder<'static, Measure>>),
    Gzip(Box<flate2::write::MultiGzDecoder<Measure>>),
}

/// Hashes content, and refuses more of it than there should be before it costs anything.
struct Measure {
    hasher: Hasher,
    left: u64,
}

impl Check {
    pub(crate) fn new(named: &Named) -> Self {
        Self {
            recorded: named.stored,
            content: named.content,
            hasher: Hasher::new(),
            seen: 0,
            decoder: Decoder::new(&named.key, named.content),
            index: matches!(named.key, Key::Index(..)).then(Vec::new),
        }
    }

    /// To be called with every chunk before it goes anywhere.
    pub(crate) fn update(&mut self, bytes: &[u8]) -> Result<(), Flaw> {
        self.seen += bytes.len() as u64;
        if self.seen > self.recorded.size {
            return Err(Flaw::Long(self.recorded.size));
        }
        if self.recorded.size <= Index::MAX_BYTES {
            self.index.iter_mut().for_each(|index| index.extend_from_slice(bytes));
        }
        self.hasher.update(bytes);
        self.decoder.write(bytes).map_err(|_| Flaw::Content)
    }

    /// To be called before the object gets its key.
    pub(crate) fn finish(self) -> Result<(), Flaw> {
        let found = Stored {
            size: self.seen,
            sha256: self.hasher.finish(),
        };
        if found != self.recorded {
            return Err(Flaw::Stored {
                found: found.size,
                sha256: found.sha256,
                recorded: self.recorded,
            });
        }
        if let Some(index) = self.index {
            read_index(&index).map_err(|error| Flaw::Index(chain(&error)))?;
        }
        let Some(content) = self.content else { return Ok(()) };
        let Ok(Some(measure)) = self.decoder.finish() else {
            return Err(Flaw::Content);
        };
        if measure.left == 0 && measure.hasher.finish() == content.sha256 {
            Ok(())
        } else {
            Err(Flaw::Content)
        }
    }
}

impl Decoder {
    fn new(key: &Key, content: Option<Content>) -> Self {
        let Some(content) = content else { return Self::None };
        let measure = Measure {
            hasher: Hasher::new(),
            left: content.size,
        };
        let coding = key.content_encoding();
        if coding == Form::Zstd.content_encoding() {
            let mut decoder = zstd::stream::write::Decoder::new(measure).expect("a context can be made");
            decoder
                .window_log_max(ZSTD_WINDOW_LOG_MAX)
                .expect("the limit is one that zstd knows");
            Self::Zstd(Box::new(decoder))
        } else if coding == Form::Gzip.content_encoding() {
            Self::Gzip(Box::new(flate2::write::MultiGzDecoder::new(measure)))
        } else {
            Self::Plain(Box::new(measure))
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::None => Ok(()),
            Self::Plain(measure) => measure.write_all(bytes),
            Self::Zstd(decoder) => decoder.write_all(bytes),
            Self::Gzip(decoder) => decoder.write_all(bytes),
        }
    }

    fn finish(self) -> io::Result<Option<Measure>> {
        Ok(match self {
            Self::None => None,
            Self::Plain(measure) => Some(*measure),
            Self::Zstd(mut decoder) => {
                decoder.flush()?;
                Some(decoder.into_inner())
            }
            Self::Gzip(decoder) => Some(decoder.finish()?),
        })
    }
}

impl Write for Measure {
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
    use layout::Document;

    use super::*;

    const LINES: &[u8] = b"{\"schema\":\"olm.package\"}\n";

    fn named(bytes: &[u8], lines: &[u8]) -> Named {
        Named {
            key: Key::Shard(Sha256::of(lines)),
            stored: Stored {
                size: bytes.len() as u64,
                sha256: Sha256::of(bytes),
            },
            content: Some(Content {
                sha256: Sha256::of(lines),
                size: lines.len() as u64,
            }),
        }
    }

    fn check(named: &Named, bytes: &[u8]) -> Result<(), Flaw> {
        let mut check = Check::new(named);
        // Byte by byte, so that every border is met.
        bytes.chunks(1).try_for_each(|byte| check.update(byte))?;
        check.finish()
    }

    fn packed(lines: &[u8]) -> Vec<u8> {
        zstd::bulk::compress(lines, 3).unwrap()
    }

    #[test]
    fn exactly_what_was_recorded_passes() {
        let bytes = packed(LINES);
        assert_eq!(check(&named(&bytes, LINES), &bytes), Ok(()));
        let plain = Named {
            key: Key::All("a".parse().unwrap(), Sha256::of(LINES), Form::Identity),
            ..named(LINES, LINES)
        };
        assert_eq!(check(&plain, LINES), Ok(()));
    }

    #[test]
    fn one_byte_more_less_or_other_does_not() {
        let bytes = packed(LINES);
        let named = named(&bytes, LINES);
        let longer = [&bytes[..], b"x"].concat();
        assert_eq!(check(&named, &longer), Err(Flaw::Long(bytes.len() as u64)));
        assert!(matches!(
            check(&named, &bytes[1..]),
            Err(Flaw::Stored { .. } | Flaw::Content)
        ));
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            assert!(check(&named, &flipped).is_err(), "byte {at}");
        }
    }

    /// Whoever made the snapshot too can record any bytes there.
    #[test]
    fn an_index_has_to_be_one() {
        let checked = |content: &[u8]| {
            let bytes = packed(content);
            let index = Named {
                key: Key::Index("a".parse().unwrap(), Sha256::of(LINES)),
                content: None,
                ..named(&bytes, LINES)
            };
            check(&index, &bytes)
        };
        assert_eq!(checked(&Index::default().to_bytes()), Ok(()));
        assert!(matches!(checked(b"{\"shards\":[{}]}"), Err(Flaw::Index(_))));
    }

    #[test]
    fn the_right_bytes_with_other_content_do_not() {
        for other in [&b"other\n"[..], &[b'x'; 1 << 20]] {
            let bytes = packed(other);
            let named = Named {
                stored: Stored {
                    size: bytes.len() as u64,
                    sha256: Sha256::of(&bytes),
                },
                ..named(&bytes, LINES)
            };
            assert_eq!(check(&named, &bytes), Err(Flaw::Content));
        }
    }
}
