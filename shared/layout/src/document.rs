use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The version of every document format. It grows when an older reader would misunderstand a newer document.
pub const FORMAT_VERSION: u32 = 1;

/// A document that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// Not JSON, or not the JSON of this document.
    #[error("not a valid {kind} document")]
    Malformed {
        /// Which document it should have been.
        kind: &'static str,
        /// What is wrong with it, and where.
        source: serde_json::Error,
    },
    /// Written by a newer version of this program.
    #[error("the {kind} document has format version {found}; this program reads version {FORMAT_VERSION}, update it")]
    Version {
        /// Which document it is.
        kind: &'static str,
        /// The version that it names.
        found: u32,
    },
}

/// A JSON document of the store, stamped with `formatVersion`.
pub trait Document: Serialize + DeserializeOwned {
    /// What errors call it.
    const KIND: &'static str;

    /// Whether people are to read it, which costs white space.
    const INDENTED: bool = true;

    /// The bytes to store, ending in a newline, the same for equal documents.
    fn to_bytes(&self) -> Vec<u8> {
        let stamped = Stamped {
            format_version: FORMAT_VERSION,
            document: self,
        };
        let bytes = if Self::INDENTED {
            serde_json::to_vec_pretty(&stamped)
        } else {
            serde_json::to_vec(&stamped)
        };
        let mut bytes = bytes.expect("documents hold only maps with text keys");
        bytes.push(b'\n');
        bytes
    }

    /// Reads stored bytes.
    ///
    /// # Errors
    /// [`DocumentError::Version`] for a document from the future, [`DocumentError::Malformed`] for anything else.
    fn from_bytes(bytes: &[u8]) -> Result<Self, DocumentError> {
        let malformed = |source| DocumentError::Malformed {
            kind: Self::KIND,
            source,
        };
        let Version { format_version } = serde_json::from_slice(bytes).map_err(malformed)?;
        if format_version != FORMAT_VERSION {
            return Err(DocumentError::Version {
                kind: Self::KIND,
                found: format_version,
            });
        }
        serde_json::from_slice(bytes).map_err(malformed)
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
    fn a_document_reads_back() {
        let catalogs = Catalogs::from_iter(["b".parse().unwrap(), "a".parse().unwrap()]);
        let bytes = catalogs.to_bytes();
        assert_eq!(
            String::from_utf8_lossy(&bytes),
            "{\n  \"formatVersion\": 1,\n  \"serial\": 0,\n  \"catalogs\": [\n    \"a\",\n    \"b\"\n  ]\n}\n"
        );
        assert_eq!(Catalogs::from_bytes(&bytes).unwrap(), catalogs);
    }

    #[test]
    fn a_document_from_the_future_is_refused() {
        let error = Catalogs::from_bytes(br#"{"formatVersion":2,"catalogs":7}"#).unwrap_err();
        assert!(matches!(error, DocumentError::Version { found: 2, .. }), "{error}");
    }

    #[test]
    fn a_document_without_a_version_is_malformed() {
        let error = Catalogs::from_bytes(br#"{"catalogs":[]}"#).unwrap_err();
        assert!(matches!(error, DocumentError::Malformed { .. }), "{error}");
    }
}
