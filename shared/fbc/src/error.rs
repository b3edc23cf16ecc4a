use std::fmt;

/// What is wrong with a file, and where in it. The path is the caller's to add.
#[derive(Debug)]
pub struct Error {
    document: usize,
    line: Option<usize>,
    problem: Problem,
}

impl Error {
    pub(crate) fn new(document: usize, line: Option<usize>, problem: Problem) -> Self {
        Self {
            document,
            line,
            problem,
        }
    }

    /// The number of the document in its file; the first is 1. 0 means the file as a whole.
    #[must_use]
    pub fn document(&self) -> usize {
        self.document
    }

    /// The line in the file, where it is known; the first is 1.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// What is wrong.
    #[must_use]
    pub fn problem(&self) -> &Problem {
        &self.problem
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.document, self.line) {
            (0, None) => f.write_str("the file"),
            (0, Some(line)) => write!(f, "line {line}"),
            (document, None) => write!(f, "document {document}"),
            (document, Some(line)) => write!(f, "document {document}, line {line}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.problem)
    }
}

/// The kinds of things that can be wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The reader failed.
    #[error("cannot be read")]
    Read(#[source] std::io::Error),
    /// A limit of [`crate::Limits`] is exceeded.
    #[error("exceeds the limit {name} of {limit}")]
    Limit {
        /// Its name in `Limits`, written as in `catalogs.yaml`.
        name: &'static str,
        /// How much is allowed.
        limit: usize,
    },
    /// Go's scanner, with which `.indexignore` files are read elsewhere, takes no longer line.
    #[error("more than {0} bytes in a line")]
    Line(usize),
    /// Not JSON.
    #[error("invalid JSON: {0}")]
    Json(&'static str),
    /// The document ends in the middle of a value.
    #[error("the JSON ends too early")]
    JsonEnd,
    /// A JSON number that no float64 can hold; catalogd would turn it into a string or fail.
    #[error("the number {0} is out of range")]
    NumberRange(String),
    /// Not YAML.
    #[error("invalid YAML: {0}")]
    Yaml(String),
    /// The bytes are not text.
    #[error("invalid {0}")]
    Encoding(&'static str),
    /// Something follows a `---` on its line.
    #[error("only a comment may follow the document separator, not `{0}`")]
    Separator(String),
    /// A mapping key that JSON cannot express.
    #[error("{0} cannot be a key")]
    Key(&'static str),
    /// A scalar does not fit its tag.
    #[error("cannot decode `{value}` as {tag}")]
    Tag {
        /// The scalar.
        value: String,
        /// The tag.
        tag: &'static str,
    },
    /// `<<` with something else than mappings.
    #[error("a merge key needs a mapping or a sequence of mappings")]
    Merge,
    /// An anchor whose value holds an alias to itself.
    #[error("an alias refers to the value that it is in")]
    AliasCycle,
    /// Too large a part of the document comes from aliases.
    #[error("excessive aliasing")]
    AliasRatio,
    /// Infinity or not a number.
    #[error("{0} has no form in JSON")]
    NotFinite(&'static str),
    /// A document that is no object.
    #[error("a document must be an object, not {0}")]
    NotAnObject(&'static str),
    /// Two keys of the document differ only in case.
    #[error("the keys {0:?} and {1:?} differ only in case")]
    FoldedKeys(String, String),
    /// `schema`, `package` or `name` is no string.
    #[error("the value of {0:?} must be a string")]
    NotAString(String),
}

impl Problem {
    /// Whether it would be no better if the JSON were read as YAML.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, Self::NumberRange(_) | Self::Limit { .. })
    }
}
