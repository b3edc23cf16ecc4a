use std::time::Duration;

/// Limits of a server for its clients. Nothing in the server waits without one of them.
///
/// The head of a request has at most 32 KiB, its path and query 8,000 bytes. The number of header
/// fields is limited by hyper, to 100.
///
/// ```
/// use work::ServerLimits;
///
/// let limits = ServerLimits { connections: 64, ..ServerLimits::default() };
/// assert_eq!(limits.idle.as_secs(), 75);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerLimits {
    /// Concurrent connections. Default: 1,024. One more takes the place of the connection that has
    /// been idle for longest. If none is idle, the new one is closed.
    pub connections: usize,
    /// Concurrent requests on an HTTP/2 connection. Default: 100.
    pub streams: u32,
    /// Time for a TLS handshake. Default: 10 s.
    pub handshake: Duration,
    /// Time from the connection, or its TLS handshake, to the end of the first request's head.
    /// Default: 10 s.
    pub first_request: Duration,
    /// True if a client that has begun to speak HTTP/2 may wait with its first request. Default:
    /// false.
    ///
    /// Clients of gRPC connect before they have a request, and take the end of the connection for a
    /// failure.
    pub may_wait: bool,
    /// Time from the end of an answer to the head of the next request. Default: 75 s.
    pub idle: Duration,
    /// Time in which a client must take some bytes of a waiting answer. Default: 30 s.
    ///
    /// A client that takes less than about 4 kB a second may seem to take nothing: the kernel
    /// reports free space in pieces of about 100 kB.
    pub stalled: Duration,
    /// Time within which the connections end whose answers are outdated. Default: 4 s.
    pub leave: Duration,
    /// Memory for the answers that are being made and sent, in bytes. Default: 128 MiB.
    pub answer_bytes: u64,
    /// Time for which an answer waits for that memory before it is refused. Default: 10 s.
    pub answer_wait: Duration,
    /// Time for running answers after the server was asked to stop. Default: 20 s.
    pub drain: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            // With all that a connection may buffer these take less than 256 MB. A mirror serves
            // thousands of clusters that come now and then.
            connections: 1024,
            // The smallest number that RFC 9113, section 6.5.2, recommends.
            streams: 100,
            // Enough for a client on a bad line.
            handshake: Duration::from_secs(10),
            first_request: Duration::from_secs(10),
            may_wait: false,
            // Longer than the 60 s for which proxies keep idle connections, so that the proxy
            // closes them: a request that crosses the server's close would fail.
            idle: Duration::from_secs(75),
            stalled: Duration::from_secs(30),
            // Ten thousand clients that come back take a second of CPU for each second of this, and
            // OLM v0 has an update within 15 s.
            leave: Duration::from_secs(4),
            answer_bytes: 128 << 20,
            // Within the half minute for which most clients wait for an answer.
            answer_wait: Duration::from_secs(10),
            // Within the 30 s that Kubernetes and systemd units give.
            drain: Duration::from_secs(20),
        }
    }
}

impl ServerLimits {
    /// Returns the limits for clients of gRPC, which open one connection and keep it.
    pub fn grpc() -> Self {
        Self {
            // A connection that is idle takes less than 30 kB.
            connections: 20_000,
            may_wait: true,
            // Long enough to never end a connection, and short enough to be added to a time. A
            // client that waits for changes holds its connection for years.
            idle: Duration::from_secs(100 * 365 * 24 * 3600),
            // That of 16 clients that ask for the largest bundles.
            answer_bytes: 32 << 20,
            drain: Duration::from_secs(10),
            ..Self::default()
        }
    }
}
