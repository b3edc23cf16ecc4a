use std::fmt;

/// The bounds of a catalog. Exactly the limit passes, one more is a [`RenderError::Limit`](crate::RenderError::Limit), or
/// a problem of the file for what bounds a document.
///
/// The largest real catalogs have 330 packages, 20,000 documents and 200 MB. What `.indexignore` excludes counts too:
/// it is held until all such files are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// What bounds one document.
    pub document: fbc::Limits,
    /// Documents of all files, and once more for every link to a file. Default 500,000: each takes some 200 bytes of
    /// memory until the index is written.
    pub documents: u64,
    /// Packages. Default 20,000, sixty times those of the largest catalog.
    pub packages: u64,
    /// Canonical bytes of all documents, and once more for every link to a file. Default 8 GiB; less than this is
    /// streamed, so it is a matter of time, not of memory.
    pub content_bytes: u64,
    /// Bytes of `schema`, `package` and `name` of all documents, which are held in memory for the index.
    /// Default 128 MiB: 20,000 documents have 1 MB.
    pub name_bytes: u64,
    /// Bytes of all `.indexignore` files. Default 64 KiB: each holds a few patterns, all are tried on every path.
    pub ignore_bytes: u64,
}

/// A bound that was exceeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Its name in `Limits`, written as in `catalogs.yaml`.
    pub name: &'static str,
    /// Its value.
    pub limit: u64,
    /// The file, relative to the FBC root, or the Package.
    pub place: String,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            document: fbc::Limits::default(),
            documents: 500_000,
            packages: 20_000,
            content_bytes: 8 << 30,
            name_bytes: 128 << 20,
            ignore_bytes: 64 << 10,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} exceeds the limit {} of {}", self.place, self.name, self.limit)
    }
}
