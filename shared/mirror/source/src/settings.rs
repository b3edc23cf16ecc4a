//! Settings of this crate, each with its default and the reason for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{path::PathBuf, time::Duration};

use fetch::{FetchSettings, HeaderFiles, Logins};
use oci::{ImageContent, ImageLimits, NamedLimit, TargetPlatform};

use crate::rules::RegistryRules;
use crate::space::DownloadSpace;

/// Settings for reading images. The default suits a public registry.
#[derive(Clone, Debug)]
pub struct SourceSettings {
    /// Credential files, read again for every pull. Default: none, which means `REGISTRY_AUTH_FILE`
    /// if it is set, else podman's `auth.json` and docker's `config.json`.
    pub auth_files: Vec<PathBuf>,
    /// Credentials in memory, asked before the files. While there are some, the default files are
    /// not read.
    pub logins: Logins,
    /// Refuses each source for whose server and path there are credentials, and says this reason.
    /// Default: none is refused.
    pub no_logins: Option<&'static str>,
    /// Header fields for web servers, by host: archives and git repositories. Registries use
    /// credential files alone. Default: none.
    pub header_files: HeaderFiles,
    /// Mirrors of registries, and registries that must not be asked. Default: none.
    pub rules: RegistryRules,
    /// Asks each registry itself, as a push does: no mirror and no other location. What is blocked
    /// stays so. Default: no.
    pub no_mirrors: bool,
    /// Connections: CA files, plain HTTP, proxy, time-outs, retries.
    pub http: FetchSettings,
    /// Content of an image or a folder that is read. Default: a catalog.
    pub content: ImageContent,
    /// Platform to choose from an index. Default: linux/amd64, because a catalog has the same files
    /// for all platforms.
    pub platform: TargetPlatform,
    /// Maximum time for one `resolve` or `exists`, all redirects, tokens and retries included.
    /// Default: 2 min.
    pub resolve_timeout: Duration,
    /// Maximum time for one `read`. Default: 30 min.
    pub pull_timeout: Duration,
    /// Maximum time that one `read` waits for the registry, all requests and layers together; the
    /// time that the sink takes does not count. Default: none, only `pull_timeout`.
    pub registry_wait: Option<Duration>,
    /// Space in the folder for temporary files, for archives and copies of images. Default: 4 GiB.
    pub download_space: DownloadSpace,
    /// Limits on each image. Default: [`ImageLimits::default`].
    pub limits: ImageLimits,
    /// Counts of what is received, for a display. Default: counts of its own.
    pub progress: Arc<PullProgress>,
}

/// Progress of pulls, for a display.
#[derive(Debug, Default)]
pub struct PullProgress {
    /// Total size of the layers that are fetched or were, in bytes.
    pub total: AtomicU64,
    /// Bytes of these layers that were received.
    pub received: AtomicU64,
}

impl PullProgress {
    /// Counts layers that will be fetched.
    pub(crate) fn expect(&self, bytes: u64) {
        self.total.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts off layers that turned out not to be needed.
    pub(crate) fn skip(&self, bytes: u64) {
        self.total.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Counts a part of a layer.
    pub(crate) fn receive(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl SourceSettings {
    /// Returns the limit of a copy on disk.
    pub(crate) fn download_limit(&self) -> NamedLimit {
        let image = NamedLimit::new("compressedBytes", self.limits.compressed_bytes);
        let space = self.download_space.limit();
        if space.value < image.value {
            space
        } else {
            image
        }
    }
}

impl Default for SourceSettings {
    fn default() -> Self {
        Self {
            auth_files: Vec::new(),
            logins: Logins::default(),
            no_logins: None,
            header_files: HeaderFiles::default(),
            rules: RegistryRules::default(),
            no_mirrors: false,
            http: FetchSettings::default(),
            content: ImageContent::default(),
            platform: TargetPlatform::default(),
            resolve_timeout: Duration::from_secs(2 * 60),
            pull_timeout: Duration::from_secs(30 * 60),
            registry_wait: None,
            download_space: DownloadSpace::default(),
            limits: ImageLimits::default(),
            progress: Arc::default(),
        }
    }
}
