use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

/// What is counted of connections, logins and files.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    pub(crate) open: Gauge,
    closed: Family<ReasonLabels, Counter>,
    logins: Family<OutcomeLabels, Counter>,
    broken: Family<FileLabels, Gauge>,
}

/// Why the server did not accept a connection, or closed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// There were too many.
    Full,
    /// The TLS handshake failed or took too long.
    Handshake,
    /// It did not ask for anything in time.
    Silent,
    /// It asked for nothing more.
    Idle,
    /// It did not take its answer.
    Stalled,
    /// The server was told to stop, and it was not done in time.
    Drained,
}

/// What came of credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Login {
    /// They may read.
    Accepted,
    /// There were none, or wrong ones.
    Refused,
    /// Too many passwords were being verified.
    Busy,
}

/// A file that is read again when it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum File {
    /// Certificate and key.
    Certificate,
    /// Who may read.
    Readers,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FileLabels {
    file: &'static str,
}

impl Reason {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Handshake => "handshake",
            Self::Silent => "silent",
            Self::Idle => "idle",
            Self::Stalled => "stalled",
            Self::Drained => "drained",
        }
    }
}

impl Login {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Refused => "refused",
            Self::Busy => "busy",
        }
    }
}

impl File {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Certificate => "certificate",
            Self::Readers => "readers",
        }
    }
}

impl Metrics {
    /// Adds the metrics of the server to a registry.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register("connections", "Connections that are open", metrics.open.clone());
        registry.register(
            "connections_closed",
            "Connections that the server closed or refused, by reason",
            metrics.closed.clone(),
        );
        registry.register(
            "logins",
            "Requests by what came of their credentials",
            metrics.logins.clone(),
        );
        registry.register(
            "file_broken",
            "1 while a file that changed cannot be used and what it held before is used instead",
            metrics.broken.clone(),
        );
        metrics
    }

    pub(crate) fn closed(&self, reason: Reason) {
        let reason = reason.as_str();
        tracing::debug!(reason, "a connection was closed");
        self.closed.get_or_create(&ReasonLabels { reason }).inc();
    }

    pub(crate) fn login(&self, outcome: Login) {
        self.logins
            .get_or_create(&OutcomeLabels {
                outcome: outcome.as_str(),
            })
            .inc();
    }

    pub(crate) fn broken(&self, file: File, broken: bool) {
        let gauge = self.broken.get_or_create(&FileLabels { file: file.as_str() });
        gauge.set(i64::from(broken));
    }
}
