//! Cost of one byte: the memory for a document grows with its size, not faster, and stays below its
//! limit.
//!
//! Counts are compared, never times. The short run uses small documents, because CI runs it without
//! optimisation; `scripts/long-checks cost` runs the large ones.
#![expect(clippy::print_stdout, reason = "`--nocapture` shows what was measured")]

mod documents;

use std::io::Read;

use allocation_counter::AllocationInfo;
use documents::families;
use fbc::{Chunks, FbcErrorKind, FbcLimits};
use testkit::grew_more_than_fourfold;

/// Costs below this many bytes are not compared: constant costs are a large part of them.
const FLOOR_BYTES: u64 = 1 << 20;
/// Numbers of allocations below this one are not compared.
const FLOOR_COUNT: u64 = 200;
/// Documents below this size, in bytes, may take as much memory as one of this size.
const SMALL_CHUNK: u64 = 512 << 10;
/// Memory that does not grow with the document, in bytes: the error and the buffers of the parser.
const CONSTANT: u64 = 16 << 10;
/// Refusal that Go's YAML reader has too. It depends on the size of a document, and is no limit of
/// this program.
const GO_YAML: &str = "ratio of go-yaml";
/// Size of chunks in bytes. Every document is larger, so that all are read in the same way.
const CHUNK: usize = 48 << 10;

/// Parses a file as rendering does, which keeps the lines of a chunk. Returns the limit that the
/// file exceeds, if any.
fn parse(document: &[u8]) -> Option<&'static str> {
    let limits = FbcLimits::default();
    for chunk in Chunks::new(document, limits, CHUNK) {
        let mut lines: Vec<u8> = Vec::new();
        let parsed = chunk.and_then(|chunk| {
            chunk.metas(&limits, &mut |meta| {
                let missing = meta
                    .line
                    .len()
                    .saturating_sub(lines.capacity() - lines.len());
                if missing > 0 {
                    lines.reserve_exact(meta.line.len().max(lines.capacity() / 4));
                }
                lines.extend_from_slice(meta.line);
            })
        });
        if let Err(error) = parsed {
            return match &error.kind {
                FbcErrorKind::Limit { name, .. } => Some(*name),
                FbcErrorKind::AliasRatio => Some(GO_YAML),
                other => panic!("{error}: {other}"),
            };
        }
    }
    None
}

/// Parses documents of each family and of several sizes, each four times the one before.
fn measure(sizes: &[usize]) {
    let mut wrong = Vec::new();
    for family in families() {
        let mut before: Option<AllocationInfo> = None;
        for &size in sizes {
            let document = (family.document)(size);
            let mut exceeded = None;
            let cost = allocation_counter::measure(|| exceeded = parse(&document));
            let size = document.len();
            let place = format!(
                "{}, {size} bytes, {}",
                family.name,
                exceeded.unwrap_or("accepted")
            );
            let peak = cost.bytes_max / (size as u64 / 10);
            println!(
                "{place}: peak {}.{}, {} bytes in {} allocations",
                peak / 10,
                peak % 10,
                cost.bytes_total,
                cost.count_total
            );
            // Small documents may take more for each byte, so that they are refused later.
            let wrong_end = exceeded.is_some() != family.refused && size as u64 >= SMALL_CHUNK;
            let wrong_end = wrong_end && exceeded != Some(GO_YAML);
            if wrong_end || cost.bytes_max > 8 * (size as u64).max(SMALL_CHUNK) + CONSTANT {
                wrong.push(format!("{place}: {cost:?}"));
            }
            // What is refused is bounded already.
            if let Some(before) = before.filter(|before| exceeded.is_none() && grew(before, &cost))
            {
                wrong.push(format!("{place}: {cost:?} after {before:?}"));
            }
            before = Some(cost);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Returns true if a document cost much more than four times what one of a quarter of its size
/// cost.
fn grew(before: &AllocationInfo, now: &AllocationInfo) -> bool {
    grew_more_than_fourfold(before.bytes_max, now.bytes_max, FLOOR_BYTES)
        || grew_more_than_fourfold(before.bytes_total, now.bytes_total, FLOOR_BYTES)
        || grew_more_than_fourfold(before.count_total, now.count_total, FLOOR_COUNT)
}

#[test]
fn small_documents_cost_a_bounded_number_of_bytes_each() {
    measure(&[160 << 10, 640 << 10]);
}

#[test]
#[ignore = "takes minutes without optimisation"]
fn large_documents_cost_a_bounded_number_of_bytes_each() {
    measure(&[1 << 20, 4 << 20, 16 << 20]);
}

/// Counts the reads of a file too: a search that starts again for each of them would not be linear.
#[test]
fn file_of_one_document_is_read_once() {
    struct Counting<'a>(&'a [u8], usize);
    impl Read for Counting<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let count = self.0.read(buffer)?;
            self.1 += count;
            Ok(count)
        }
    }
    let file = [b"{\"v\":\"", "x".repeat(5 << 20).as_bytes(), b"\"}"].concat();
    let mut reader = Counting(&file, 0);
    let chunks = Chunks::new(&mut reader, FbcLimits::default(), CHUNK);
    assert_eq!(
        chunks
            .map(|chunk| chunk.unwrap().size())
            .collect::<Vec<_>>(),
        [file.len()]
    );
    assert_eq!(reader.1, file.len());
}
