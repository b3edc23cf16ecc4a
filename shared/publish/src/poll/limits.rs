use std::time::Duration;

/// Limits of a catalog's source, in one place.
///
/// Exactly a limit passes. One more ends the poll with an error that names the limit, its value and the place; what was
/// published before stays served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLimits {
    /// Limits of the image, for [`source::SourceSettings`].
    pub image: source::ImageLimits,
    /// Limits of its FBC, for [`render::RenderSettings`].
    pub catalog: render::RenderLimits,
    /// Maximum duration of one pull with its rendering and publication, without waits for a slow registry or for a place. Default:
    /// 10 minutes; the largest real catalogs take seconds. The commit must come within the hour that a transaction has.
    pub pull_time: Duration,
    /// Memory for the documents of all catalogs that a process parses at a time, in bytes: the capacity of
    /// [`render::MemoryBudget`]. Default: 256 MiB.
    pub memory_bytes: usize,
    /// Space for copies of images that come slowly, of all catalogs together, in bytes: the capacity of
    /// [`source::DownloadSpace`]. Default: 4 GiB.
    pub download_bytes: u64,
}

impl Default for SourceLimits {
    fn default() -> Self {
        Self {
            image: source::ImageLimits::default(),
            catalog: render::RenderLimits::default(),
            pull_time: Duration::from_secs(10 * 60),
            memory_bytes: render::MemoryBudget::DEFAULT_BYTES,
            download_bytes: source::DownloadSpace::DEFAULT_BYTES,
        }
    }
}
