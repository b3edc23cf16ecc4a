use std::fmt;

use work::OverBudget;

/// Error in one FBC file: the document, the line and, as its source, the kind. The caller knows the path.
#[derive(Debug)]
pub struct FbcError {
    document: usize,
    line: Option<usize>,
    kind: FbcErrorKind,
}

impl FbcError {
    pub(crate) fn new(document: usize, line: Option<usize>, kind: FbcErrorKind) -> Self {
        Self { document, line, kind }
    }

    /// Returns the number of the document in its file. The first is 1; 0 means the file as a whole.
    pub fn document(&self) -> usize {
        self.document
    }

    /// Returns the line in the file, if it is known. The first is 1.
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> &FbcErrorKind {
        &self.kind
    }
}

impl fmt::Display for FbcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.document, self.line) {
            (0, None) => f.write_str("the file"),
            (0, Some(line)) => write!(f, "line {line}"),
            (document, None) => write!(f, "document {document}"),
            (document, Some(line)) => write!(f, "document {document}, line {line}"),
        }
    }
}

impl std::error::Error for FbcError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.kind)
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
    /// A line of an `.indexignore` file is longer than Go's `bufio.Scanner` accepts.
    #[error("more than {0} bytes in a line")]
    Line(usize),
    /// The document starts like JSON but is malformed.
    #[error("invalid JSON: {0}")]
    Json(&'static str),
    /// The document ends in the middle of a value.
    #[error("the JSON ends too early")]
    JsonEnd,
    /// A JSON number does not fit into a float64. catalogd would turn it into a string or fail.
    #[error("the number {0} is out of range")]
    NumberRange(String),
    /// The document is malformed YAML, or uses a part of it that this project refuses.
    #[error("invalid YAML: {0}")]
    Yaml(String),
    /// The bytes are not text in UTF-8 or UTF-16.
    #[error("invalid {0}")]
    Encoding(&'static str),
    /// Text other than a comment follows `---` on its line.
    #[error("only a comment may follow the document separator, not `{0}`")]
    Separator(String),
    /// A mapping key has no form in JSON.
    #[error("{0} cannot be a key")]
    Key(&'static str),
    /// The value of a scalar does not fit its tag.
    #[error("cannot decode `{value}` as {tag}")]
    Tag {
        /// Value of the scalar, at most 80 characters.
        value: String,
        /// Name of the tag, for example `!!int`.
        tag: &'static str,
    },
    /// The value of a merge key `<<` is neither a mapping nor a sequence of mappings.
    #[error("a merge key needs a mapping or a sequence of mappings")]
    Merge,
    /// The value of an anchor contains an alias to itself.
    #[error("an alias refers to the value that it is in")]
    AliasCycle,
    /// Aliases make up too large a part of the document, by go-yaml's rule.
    #[error("excessive aliasing")]
    AliasRatio,
    /// The number is infinite or not a number.
    #[error("{0} has no form in JSON")]
    NotFinite(&'static str),
    /// The document is not an object.
    #[error("a document must be an object, not {0}")]
    NotAnObject(&'static str),
    /// Two keys of the document differ only in case.
    #[error("the keys {0:?} and {1:?} differ only in case")]
    FoldedKeys(String, String),
    /// The value of `schema`, `package` or `name` is not a string.
    #[error("the value of {0:?} must be a string")]
    NotAString(String),
}

/// Returns the start of a text from the file, for an error: the whole of it may have megabytes.
pub(crate) fn excerpt(text: &str) -> String {
    text.chars().take(EXCERPT_CHARS).collect()
}

/// Maximum number of characters of foreign text in an error. Enough to find the place.
const EXCERPT_CHARS: usize = 80;

impl FbcErrorKind {
    /// Returns true if a JSON value may go on after a part of it that gives this error: at its end, if more is known to
    /// follow, or where the part takes too much memory by itself.
    pub(crate) fn may_go_on(&self, is_part: bool) -> bool {
        match self {
            Self::JsonEnd => is_part,
            Self::Limit { name, .. } => *name == "memoryRatio",
            _ => false,
        }
    }

    /// Returns true if reading the document as YAML instead of JSON cannot help.
    pub(crate) fn is_final(&self) -> bool {
        // YAML would read such a number as a string, which is not what was written, and its limits are the same.
        matches!(self, Self::NumberRange(_) | Self::Limit { .. } | Self::Stopped)
    }
}

impl From<OverBudget> for FbcErrorKind {
    fn from(error: OverBudget) -> Self {
        match error {
            OverBudget::Stopped => Self::Stopped,
            OverBudget::Steps(steps) => Self::Limit {
                name: "steps",
                limit: usize::try_from(steps).unwrap_or(usize::MAX),
            },
        }
    }
}
