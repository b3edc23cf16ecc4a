use std::io::{IsTerminal, stderr};

use tracing_subscriber::{EnvFilter, fmt};

/// How log lines look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// Readable on a terminal.
    #[default]
    Text,
    /// One JSON object a line, for machines.
    Json,
}

/// Sends the log to standard error, filtered by `RUST_LOG` or else by `default_filter`. Call once.
pub fn init(format: Format, default_filter: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default_filter));
    let builder = fmt().with_env_filter(filter).with_writer(stderr);
    match format {
        Format::Text => builder
            .with_target(false)
            .with_ansi(stderr().is_terminal())
            .compact()
            .init(),
        Format::Json => builder.json().flatten_event(true).with_current_span(false).init(),
    }
}
