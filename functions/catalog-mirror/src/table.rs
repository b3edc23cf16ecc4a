//! Columns of the tables that commands print.

use serde::Serialize;
use terminal::{Output, is_shown, print_marked, print_report};

/// Head of a column, and the cell of a value in it.
pub(crate) type Column<T> = (&'static str, fn(&T) -> String);

/// Value that is one row of a table for people.
pub(crate) trait Table: Sized + 'static {
    /// Columns. The last one is left out if it is empty in all rows.
    const COLUMNS: &'static [Column<Self>];

    /// Returns true for a row that tells a failure.
    const IS_FAILED: fn(&Self) -> bool = |_| false;
}

/// Prints values as a JSON array for programs, or as a table for people.
pub(crate) fn print<T: Table + Serialize>(values: &[T], json: bool) -> anyhow::Result<()> {
    print_report(&values, json, |values| print_table(values))
}

/// Prints a report of what was done, as [`print()`] does, unless reports for people are hidden.
pub(crate) fn print_done<T: Table + Serialize>(values: &[T], json: bool) -> anyhow::Result<()> {
    if json || is_shown(Output::Reports) {
        print(values, json)?;
    }
    Ok(())
}

/// Prints values as a table for people.
pub(crate) fn print_table<T: Table>(values: &[T]) -> anyhow::Result<()> {
    let mut columns = T::COLUMNS;
    if let Some(((_, cell), others)) = columns.split_last()
        && values.iter().all(|value| cell(value).is_empty())
    {
        columns = others;
    }
    let heads: Vec<&str> = columns.iter().map(|(head, _)| *head).collect();
    let mut rows = Vec::new();
    for value in values {
        rows.push(columns.iter().map(|(_, cell)| cell(value)).collect());
    }
    print_marked(&heads, &rows, values.iter().map(T::IS_FAILED))
}
