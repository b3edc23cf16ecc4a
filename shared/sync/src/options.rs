use publish::Env;
use render::RenderLimits;
use trust::Trust;

/// Options of copies, imports and repairs.
#[derive(Debug, Clone)]
pub struct SyncOptions {
    /// Name of the origin in `status.json` and logs. It must not hold a secret. Default: empty.
    pub source: String,
    /// Allows a copy with a lower serial than the published one. Default: false.
    pub rollback: bool,
    /// Allows a copy that does not descend from the published state. Default: false.
    pub diverged: bool,
    /// Makes `all.*`, the index and the image from the Shards instead of fetching them. Default: true.
    pub rebuild: bool,
    /// Hashes again what the published state names, and replaces what is damaged. Default: false.
    pub recheck: bool,
    /// Maximum number of objects in flight for each catalog. Default: 16.
    pub objects_in_flight: usize,
    /// Maximum number of catalogs that are copied at the same time. Default: 4.
    pub catalogs_in_flight: usize,
    /// Maximum number of attempts after lost races, the first one included. Default: 4.
    pub attempts: u32,
    /// Maximum number of uncompressed bytes of a catalog. Default: 8 GiB, as a poll's `contentBytes`.
    pub content_bytes: u64,
    /// Keys of which one must have signed the pointer. Default: none, signatures are not verified.
    pub trust: Option<Trust>,
    /// Clock and random numbers. Default: those of the system.
    pub env: Env,
}

impl Default for SyncOptions {
    fn default() -> Self {
        Self {
            source: String::new(),
            rollback: false,
            diverged: false,
            rebuild: true,
            recheck: false,
            // As many as a poll has in flight: enough to hide the latency of a CDN, few enough for a small server.
            objects_in_flight: 16,
            // Each holds up to 16 MiB of objects in flight.
            catalogs_in_flight: 4,
            attempts: 4,
            // A small object may unpack to any size, and all of it is unpacked to be checked.
            content_bytes: RenderLimits::default().content_bytes,
            trust: None,
            env: Env::default(),
        }
    }
}
