//! Logging: the format of the lines and the filter of their levels.

use std::env;
use std::io::{IsTerminal, stderr};

use tracing_subscriber::{
    Layer, Registry, filter::Targets, fmt, layer::SubscriberExt, util::SubscriberInitExt,
};

/// The format of log lines on standard error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum LogFormat {
    /// One readable line for each event, coloured on a terminal.
    #[default]
    Text,
    /// One JSON object for each event, for log collectors.
    Json,
}

/// Sends the log to standard error. Call it once, before anything logs.
///
/// The filter is `RUST_LOG`, or `default_filter` if that variable is unset, empty or cannot be
/// parsed. A filter is a level, also for single targets: `info,hyper=warn`.
pub fn init(format: LogFormat, default_filter: &str) {
    // Standard output is for results.
    let lines = fmt::layer().with_writer(stderr);
    let layer: Box<dyn Layer<Registry> + Send + Sync> = match format {
        LogFormat::Text => lines
            .with_target(false)
            .with_ansi(stderr().is_terminal())
            .compact()
            .boxed(),
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .boxed(),
    };
    tracing_subscriber::registry()
        .with(layer)
        .with(filter(env::var("RUST_LOG").ok(), default_filter))
        .init();
}

fn filter(wanted: Option<String>, default: &str) -> Targets {
    // `Targets` and not `EnvFilter`: filters by spans and fields need regular expressions, a tenth
    // of the size of a Lambda function.
    if let Some(wanted) = wanted
        && !wanted.trim().is_empty()
        && let Ok(filter) = wanted.parse()
    {
        return filter;
    }
    default.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::filter::LevelFilter;

    use super::*;

    #[test]
    fn filter_prefers_rust_log_if_it_parses() {
        let level = |wanted: Option<&str>| filter(wanted.map(Into::into), "info").default_level();
        assert_eq!(level(None), Some(LevelFilter::INFO));
        assert_eq!(level(Some("")), Some(LevelFilter::INFO));
        assert_eq!(level(Some("WARN")), Some(LevelFilter::WARN));
        assert_eq!(level(Some("debug,hyper=warn")), Some(LevelFilter::DEBUG));
        assert_eq!(level(Some("hyper=loud")), Some(LevelFilter::INFO));
    }
}
