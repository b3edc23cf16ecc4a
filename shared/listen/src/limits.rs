use std::time::Duration;

/// How much, and how long, a server lets its clients. All in one place; the number of header fields is hyper's own
/// limit, 100.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Connections at the same time; one more is told 503 and closed. 1,024 by default: with everything that a
    /// connection may hold they take less than 256 MB, and a mirror serves thousands of clusters that come by now and
    /// then.
    pub connections: usize,
    /// Requests at the same time on a connection of HTTP/2. 100 by default, the least that RFC 9113, section 6.5.2,
    /// recommends.
    pub streams: u32,
    /// Streams of HTTP/2 that a client may have reset before they were looked at; one more ends the connection. 20 by
    /// default: browsers reset a few, a rapid reset attack (CVE-2023-44487) all.
    pub resets: usize,
    /// The bytes of a request's head: more is 431. 32 KiB by default, twice what other servers take. At least 8 KiB.
    pub head: u32,
    /// The bytes of path and query: more is 414. 8,000 by default, the least that RFC 9110, section 4.1, recommends.
    pub uri: usize,
    /// The time for a TLS handshake. 10 s by default, enough for a client at the end of a bad line.
    pub handshake: Duration,
    /// The time from the connection, or its TLS handshake, to the end of the first request's head. 10 s by default, for the same reason.
    pub first_request: Duration,
    /// The time from the end of one answer to the next request's head. 75 s by default, a little longer than the 60 s
    /// that proxies keep their idle connections, so that they are the ones who close them.
    pub idle: Duration,
    /// The time in which a client must take something of the answer that waits for it. 30 s by default; who takes less
    /// than about 4 kB a second may seem to take nothing, because the kernel tells of room in pieces of some 100 kB.
    pub stalled: Duration,
    /// The time for answers under way once the server is told to stop. 20 s by default, what is left of the 30 s that
    /// Kubernetes and systemd units give.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            streams: 100,
            resets: 20,
            head: 32 << 10,
            uri: 8000,
            handshake: Duration::from_secs(10),
            first_request: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            stalled: Duration::from_secs(30),
            drain: Duration::from_secs(20),
        }
    }
}

/// A wait is judged this often while it lasts, so it may be that much longer.
const LOOKS: u32 = 4;

impl Limits {
    /// How often a connection is looked at: often enough for the shortest of its limits, and at least once a second.
    pub(crate) fn between_looks(&self) -> Duration {
        let shortest = self.first_request.min(self.idle).min(self.stalled);
        (shortest / LOOKS).clamp(Duration::from_millis(10), Duration::from_secs(1))
    }
}
