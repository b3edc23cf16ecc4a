use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

use trust::Trust;

/// Work that takes longer than a request may keep its thread.
pub type Work = Box<dyn FnOnce() + Send>;

/// Settings of the reader of a store.
#[derive(Debug, Clone)]
pub struct ReaderSettings {
    /// Maximum memory for cached bodies, indexes and snapshots together, in bytes. Default 64 MiB: hot shards and the
    /// compressed catalogs of a dozen real mirrors fit, and it is a fraction of one decoded catalog. Pointers are kept beside
    /// it, about 20 kB for each catalog.
    pub cache_bytes: u64,
    /// Time for which a pointer is served without asking the store again. Default zero: a folder answers in microseconds,
    /// and a client then never gets a state older than the published one.
    pub freshness: Duration,
    /// Keys of which at least one has to have signed each pointer. Default: no signature is required. A pointer without such a
    /// signature, or with a lower serial than one that was served before, is refused; the last verified state stays served.
    pub trust: Option<Trust>,
    /// Returns the time since a fixed moment. Default: the time since the first call.
    pub clock: fn() -> Duration,
    /// Runs long work. Default: at once, where it is called. A server with several requests at a time names threads for it.
    pub offload: fn(Work),
}

impl Default for ReaderSettings {
    fn default() -> Self {
        Self {
            cache_bytes: 64 << 20,
            freshness: Duration::ZERO,
            trust: None,
            clock: since_start,
            offload: |work| work(),
        }
    }
}

fn since_start() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}
