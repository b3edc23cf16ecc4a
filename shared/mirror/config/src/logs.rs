//! Logging: the format of the lines and the filter of their levels.

use std::env;
use std::io::{self, IsTerminal, Write, stderr};

use model::text::{line, printable_json, without_secrets};
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
    let lines = fmt::layer().with_writer(move || LogWriter {
        format,
        to: stderr(),
    });
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

/// Writer of lines that say neither what a URL keeps secret nor what changes a terminal, whichever
/// library logs them.
struct LogWriter<W> {
    format: LogFormat,
    to: W,
}

/// Takes one event at a time, as the subscriber writes them.
impl<W: Write> Write for LogWriter<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = without_secrets(&String::from_utf8_lossy(event));
        let text = text.trim_end_matches('\n');
        let mut shown = match self.format {
            LogFormat::Json => printable_json(text),
            // The subscriber escapes the sequences of others, so what is left are its own colours.
            LogFormat::Text => {
                let parts = text.split(ESCAPE).map(|part| line(part, usize::MAX));
                parts.collect::<Vec<_>>().join(ESCAPE)
            }
        };
        shown.push('\n');
        // A failure could be told nowhere: the subscriber would print it to the same place and panic.
        self.to.write_all(shown.as_bytes()).ok();
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Begin of a sequence that colours a line.
const ESCAPE: &str = "\u{1b}";

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
    fn log_line_shows_no_secrets_and_stays_one_line() {
        let written = |format: LogFormat, event: &str| {
            let mut to = Vec::new();
            let written = LogWriter {
                format,
                to: &mut to,
            }
            .write(event.as_bytes());
            assert_eq!(written.unwrap(), event.len());
            String::from_utf8(to).unwrap()
        };
        let text = "\u{1b}[32mINFO\u{1b}[0m sync from=https://u:s3cret@h/ a\rb\nc\u{202e}\n";
        assert_eq!(
            written(LogFormat::Text, text),
            "\u{1b}[32mINFO\u{1b}[0m sync from=https://***@h/ a\\u{d}b\\u{a}c\\u{202e}\n"
        );
        let json = "{\"from\":\"https://u:s3cret@h\",\"name\":\"a\u{202e}\"}\n";
        assert_eq!(
            written(LogFormat::Json, json),
            "{\"from\":\"https://***@h\",\"name\":\"a\\u202e\"}\n"
        );
    }

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
