//! Tables and remarks that fit a terminal: what is too wide is wrapped, and nothing is cut off.

use std::iter;
use std::ops::Range;

use comfy_table::{ColumnConstraint, Width, presets};

use crate::output::{RED, RESET, printable, write_out};
use crate::wrapping::columns;

/// Spaces around a cell.
const PADDING: usize = 2;

/// Prints rows as a table for people.
pub fn print_rows(heads: &[&str], rows: &[Vec<String>]) -> anyhow::Result<()> {
    print_marked(heads, rows, iter::repeat(false))
}

/// Prints rows, in red where they failed. At a terminal, cells that are too wide for it are wrapped
/// at their spaces. Columns that do not fit even so continue on a line below, so that each name is
/// whole. Escapes what a catalog could use to change the terminal.
pub fn print_marked(
    heads: &[&str],
    rows: &[Vec<String>],
    failed: impl Iterator<Item = bool>,
) -> anyhow::Result<()> {
    write_out(&laid_out(heads, rows, failed, columns()))
}

/// Returns the lines of a table.
fn laid_out(
    heads: &[&str],
    rows: &[Vec<String>],
    failed: impl Iterator<Item = bool>,
    columns: Option<usize>,
) -> String {
    let head: Vec<String> = heads.iter().map(|head| (*head).to_owned()).collect();
    let mut printed = vec![head];
    for row in rows {
        printed.push(row.iter().map(|cell| printable(cell)).collect());
    }
    let parts = parts(&printed, columns.unwrap_or(usize::MAX));
    let mut lines = String::new();
    for (row, is_failed) in printed.iter().zip(iter::once(false).chain(failed)) {
        let (begin, end) = if is_failed { (RED, RESET) } else { ("", "") };
        for part in &parts {
            let cells = &row[part.columns.clone()];
            if part.indent > 0 && cells.iter().all(String::is_empty) {
                continue;
            }
            for line in row_lines(cells, &part.widths) {
                // The table pads its last column with spaces.
                let line = format!("{:indent$}{line}", "", indent = part.indent);
                lines += &format!("{begin}{}{end}\n", line.trim_end());
            }
        }
    }
    lines
}

/// Columns that stand side by side. The parts of a row stand one below the other.
struct TablePart {
    columns: Range<usize>,
    widths: Vec<usize>,
    /// Spaces in front.
    indent: usize,
}

/// Spaces in front of the second part of a row and of further ones.
const PART_INDENT: usize = 3;

/// Divides the columns into as few parts as fit. A part has at least one column.
fn parts(rows: &[Vec<String>], most: usize) -> Vec<TablePart> {
    let least = least_widths(rows);
    let mut ends = Vec::new();
    let mut taken = 0;
    for (at, width) in least.iter().enumerate() {
        let width = width + PADDING;
        if at > 0 && taken + width > most {
            ends.push(at);
            taken = PART_INDENT;
        }
        taken += width;
    }
    ends.push(least.len());
    let mut parts = Vec::new();
    let mut start = 0;
    for end in ends {
        let indent = if start == 0 { 0 } else { PART_INDENT };
        let columns = start..end;
        let cells: Vec<Vec<String>> = rows
            .iter()
            .map(|row| row[columns.clone()].to_vec())
            .collect();
        parts.push(TablePart {
            widths: widths(&cells, most.saturating_sub(indent)),
            columns,
            indent,
        });
        start = end;
    }
    parts
}

/// Width of a cell that is not wrapped, such as a size with its unit.
const SHORT_CELL: usize = 12;

/// Returns the widths of the columns. The widest ones shrink until all fit, but not below their
/// longest word.
fn widths(rows: &[Vec<String>], most: usize) -> Vec<usize> {
    let least = least_widths(rows);
    let mut widths = content_widths(rows);
    let mut total: usize = widths.iter().map(|width| width + PADDING).sum();
    while total > most {
        let shrinking = (0..widths.len()).filter(|at| widths[*at] > least[*at]);
        let Some(widest) = shrinking.max_by_key(|at| widths[*at]) else {
            break;
        };
        widths[widest] -= 1;
        total -= 1;
    }
    widths
}

/// Returns the widths of the longest words.
fn least_widths(rows: &[Vec<String>]) -> Vec<usize> {
    let words: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| breakable(cell)).collect())
        .collect();
    content_widths(&words)
}

/// Returns a cell with each of its words on a line.
fn breakable(cell: &str) -> String {
    if cell.chars().count() <= SHORT_CELL {
        return cell.to_owned();
    }
    cell.replace(' ', "\n")
}

fn content_widths(rows: &[Vec<String>]) -> Vec<usize> {
    let mut table = comfy_table::Table::new();
    table.add_rows(rows);
    let widths = table.column_max_content_widths();
    widths.into_iter().map(usize::from).collect()
}

fn row_lines(row: &[String], widths: &[usize]) -> Vec<String> {
    let mut table = comfy_table::Table::new();
    table.load_style(presets::NOTHING).add_row(row);
    for (column, width) in table.column_iter_mut().zip(widths) {
        let width = u16::try_from(width + PADDING).unwrap_or(u16::MAX);
        column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width)));
    }
    table.to_string().lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[&[&str]], columns: Option<usize>) -> String {
        let rows: Vec<Vec<String>> = rows
            .iter()
            .map(|row| row.iter().map(|cell| (*cell).to_owned()).collect())
            .collect();
        laid_out(&["NAME", "WAY"], &rows, [false, true].into_iter(), columns)
    }

    #[test]
    fn table_too_wide_is_wrapped_at_spaces() {
        let way = "1.0.0 -> 1.1.0 -> 1.2.0 -> 1.3.0";
        let rows: [&[&str]; 2] = [&["stable", way], &["beta", "é"]];
        let lines = [
            " NAME    WAY",
            " stable  1.0.0 -> 1.1.0 ->",
            "         1.2.0 -> 1.3.0",
            "\u{1b}[31m beta    é\u{1b}[0m",
        ];
        assert_eq!(table(&rows, Some(27)), lines.join("\n") + "\n");
        let whole = table(&rows, None);
        assert!(whole.contains(way), "{whole}");
        assert_eq!(table(&rows, Some(200)), whole);
    }

    #[test]
    fn word_wider_than_the_terminal_is_whole() {
        let name = "x".repeat(100);
        let text = table(&[&[&name, "a b"], &["y", "z"]], Some(40));
        assert!(text.contains(&name), "{text}");
    }

    #[test]
    fn columns_that_do_not_fit_continue_below_with_their_heads() {
        let rows: [&[&str]; 2] = [&["a-long-name-of-a-package", "12-digits-x"], &["b", ""]];
        let lines = [
            " NAME",
            "    WAY",
            " a-long-name-of-a-package",
            "    12-digits-x",
            "\u{1b}[31m b\u{1b}[0m",
        ];
        assert_eq!(table(&rows, Some(30)), lines.join("\n") + "\n");
        let whole = table(&rows, Some(39));
        assert_eq!(whole.lines().count(), 3, "{whole}");
    }
}
