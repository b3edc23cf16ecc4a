use std::cmp::Ordering;
use std::io::{self, Write};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{Kind, decode_zstd, encoding::encode_zstd};

/// Version of every document format and of the layout of keys. It grows when an older reader would
/// misunderstand.
pub const FORMAT_VERSION: u32 = 3;

/// A document that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The bytes are not JSON, or not the JSON of this document.
    #[error("not a valid {name} document")]
    Malformed {
        /// Name of the expected document, such as `current.json`.
        name: &'static str,
        /// The error with its line and column.
        source: serde_json::Error,
    },
    /// The stored bytes cannot be decompressed within the document's limit.
    #[error("the {name} document cannot be decompressed")]
    Compressed {
        /// Name of the expected document, such as `current.json`.
        name: &'static str,
        /// The underlying error, which the chain prints after this one.
        source: io::Error,
    },
    /// The document was written by a newer program.
    #[error(
        "the {name} document has format version {found}; this program reads version {FORMAT_VERSION}: update it"
    )]
    Newer {
        /// Name of the document, such as `current.json`.
        name: &'static str,
        /// Format version that the document states.
        found: u32,
    },
    /// The document was written by an older program. Format 1 named objects differently and format
    /// 2 named other documents about the packages; no program converts them.
    #[error(
        "the {name} document has format version {found}, which this program no longer reads: use an empty folder or \
         bucket prefix and poll again"
    )]
    Older {
        /// Name of the document, such as `current.json`.
        name: &'static str,
        /// Format version that the document states.
        found: u32,
    },
}

/// A JSON document of the store, stamped with `formatVersion`.
pub trait Document: Serialize + DeserializeOwned {
    /// Name of the document in errors.
    const NAME: &'static str;

    /// True if people read the document: white space then makes it readable.
    const INDENTED: bool = true;

    /// Returns the JSON text, ending in a newline. Equal documents give equal bytes.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes)
            .expect("documents hold only maps with text keys");
        bytes
    }

    /// Writes the JSON text of [`Self::to_bytes`] in many small pieces.
    ///
    /// # Errors
    /// The error of `sink`.
    fn write_to(&self, mut sink: impl Write) -> io::Result<()> {
        let stamped = Stamped {
            format_version: FORMAT_VERSION,
            document: self,
        };
        if Self::INDENTED {
            serde_json::to_writer_pretty(&mut sink, &stamped)?;
        } else {
            serde_json::to_writer(&mut sink, &stamped)?;
        }
        sink.write_all(b"\n")
    }

    /// Reads JSON text.
    ///
    /// # Errors
    /// [`DocumentError::Newer`] and [`DocumentError::Older`] for another format version,
    /// [`DocumentError::Malformed`] for anything else that does not fit.
    fn from_bytes(bytes: &[u8]) -> Result<Self, DocumentError> {
        let name = Self::NAME;
        let malformed = |source| DocumentError::Malformed { name, source };
        // The version first: a document of another format may lack fields, and its error must say
        // so.
        let Version {
            format_version: found,
        } = serde_json::from_slice(bytes).map_err(malformed)?;
        match found.cmp(&FORMAT_VERSION) {
            Ordering::Less => Err(DocumentError::Older { name, found }),
            Ordering::Greater => Err(DocumentError::Newer { name, found }),
            Ordering::Equal => serde_json::from_slice(bytes).map_err(malformed),
        }
    }
}

/// A document that is stored compressed as an immutable object, under the sha256 of its stored
/// bytes.
pub trait StoredDocument: Document {
    /// Kind of the objects that hold such documents.
    const KIND: Kind;

    /// Maximum size of the JSON text, in bytes.
    const MAX_BYTES: u64;

    /// zstd level. Default: 12. At 15 the texts for search of the full catalog are 1 % smaller, for
    /// four times the time.
    const LEVEL: i32 = 12;

    /// Returns the stored bytes: one zstd frame. Equal documents give equal bytes under one version
    /// of the compressor.
    ///
    /// # Errors
    /// Fails if the compressor cannot allocate its memory.
    fn to_stored(&self) -> io::Result<Vec<u8>> {
        encode_zstd(&self.to_bytes(), Self::LEVEL)
    }

    /// Reads stored bytes, decoding at most [`Self::MAX_BYTES`].
    ///
    /// # Errors
    /// [`DocumentError::Compressed`] if the bytes are not one zstd frame within the limit, else as
    /// [`Document::from_bytes`].
    fn from_stored(bytes: &[u8]) -> Result<Self, DocumentError> {
        let text =
            decode_zstd(bytes, Self::MAX_BYTES).map_err(|source| DocumentError::Compressed {
                name: Self::NAME,
                source,
            })?;
        Self::from_bytes(&text)
    }
}

/// Check of the stored bytes of one kind of documents.
#[derive(Debug, Clone, Copy)]
pub struct DocumentCheck {
    /// Maximum size of the JSON text, in bytes. No valid document is stored with more.
    pub max_bytes: u64,
    /// Reads the stored bytes and returns why they are not such a document.
    pub read: fn(&[u8]) -> Result<(), DocumentError>,
}

impl DocumentCheck {
    pub(crate) const fn of<D: StoredDocument>() -> Self {
        Self {
            max_bytes: D::MAX_BYTES,
            read: |bytes| D::from_stored(bytes).map(drop),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Stamped<'a, T> {
    format_version: u32,
    #[serde(flatten)]
    document: &'a T,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    format_version: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalogs;

    #[test]
    fn document_reads_back() {
        let catalogs = Catalogs::from_iter(["b".parse().unwrap(), "a".parse().unwrap()]);
        let bytes = catalogs.to_bytes();
        assert_eq!(
            String::from_utf8_lossy(&bytes),
            "{\n  \"formatVersion\": 3,\n  \"serial\": 0,\n  \"catalogs\": [\n    \"a\",\n    \"b\"\n  ]\n}\n"
        );
        assert_eq!(Catalogs::from_bytes(&bytes).unwrap(), catalogs);
    }

    #[test]
    fn document_of_another_version_is_refused_with_what_to_do() {
        let advice = "use an empty folder or bucket prefix and poll again";
        for (version, says) in [
            ("\"formatVersion\":1,", advice),
            ("\"formatVersion\":2,", advice),
            ("\"formatVersion\":4,", "format version 4"),
            ("", "formatVersion"),
        ] {
            let text = format!("{{{version}\"catalogs\":7}}");
            let error = crate::text::chain(&Catalogs::from_bytes(text.as_bytes()).unwrap_err());
            assert!(error.contains(says), "{version} {error}");
        }
    }
}
