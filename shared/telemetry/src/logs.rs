use std::{
    env,
    io::{IsTerminal, stderr},
};

use tracing_subscriber::{Layer, Registry, filter::Targets, fmt, layer::SubscriberExt, util::SubscriberInitExt};

/// How log lines look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// Readable on a terminal.
    #[default]
    Text,
    /// One JSON object a line, for machines.
    Json,
}

/// Sends the log to standard error, filtered by `RUST_LOG` or else by `default_filter`: levels, also for single targets,
/// such as `info,hyper=warn`. Call once.
pub fn init(format: Format, default_filter: &str) {
    let layer = fmt::layer().with_writer(stderr);
    let layer: Box<dyn Layer<Registry> + Send + Sync> = match format {
        Format::Text => layer
            .with_target(false)
            .with_ansi(stderr().is_terminal())
            .compact()
            .boxed(),
        Format::Json => layer.json().flatten_event(true).with_current_span(false).boxed(),
    };
    tracing_subscriber::registry()
        .with(layer)
        .with(filter(env::var("RUST_LOG").ok(), default_filter))
        .init();
}

/// Filters by spans and fields, which need regular expressions, would be a tenth of what a Lambda function weighs.
fn filter(wanted: Option<String>, default: &str) -> Targets {
    let wanted = wanted.filter(|text| !text.trim().is_empty());
    wanted
        .and_then(|text| text.parse().ok())
        .or_else(|| default.parse().ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::filter::LevelFilter;

    use super::*;

    #[test]
    fn the_environment_wins_if_it_can_be_read() {
        let level = |wanted: Option<&str>| filter(wanted.map(Into::into), "info").default_level();
        assert_eq!(level(None), Some(LevelFilter::INFO));
        assert_eq!(level(Some("")), Some(LevelFilter::INFO));
        assert_eq!(level(Some("WARN")), Some(LevelFilter::WARN));
        assert_eq!(level(Some("debug,hyper=warn")), Some(LevelFilter::DEBUG));
        assert_eq!(level(Some("hyper=loud")), Some(LevelFilter::INFO));
    }
}
