use std::time::Duration;

/// Source, times and concurrency of sending events.
#[derive(Debug, Clone)]
pub struct NotifierSettings {
    /// The `source` of every event, a URI reference of this mirror. Default: `/catalogs`.
    pub source: String,
    /// Maximum time for one attempt. Default: 15 s, the minimum that Standard Webhooks recommends.
    pub attempt: Duration,
    /// Wait before the second attempt. Later waits double, with jitter. Default: 1 s.
    pub first: Duration,
    /// Longest of these waits. Default: 2 min.
    pub longest: Duration,
    /// Maximum time for all attempts before the next poll. Default: 30 s, because the command waits for it.
    pub total: Duration,
    /// Maximum number of concurrent events to one receiver. Default: 4.
    pub side_by_side: usize,
}

impl Default for NotifierSettings {
    fn default() -> Self {
        Self {
            source: "/catalogs".to_owned(),
            attempt: Duration::from_secs(15),
            first: Duration::from_secs(1),
            longest: Duration::from_secs(120),
            total: Duration::from_secs(30),
            side_by_side: 4,
        }
    }
}

impl NotifierSettings {
    /// Returns settings for a server, where no command waits: half an hour covers most restarts of a receiver.
    pub fn patient() -> Self {
        Self {
            total: Duration::from_secs(30 * 60),
            ..Self::default()
        }
    }
}
