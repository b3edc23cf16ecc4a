//! Printing results: tables for people, JSON and YAML for programs.

use std::io::{self, Write};

use comfy_table::presets;
use serde::Serialize;

/// Longest text in a cell or a line, in characters. Names and messages of a catalog may have any length.
const TEXT_CHARS: usize = 2000;

/// Head of a column, and the cell of a value in it.
pub(crate) type Column<T> = (&'static str, fn(&T) -> String);

/// Value that is one row of a table for people.
pub(crate) trait Table: Sized + 'static {
    /// Columns. The last one is left out if it is empty in all rows.
    const COLUMNS: &'static [Column<Self>];
}

/// Prints values as a JSON array for programs, or as a table for people.
pub(crate) fn print<T: Table + Serialize>(values: &[T], json: bool) -> anyhow::Result<()> {
    if json {
        return print_json(&values);
    }
    print_table(values)
}

/// Prints values as a table for people.
pub(crate) fn print_table<T: Table>(values: &[T]) -> anyhow::Result<()> {
    let is_empty = |(_, cell): &Column<T>| values.iter().all(|value| cell(value).is_empty());
    let columns = match T::COLUMNS {
        [others @ .., last] if is_empty(last) => others,
        all => all,
    };
    let heads: Vec<&str> = columns.iter().map(|(head, _)| *head).collect();
    let row = |value: &T| columns.iter().map(|(_, cell)| cell(value)).collect();
    print_rows(&heads, &values.iter().map(row).collect::<Vec<_>>())
}

/// Prints rows as a table for people. Escapes what a catalog could use to change the terminal.
pub(crate) fn print_rows(heads: &[&str], rows: &[Vec<String>]) -> anyhow::Result<()> {
    let mut table = comfy_table::Table::new();
    table.load_style(presets::NOTHING).set_header(heads);
    for row in rows {
        table.add_row(row.iter().map(|cell| printable(cell)));
    }
    let text = table.to_string();
    // The table pads its last column with spaces.
    let lines = text.lines().map(|line| format!("{}\n", line.trim_end()));
    print_text(&lines.collect::<String>())
}

/// Returns foreign text on one line, with control characters escaped.
pub(crate) fn printable(text: &str) -> String {
    model::text::line(text, TEXT_CHARS)
}

pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    print_text(&text)
}

pub(crate) fn print_text(text: &str) -> anyhow::Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        // `catalog-mirror images ... | head` is not a failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Prints documents as YAML, separated by `---`.
pub(crate) fn print_yaml(documents: &[impl Serialize]) -> anyhow::Result<()> {
    print_text(&yaml(documents)?)
}

pub(crate) fn yaml(documents: &[impl Serialize]) -> anyhow::Result<String> {
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

/// Returns a value as text, or an empty cell.
pub(crate) fn cell(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Returns the first 12 digits of a hash, enough to compare two by eye.
pub(crate) fn short(hash: &model::Sha256) -> String {
    hash.to_string().chars().take(12).collect()
}

/// Prints the error of a catalog to standard error, unless the log has it already.
pub(crate) fn print_error(catalog: &model::CatalogName, error: Option<String>) {
    if let Some(error) = error
        && !tracing::enabled!(target: "report", tracing::Level::ERROR)
    {
        eprintln!("{catalog}: {error}");
    }
}

/// Prints a line to standard error.
pub(crate) fn say(line: &str) {
    eprintln!("{line}");
}

pub(crate) fn millis(duration: std::time::Duration) -> String {
    format!("{} ms", duration.as_millis())
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
