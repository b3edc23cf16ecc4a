/// Error in one FBC file: the document, the line and, as its source, the kind. The caller knows the
/// path.
#[derive(Debug, thiserror::Error)]
#[error("{}", place(*document, *line))]
pub struct FbcError {
    /// Number of the document in its file. The first is 1; 0 means the file as a whole.
    pub document: usize,
    /// Line in the file, if it is known. The first is 1.
    pub line: Option<usize>,
    /// Kind of the error.
    #[source]
    pub kind: FbcErrorKind,
}

impl FbcError {
    pub(crate) fn new(document: usize, line: Option<usize>, kind: FbcErrorKind) -> Self {
        Self {
            document,
            line,
            kind,
        }
    }
}

fn place(document: usize, line: Option<usize>) -> String {
    match (document, line) {
        (0, None) => "the file".to_owned(),
        (0, Some(line)) => format!("line {line}"),
        (document, None) => format!("document {document}"),
        (document, Some(line)) => format!("document {document}, line {line}"),
    }
}

/// Kind of an [`FbcError`], which is the error's source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FbcErrorKind {
    /// The file cannot be read from its source.
    #[error("cannot be read")]
    Read(#[source] std::io::Error),
    /// The input exceeds one of [`crate::FbcLimits`].
    #[error("exceeds the limit {name} of {limit}")]
    Limit {
        /// Name of the limit as in `catalogs.yaml`, for example `documentBytes`.
        name: &'static str,
        /// Largest value that the limit allows.
        limit: usize,
    },
    /// The work of the caller's [`work::Budget`] was stopped.
    #[error("was not read to its end: the result is not wanted any more")]
    Stopped,
    /// The file is malformed, or uses a part of YAML that this project refuses.
    #[error("{0}")]
    Malformed(String),
    /// The document ends in the middle of a value.
    #[error("the JSON ends too early")]
    JsonEnd,
    /// A JSON number does not fit into a float64. catalogd would turn it into a string or fail.
    #[error("the number {0} is out of range")]
    NumberRange(String),
    /// Aliases make up too large a part of the document, by go-yaml's rule.
    #[error("excessive aliasing")]
    AliasRatio,
    /// The document is not an object.
    #[error("a document must be an object, not {0}")]
    NotAnObject(&'static str),
}

/// Returns the start of a text from the file, for an error: the whole of it may have megabytes.
pub(crate) fn excerpt(text: &str) -> String {
    text.chars().take(EXCERPT_CHARS).collect()
}

/// Maximum number of characters of foreign text in an error. Enough to find the place.
const EXCERPT_CHARS: usize = 80;

impl FbcErrorKind {
    pub(crate) const fn limit(name: &'static str, limit: usize) -> Self {
        Self::Limit { name, limit }
    }

    pub(crate) fn malformed(problem: impl Into<String>) -> Self {
        Self::Malformed(problem.into())
    }

    /// Returns true if a JSON value may go on after a part of it that gives this error: at its end,
    /// if more is known to follow, or where the part takes too much memory by itself.
    pub(crate) fn may_go_on(&self, is_part: bool) -> bool {
        match self {
            Self::JsonEnd => is_part,
            Self::Limit { name, .. } => *name == "memoryRatio",
            _ => false,
        }
    }

    /// Returns true if reading the document as YAML instead of JSON cannot help.
    pub(crate) fn is_final(&self) -> bool {
        // YAML would read such a number as a string, which is not what was written, and its limits
        // are the same.
        matches!(
            self,
            Self::NumberRange(_) | Self::Limit { .. } | Self::Stopped
        )
    }
}
