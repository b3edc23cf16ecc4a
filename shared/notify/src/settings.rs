use std::time::Duration;

/// How events are sent.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The `source` of every event, a URI reference that tells this mirror from others. Default: `/catalogs`.
    pub source: String,
    /// How long a receiver may take to acknowledge one event. Default: 15 s, the least that Standard Webhooks
    /// recommends.
    pub attempt: Duration,
    /// The wait before the second attempt; it doubles, with jitter. Default: 1 s.
    pub first: Duration,
    /// The longest of these waits. Default: 2 min.
    pub longest: Duration,
    /// How long one event is tried before it has to wait for the next poll. Default: 30 s, as somebody waits for it.
    pub total: Duration,
    /// Events that are on their way to one receiver at a time. Default: 4.
    pub side_by_side: usize,
}

impl Default for Settings {
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

impl Settings {
    /// For a program that keeps running, where nobody waits: half an hour bridges most restarts of a receiver.
    pub fn patient() -> Self {
        Self {
            total: Duration::from_secs(30 * 60),
            ..Self::default()
        }
    }
}
