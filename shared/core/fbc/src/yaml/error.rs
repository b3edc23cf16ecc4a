use crate::error::FbcErrorKind;

/// Error on a line of a YAML document.
pub(crate) struct YamlError {
    pub(crate) line: Option<usize>,
    pub(crate) kind: FbcErrorKind,
}
