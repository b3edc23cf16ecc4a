/// How much of foreign input is taken in. Exactly the limit passes, one more is a
/// [`Problem::Limit`](crate::Problem::Limit).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one document as it stands in the file. Default 64 MiB: the largest bundles known are about 10 MB, and
    /// a document is held in memory.
    pub document_bytes: usize,
    /// Objects and arrays inside each other. Default 10,000, where Go's JSON and YAML decoders stop.
    pub depth: usize,
    /// Canonical bytes that the aliases of one YAML document may add. Default 64 MiB, as of a document: real catalogs use
    /// none; without a bound, a few lines of nested aliases would expand without end.
    pub alias_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            document_bytes: 64 << 20,
            depth: 10_000,
            alias_bytes: 64 << 20,
        }
    }
}
