//! Printing results: tables for people, JSON and YAML for programs.

pub(crate) mod catalogs;
pub(crate) mod changes;
pub(crate) mod compose;
pub(crate) mod copies;
pub(crate) mod gc;
pub(crate) mod images;
pub(crate) mod imageset;
pub(crate) mod manifests;
pub(crate) mod progress;
pub(crate) mod reports;
pub(crate) mod search;
pub(crate) mod validation;
pub(crate) mod verifications;

use std::io::{self, Write};

use comfy_table::{Table, presets};
use serde::Serialize;

/// Longest text in a cell or a line, in characters. Names and messages of a catalog may have any length.
const TEXT_CHARS: usize = 2000;

/// A table for people. It escapes what a catalog could use to change the terminal.
struct TextTable(Table);

impl TextTable {
    fn new<'a>(head: impl IntoIterator<Item = &'a str>) -> Self {
        let mut table = Table::new();
        table
            .load_style(presets::NOTHING)
            .set_header(head.into_iter().collect::<Vec<_>>());
        Self(table)
    }

    fn row<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let cells = cells.into_iter().map(|cell| printable(cell.as_ref()));
        self.0.add_row(cells.collect::<Vec<_>>());
    }

    fn print(&self) -> anyhow::Result<()> {
        let text = self.0.to_string();
        // The table pads its last column with spaces.
        let lines = text.lines().map(|line| format!("{}\n", line.trim_end()));
        print_text(&lines.collect::<String>())
    }
}

/// Returns foreign text on one line, with control characters escaped.
fn printable(text: &str) -> String {
    model::text::line(text, TEXT_CHARS)
}

fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    print_text(&text)
}

/// Prints the error of each catalog to standard error, unless the log has them already.
fn print_errors(failed: impl Iterator<Item = (String, String)>) {
    if tracing::enabled!(target: "report", tracing::Level::ERROR) {
        return;
    }
    for (catalog, error) in failed {
        eprintln!("{catalog}: {error}");
    }
}

fn print_text(text: &str) -> anyhow::Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        // `catalog-mirror images ... | head` is not a failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

fn print_yaml(documents: &[impl Serialize]) -> anyhow::Result<()> {
    print_text(&yaml(documents)?)
}

/// Returns the documents as YAML, separated by `---`.
fn yaml(documents: &[impl Serialize]) -> anyhow::Result<String> {
    // No folded text: people search for digests with grep, so they must stay on one line.
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let text = |document| serde_saphyr::to_string_with_options(document, options.clone());
    let texts: Result<Vec<String>, _> = documents.iter().map(text).collect();
    Ok(texts?.join("---\n"))
}

/// Returns a size with a binary unit, as `ls -h` prints it.
pub(crate) fn bytes(count: u64) -> String {
    indicatif::HumanBytes(count).to_string()
}

/// Returns a number, or an empty cell.
fn number(number: Option<impl ToString>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

/// Returns the first 12 digits of a hash, enough to compare two by eye.
fn short(hash: &model::Sha256) -> String {
    hash.to_string().chars().take(12).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printable_escapes_control_characters() {
        let text = printable("a\u{1b}[2Jb\nc");
        assert!(!text.contains(['\u{1b}', '\n']), "{text:?}");
    }
}
