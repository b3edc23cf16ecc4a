//! Log lines, for `wrangler tail` and Workers Logs.

use std::io::{Result, Write};

use worker::console_error;

/// Sends warnings and errors to the console as JSON, which adds the time. Call it once.
pub(crate) fn init() {
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .without_time()
        .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
        .with_writer(|| ConsoleLines)
        .init();
}

/// Writer whose every write is one line.
struct ConsoleLines;

impl Write for ConsoleLines {
    fn write(&mut self, line: &[u8]) -> Result<usize> {
        console_error!("{}", String::from_utf8_lossy(line).trim_end());
        Ok(line.len())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
