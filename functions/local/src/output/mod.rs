//! What people and programs get to read.

pub(crate) mod catalogs;
pub(crate) mod progress;
pub(crate) mod reports;
pub(crate) mod verifications;

use std::io::{self, Write};

use comfy_table::{Table, presets};
use serde::Serialize;

fn table<const N: usize>(head: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(head);
    table
}

fn print_table(table: &Table) -> anyhow::Result<()> {
    let mut output = io::stdout().lock();
    for line in table.to_string().lines() {
        writeln!(output, "{}", line.trim_end())?;
    }
    Ok(())
}

fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut output = io::stdout().lock();
    serde_json::to_writer_pretty(&mut output, value)?;
    writeln!(output)?;
    Ok(())
}

/// Bytes with a binary unit, as `ls -h` prints them.
pub(crate) fn bytes(count: u64) -> String {
    indicatif::HumanBytes(count).to_string()
}

/// A hash as short as people compare them.
fn short(hash: &layout::Sha256) -> String {
    hash.to_string().chars().take(12).collect()
}
