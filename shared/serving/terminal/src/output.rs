//! Printing results: tables for people, JSON and YAML for programs.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, SystemTime};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use model::CatalogName;
use serde::Serialize;

use crate::wrapping::wrapped;

/// Longest text in a cell or a line, in characters. Names and messages of a catalog may have any
/// length.
const TEXT_CHARS: usize = 2000;

/// Output of a program beside results and errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Output {
    /// Nothing.
    None,
    /// Progress and remarks, on standard error.
    Remarks,
    /// Reports of what was done too, on standard output.
    Reports,
}

/// Largest output that is shown.
static SHOWN: AtomicU8 = AtomicU8::new(Output::Reports as u8);

/// Shows no more than this from now on.
pub fn limit_output(most: Output) {
    SHOWN.fetch_min(most as u8, Ordering::Relaxed);
}

/// Returns true if output of this kind is shown.
pub fn is_shown(output: Output) -> bool {
    output as u8 <= SHOWN.load(Ordering::Relaxed)
}

/// Prints a line of a report of what was done, unless reports are hidden. At a terminal it is
/// wrapped.
pub fn print_done(line: &str) -> anyhow::Result<()> {
    if is_shown(Output::Reports) {
        print_text(&wrapped(line))?;
    }
    Ok(())
}

/// Prints a remark, which tells no failure, to standard error, unless remarks are hidden. At a
/// terminal it is wrapped.
pub fn remark(line: &str) {
    if is_shown(Output::Remarks) {
        say_out(&wrapped(&model::text::line(line, usize::MAX)));
    }
}

/// Returns a text of at most so many characters, with an ellipsis in place of what was cut off.
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some(_) => text
            .chars()
            .take(most.saturating_sub(1))
            .chain(['…'])
            .collect(),
        None => text.to_owned(),
    }
}

pub(crate) const RED: &str = "\u{1b}[31m";
pub(crate) const RESET: &str = "\u{1b}[0m";

/// Prints an error to standard error. The part in front, such as the name of a catalog, is red on a
/// terminal.
pub fn print_failure(what: &str, error: &str) {
    say_out(&format!("{RED}{what}:{RESET} {error}\n"));
}

/// Returns the time since an event, for people.
pub fn age(time: SystemTime) -> String {
    let seconds = SystemTime::now()
        .duration_since(time)
        .unwrap_or_default()
        .as_secs();
    let (count, unit) = match seconds {
        0..60 => (seconds, "s"),
        60..3600 => (seconds / 60, "min"),
        3600..172_800 => (seconds / 3600, "h"),
        _ => (seconds / 86400, "days"),
    };
    format!("{count} {unit} ago")
}

/// Returns foreign text on one line, with control characters escaped.
pub fn printable(text: &str) -> String {
    model::text::line(text, TEXT_CHARS)
}

/// Prints a value as JSON, or in the way for people.
pub fn print_report<T: Serialize>(
    value: &T,
    json: bool,
    for_people: impl FnOnce(&T) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if json {
        print_json(value)
    } else {
        for_people(value)
    }
}

/// Prints a value as JSON.
///
/// # Errors
/// Fails if the value is none in JSON, or standard output takes nothing.
pub fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let json = serde_json::to_string_pretty(value)? + "\n";
    print_text(&model::text::printable_json(&json))
}

/// Prints lines. What could change the terminal is escaped, also if the one who made them forgot
/// it.
pub fn print_text(text: &str) -> anyhow::Result<()> {
    write_out(&model::text::printable(text))
}

/// Prints a line. What could change the terminal is escaped.
pub fn print_line(line: &str) -> anyhow::Result<()> {
    print_text(&format!("{line}\n"))
}

/// Prints bytes for another program as they are.
pub fn print_bytes(bytes: &[u8]) -> anyhow::Result<()> {
    until_closed(io::stdout().lock().write_all(bytes))
}

pub(crate) fn write_out(text: &str) -> anyhow::Result<()> {
    // Leaves out colours unless standard output is a terminal, and with NO_COLOR.
    until_closed(anstream::stdout().lock().write_all(text.as_bytes()))
}

/// Returns the result of printing. A reader that has enough, such as `head`, is not a failure.
pub fn until_closed(printed: io::Result<()>) -> anyhow::Result<()> {
    match printed {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => Ok(printed?),
    }
}

/// Writes to standard error. What cannot be written there can be told nowhere.
fn say_out(text: &str) {
    anstream::stderr().lock().write_all(text.as_bytes()).ok();
}

/// Returns a size with a binary unit, as `ls -h` prints it.
pub fn bytes(count: u64) -> String {
    indicatif::HumanBytes(count).to_string()
}

/// Returns a value as text, or an empty cell.
pub fn cell(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Returns the first 12 digits of a hash, enough to compare two by eye.
pub fn short(hash: &model::Sha256) -> String {
    hash.to_string().chars().take(12).collect()
}

/// Prints the error of a catalog to standard error, unless the log has it already.
pub fn print_error(catalog: &CatalogName, error: Option<String>) {
    if let Some(error) = error
        && !tracing::enabled!(target: "report", tracing::Level::ERROR)
    {
        print_failure(catalog.as_str(), &error);
    }
}

/// Returns the names with commas between them.
pub fn join(names: &[CatalogName]) -> String {
    names
        .iter()
        .map(CatalogName::as_str)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Prints a line to standard error, on one line.
pub fn say(line: &str) {
    say_out(&format!("{}\n", model::text::line(line, usize::MAX)));
}

/// Returns a duration in whole milliseconds.
pub fn millis(duration: Duration) -> String {
    format!("{} ms", duration.as_millis())
}

/// Time between two updates of the line.
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);

/// Shows a line with the time and counts on standard error until the bar is cleared. It is hidden if
/// it is quiet, if remarks are, and without a terminal.
pub fn show_progress(
    quiet: bool,
    counts: impl Fn() -> String + Clone + Send + Sync + 'static,
) -> ProgressBar {
    if quiet || !is_shown(Output::Remarks) {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {elapsed} {counts}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::new_spinner();
    bar.set_style(style.with_key(
        "counts",
        move |_: &ProgressState, line: &mut dyn std::fmt::Write| {
            // The line is drawn again soon.
            line.write_str(&counts()).ok();
        },
    ));
    bar.enable_steady_tick(UPDATE_INTERVAL);
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_has_one_unit() {
        let ago = |seconds| age(SystemTime::now() - std::time::Duration::from_secs(seconds));
        let ages = [0, 59, 60, 3599, 3600, 172_799, 172_800]
            .map(ago)
            .join(", ");
        let expected = "0 s ago, 59 s ago, 1 min ago, 59 min ago, 1 h ago, 47 h ago, 2 days ago";
        assert_eq!(ages, expected);
    }

    #[test]
    fn cut_keeps_what_fits() {
        assert_eq!([cut("añb", 3), cut("añbc", 3)], ["añb", "añ…"]);
    }
}
