use std::time::Duration;

use model::Status;
use promotion::Promotion;
use trust::Signer;
use work::MemoryPool;

use crate::Env;

/// Options of one poll. The default polls as a schedule does.
#[derive(Debug, Clone, Default)]
pub struct PollOptions {
    /// Pulls although the digest is known, hashes all stored objects and replaces damaged ones, and
    /// publishes although packages are gone or the content would be held. Default: false.
    pub force: bool,
    /// Publishes although packages are gone, or all of them, or although the default rules of
    /// [`HoldSettings`](crate::HoldSettings) would hold the content, as `force` does too. For
    /// sources whose owner decides that alone. Default: false.
    pub accept_gone: bool,
    /// State to which a ring is moved. Default: by its rule.
    pub promotion: Option<Promotion>,
    /// Looks at the stored objects of an unchanged catalog, although this process did so within the
    /// last hour.
    pub check_stored: bool,
    /// Maximum duration, without the last writing of `status.json`. A poll that runs out of time
    /// fails. Default: none.
    pub time: Option<Duration>,
    /// `status.json`, if the caller has read it already.
    pub before: Option<Status>,
    /// Hashes nothing that only saves a later pull by this process work, because there is none.
    /// Default: false.
    pub is_last: bool,
}

/// Settings of a [`Mirror`](crate::Mirror), the same for all catalogs.
#[derive(Debug, Clone)]
pub struct MirrorSettings {
    /// Workers and compression levels of rendering. Its limits and its budget follow from `limits`.
    pub render: render::RenderSettings,
    /// Limits of catalogs without their own, and memory and space for all of them together.
    pub limits: SourceLimits,
    /// Stores a plain `all.json` as well, for readers that cannot decompress. Default: no.
    pub identity: bool,
    /// Maximum number of catalogs that are pulled and rendered at a time: each holds memory.
    /// Default: 2.
    pub side_by_side: usize,
    /// Maximum number of catalogs whose digests are resolved at a time: each holds a connection.
    /// Default: 16.
    pub resolves: usize,
    /// Time that a pull may wait for its registry while it keeps one of the places of
    /// `side_by_side`. A slower image is copied to disk first, without such a place. `None` for no
    /// limit. Default: 10 s.
    pub registry_wait: Option<Duration>,
    /// Clocks and randomness. Default: the system's.
    pub env: Env,
    /// Keys that sign what is published. Default: none, and nothing is signed.
    pub signer: Option<Signer>,
}

impl Default for MirrorSettings {
    fn default() -> Self {
        Self {
            render: render::RenderSettings::default(),
            limits: SourceLimits::default(),
            identity: false,
            side_by_side: 2,
            resolves: 16,
            registry_wait: Some(Duration::from_secs(10)),
            env: Env::default(),
            signer: None,
        }
    }
}

impl MirrorSettings {
    /// Returns the defaults with these limits.
    pub fn with_limits(limits: &SourceLimits) -> Self {
        Self {
            limits: limits.clone(),
            ..Self::default()
        }
    }
}

/// Limits of a catalog's source, in one place.
///
/// Exactly a limit passes. One more ends the poll with an error that names the limit, its value and
/// the place; what was published before stays served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLimits {
    /// Limits of the image, for [`source::SourceSettings`].
    pub image: source::ImageLimits,
    /// Limits of its FBC, for [`render::RenderSettings`].
    pub catalog: render::RenderLimits,
    /// Maximum duration of one pull with its rendering and publication, without waits for a slow
    /// registry or for a place. Default: 10 minutes; the largest real catalogs take seconds. The
    /// commit must come within the hour that a transaction has.
    pub pull_time: Duration,
    /// Memory for the documents of all catalogs that a process parses at a time, in bytes: the
    /// capacity of [`MemoryPool`]. Default: 256 MiB.
    pub memory_bytes: usize,
    /// Space for copies of images that come slowly, of all catalogs together, in bytes: the
    /// capacity of [`source::DownloadSpace`]. Default: 4 GiB.
    pub download_bytes: u64,
}

impl Default for SourceLimits {
    fn default() -> Self {
        Self {
            image: source::ImageLimits::default(),
            catalog: render::RenderLimits::default(),
            pull_time: Duration::from_secs(10 * 60),
            memory_bytes: MemoryPool::DEFAULT_BYTES,
            download_bytes: source::DownloadSpace::DEFAULT_BYTES,
        }
    }
}
