//! What people and programs get to read.

pub(crate) mod catalogs;
pub(crate) mod changes;
pub(crate) mod copies;
pub(crate) mod gc;
pub(crate) mod images;
pub(crate) mod imageset;
pub(crate) mod manifests;
pub(crate) mod progress;
pub(crate) mod reports;
pub(crate) mod verifications;

use std::io::{self, Write};

use comfy_table::{Table, presets};
use serde::Serialize;

fn table<'a>(head: impl IntoIterator<Item = &'a str>) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_header(head.into_iter().collect::<Vec<_>>());
    table
}

fn print_table(table: &Table) -> anyhow::Result<()> {
    let lines: Vec<String> = table
        .to_string()
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect();
    print_text(&lines.concat())
}

fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    print_text(&text)
}

/// `catalog-mirror images ... | head` is no failure.
fn print_text(text: &str) -> anyhow::Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// One YAML document each.
fn print_yaml(documents: &[impl Serialize]) -> anyhow::Result<()> {
    print_text(&yaml(documents)?)
}

fn yaml(documents: &[impl Serialize]) -> anyhow::Result<String> {
    // One line for each text: digests are long, and somebody will grep for them.
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let text = |document| serde_saphyr::to_string_with_options(document, options.clone());
    let texts: Result<Vec<String>, _> = documents.iter().map(text).collect();
    Ok(texts?.join("---\n"))
}

/// Bytes with a binary unit, as `ls -h` prints them.
pub(crate) fn bytes(count: u64) -> String {
    indicatif::HumanBytes(count).to_string()
}

/// A hash as short as people compare them.
fn short(hash: &layout::Sha256) -> String {
    hash.to_string().chars().take(12).collect()
}
