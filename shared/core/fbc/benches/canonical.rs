//! Measures canonical bytes per second of one thread, on data shaped like real catalogs.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fbc::{Chunks, FbcLimits};
use serde_json::Value;

/// Bundles in block style, as catalogs are written.
const CATALOG: &str = include_str!("../../../../tests/catalogs/v2/demo-database/catalog.yaml");

/// Returns a file of the bundles, each with a long text as a literal: those are most of a real
/// catalog.
fn yaml() -> String {
    let text = "      ## Features\n\n      * runs things, and runs \"them\" well\n".repeat(40);
    let with_text = format!("    alm-examples: |-\n{text}    links:\n");
    CATALOG.replace("    links:\n", &with_text).repeat(50)
}

fn canonical(criterion: &mut Criterion) {
    let yaml = yaml();
    let mut json = String::new();
    read(&yaml, |line| {
        let document: Value = serde_json::from_slice(line).expect("a line is JSON");
        json += &format!("{document:#}");
    });
    let mut group = criterion.benchmark_group("canonical");
    for (name, file) in [("yaml", yaml), ("json", json)] {
        group.throughput(Throughput::Bytes(file.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut bytes = 0;
                read(&file, |line| bytes += line.len());
                bytes
            });
        });
    }
}

fn read(file: &str, mut sink: impl FnMut(&[u8])) {
    let limits = FbcLimits::default();
    for chunk in Chunks::new(file.as_bytes(), limits, 1 << 20) {
        let chunk = chunk.expect("the data is well-formed");
        let done = chunk.metas(&limits, &mut |meta| sink(meta.line));
        done.expect("the data is well-formed");
    }
}

criterion_group!(benches, canonical);
criterion_main!(benches);
