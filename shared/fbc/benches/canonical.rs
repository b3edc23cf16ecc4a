//! Measures canonical bytes per second of one thread, on data shaped like real catalogs.

use catalog_mirror_fbc::{Chunks, FbcLimits};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use serde_json::{Value, json};

fn bundle(number: usize) -> Value {
    json!({
        "schema": "olm.bundle",
        "name": format!("operator.v0.{number}.0"),
        "package": "operator",
        "image": format!("quay.io/example/operator@sha256:{number:064x}"),
        "properties": [
            {"type": "olm.gvk", "value": {"group": "example.com", "kind": "Thing", "version": "v1"}},
            {"type": "olm.package", "value": {"packageName": "operator", "version": format!("0.{number}.0")}},
            {"type": "olm.csv.metadata", "value": {
                "annotations": {
                    "alm-examples": "[\n  {\n    \"apiVersion\": \"example.com/v1\"\n  }\n]".repeat(20),
                    "capabilities": "Basic Install",
                    "createdAt": "2026-01-01T00:00:00Z",
                },
                "description": "Runs things, and runs them well.\n\n## Features\n\n* one\n* two\n".repeat(20),
                "installModes": [{"supported": true, "type": "AllNamespaces"}, {"supported": false, "type": "OwnNamespace"}],
                "keywords": ["things", "running", "wellness"],
            }},
        ],
        "relatedImages": (0..8).map(|image| json!({"name": format!("image-{image}"), "image": format!("quay.io/example/part-{image}:{number}")})).collect::<Vec<_>>(),
    })
}

/// Block style, as catalogs are written: plain keys, and long texts as literals.
fn yaml(value: &Value, indent: usize, out: &mut String) {
    let start = format!("\n{}", " ".repeat(indent));
    match value {
        Value::Array(items) => {
            for item in items {
                *out += &format!("{start}- ");
                let mut inner = String::new();
                yaml(item, indent + 2, &mut inner);
                *out += inner.trim_start();
            }
        }
        Value::Object(map) => {
            for (key, value) in map {
                *out += &format!("{start}{key}: ");
                yaml(value, indent + 2, out);
            }
        }
        Value::String(text) if text.contains('\n') => {
            *out += "|-";
            for line in text.trim_end().lines() {
                *out += &format!("{start}{line}");
            }
        }
        Value::String(text) => *out += text,
        other => *out += &other.to_string(),
    }
}

fn canonical(criterion: &mut Criterion) {
    let bundles: Vec<_> = (0..200).map(bundle).collect();
    let mut documents = String::new();
    for bundle in &bundles {
        documents += "\n---";
        yaml(bundle, 0, &mut documents);
    }
    let pretty = |bundle| serde_json::to_string_pretty(bundle).unwrap_or_default();
    let json: String = bundles.iter().map(pretty).collect();
    let mut group = criterion.benchmark_group("canonical");
    for (name, file) in [("yaml", documents + "\n"), ("json", json)] {
        group.throughput(Throughput::Bytes(file.len() as u64));
        group.bench_function(name, |bencher| bencher.iter(|| bytes(file.as_bytes())));
    }
}

fn bytes(file: &[u8]) -> usize {
    let limits = FbcLimits::default();
    let mut bytes = 0;
    for chunk in Chunks::new(file, limits, 1 << 20) {
        let chunk = chunk.expect("the data is well-formed");
        let done = chunk.metas(&limits, &mut |meta| bytes += meta.line.len());
        done.expect("the data is well-formed");
    }
    bytes
}

criterion_group!(benches, canonical);
criterion_main!(benches);
