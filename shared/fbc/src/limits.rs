/// How much of foreign input is taken in. Exactly the limit passes, one more is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one document as it stands in the file. The largest bundles known are about 10 MB.
    pub document_bytes: usize,
    /// Objects and arrays inside each other. Go's JSON and YAML decoders stop at the same depth.
    pub depth: usize,
    /// Canonical bytes that the aliases of one YAML document may add. Real catalogs use none;
    /// without a bound, a few lines of nested aliases would expand without end.
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
