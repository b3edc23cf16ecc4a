use std::fmt;

/// Limits of one catalog. Exactly a limit passes; one more is a [`RenderError::Limit`](crate::RenderError::Limit), or a
/// problem of the file for limits of one document.
///
/// The largest real catalogs have 330 packages, 20,000 documents and 200 MB. Files that `.indexignore` excludes count
/// too: they are held until all ignore files are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderLimits {
    /// Limits of one document.
    pub document: fbc::FbcLimits,
    /// Maximum number of documents of all files, counted once more for every link to a file. Default 500,000: each takes
    /// some 200 bytes of memory until the index is written.
    pub documents: u64,
    /// Maximum number of Packages. Default 20,000: sixty times those of the largest catalog.
    pub packages: u64,
    /// Maximum number of canonical bytes of all documents, counted once more for every link to a file. Default 8 GiB: it is
    /// streamed, so it costs time, not memory.
    pub content_bytes: u64,
    /// Maximum number of bytes of `schema`, `package` and `name` of all documents, which are held in memory for the index.
    /// Default 128 MiB: 20,000 documents have 1 MB.
    pub name_bytes: u64,
    /// Maximum number of bytes of all `.indexignore` files. Default 64 KiB: each holds a few patterns, and every pattern is
    /// tried on every path.
    pub ignore_bytes: u64,
    /// Limits of the patterns in these files.
    pub ignore: fbc::IgnoreLimits,
}

/// A limit that a catalog exceeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExceededLimit {
    /// Name of the limit, as `catalogs.yaml` writes it.
    pub name: &'static str,
    /// Value of the limit.
    pub limit: u64,
    /// The file, relative to the FBC root, or the Package.
    pub place: String,
}

impl Default for RenderLimits {
    fn default() -> Self {
        Self {
            document: fbc::FbcLimits::default(),
            documents: 500_000,
            packages: 20_000,
            content_bytes: 8 << 30,
            name_bytes: 128 << 20,
            ignore_bytes: 64 << 10,
            ignore: fbc::IgnoreLimits::default(),
        }
    }
}

impl fmt::Display for ExceededLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} exceeds the limit {} of {}", self.place, self.name, self.limit)
    }
}
