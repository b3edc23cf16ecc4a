use model::Sha256;
use registry::{
    BundleQuery, Graph, GraphBuilder, LineRange, ListedBundle, PackageRecord, PackageRecorder, RegistryError,
    api::{CustomSchemasRequest, GetBundleRequest, ProvidersRequest},
    meta_struct,
};

use crate::memory;

/// Memory for each byte of lines, and for small ones. An entry of a channel takes most.
const RECORD_RATIO: usize = 40;

/// Memory for each byte of a graph.
const GRAPH_RATIO: usize = 4;

const FLOOR: usize = 1 << 20;

/// Size of the chunks in which lines are recorded a second time.
const CHUNK: usize = 7;

/// Memory for the compressed contents of a package.
const CONTENTS_MAX: usize = 1 << 20;

/// Records the lines of a package and asks for everything: the record does not depend on the chunks, memory is bounded, and
/// every answer is a message or an error.
///
/// # Panics
/// If not.
pub fn records(lines: &[u8]) {
    let about = format!("{:?}", String::from_utf8_lossy(&lines[..lines.len().min(1000)]));
    let whole = memory::within(RECORD_RATIO * lines.len() + FLOOR, &about, || record(lines, usize::MAX));
    assert_eq!(whole, record(lines, CHUNK), "{about}");
    let Ok(record) = whole else { return };
    let mut builder = GraphBuilder::new();
    builder.push(&record);
    let graph = Graph::parse(builder.finish().into(), usize::MAX).expect("what was built is a graph");
    ask(&graph, lines);
}

/// Reads a graph and asks for everything: it is refused, or every answer is a message or an error.
///
/// # Panics
/// If not, or if the index takes too much memory.
pub fn graph(input: &[u8]) {
    let bytes = bytes::Bytes::copy_from_slice(input);
    let graph = memory::within(GRAPH_RATIO * input.len() + FLOOR, "a graph", || {
        Graph::parse(bytes, usize::MAX)
    });
    if let Ok(graph) = graph {
        ask(&graph, b"{}");
    }
}

fn record(lines: &[u8], chunk: usize) -> Result<PackageRecord, RegistryError> {
    let mut recorder = PackageRecorder::new("p");
    lines
        .chunks(chunk.min(lines.len().max(1)))
        .for_each(|chunk| recorder.push(chunk));
    recorder.finish(Sha256::of(b""))
}

/// Asks for everything. Lines that are not there are empty.
fn ask(graph: &Graph, lines: &[u8]) {
    let line = |range: LineRange| {
        let offsets = range.offsets();
        let [start, end] = [offsets.start, offsets.end].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
        lines.get(start..end.min(lines.len())).unwrap_or_default()
    };
    let complete = |query: BundleQuery| {
        let package_line = line(query.package_line);
        let contents = graph
            .contents_of(&query, package_line, CONTENTS_MAX)
            .and_then(|mut builder| {
                lines.chunks(CHUNK).try_for_each(|chunk| builder.push(chunk))?;
                builder.finish()
            });
        let content = contents.and_then(|contents| contents.content(&query));
        drop(content.map(|content| query.with_content(&content)));
    };
    let names: Vec<String> = graph.list_packages().filter_map(|name| Some(name.ok()?.name)).collect();
    for name in names {
        drop(graph.get_package(&name));
        let custom = CustomSchemasRequest {
            schema: "custom.v1".to_owned(),
            package_name: name,
        };
        for range in graph.list_custom_schemas(&custom).unwrap_or_default() {
            line(range)
                .split(|byte| *byte == b'\n')
                .for_each(|line| drop(meta_struct(line)));
        }
    }
    for bundle in graph.list_bundles().flatten() {
        match bundle {
            ListedBundle::Incomplete(query) => complete(query),
            ListedBundle::Complete(bundle) => {
                let request = GetBundleRequest {
                    pkg_name: bundle.package_name,
                    channel_name: bundle.channel_name,
                    csv_name: bundle.csv_name,
                };
                graph.get_bundle(&request).into_iter().for_each(complete);
            }
        }
    }
    let api = ProvidersRequest::default();
    let count = |found: Result<usize, RegistryError>| drop(found);
    count(graph.get_channel_entries_that_replace("").map(Iterator::count));
    count(graph.get_channel_entries_that_provide(&api).map(Iterator::count));
    count(graph.get_latest_channel_entries_that_provide(&api).map(Iterator::count));
    drop(graph.get_default_bundle_that_provides(&api));
}

/// Returns the lines of each package of the crafted catalog, and a graph of them.
pub(crate) fn seeds() -> (Vec<Vec<u8>>, Vec<u8>) {
    let mut packages = std::collections::BTreeMap::<String, Vec<u8>>::new();
    let catalog = include_bytes!("../../../shared/registry/tests/recorded/crafted.jsonl");
    for line in catalog.split_inclusive(|byte| *byte == b'\n') {
        let meta: serde_json::Value = serde_json::from_slice(line).expect("a line is JSON");
        let name = meta["package"].as_str().or(meta["name"].as_str()).unwrap_or_default();
        packages.entry(name.to_owned()).or_default().extend_from_slice(line);
    }
    let mut builder = GraphBuilder::new();
    for (name, lines) in packages.iter().take(5) {
        let mut recorder = PackageRecorder::new(name);
        recorder.push(lines);
        builder.push(&recorder.finish(Sha256::of(lines)).expect("the package is valid"));
    }
    (packages.into_values().collect(), builder.finish())
}

#[cfg(test)]
mod tests {
    use super::records;

    #[test]
    fn records_of_many_small_values_take_bounded_memory() {
        let many = |start: &str, part: &str, end: &str| [start, &part.repeat(50_000), end].concat();
        for lines in [
            many(r#"{"properties":["#, "{},", r#"{}],"schema":"olm.bundle"}"#),
            many(
                r#"{"properties":["#,
                r#"{"type":"olm.gvk","value":{}},"#,
                r#"{}],"schema":"olm.bundle"}"#,
            ),
            many(
                r#"{"entries":["#,
                r#"{"name":"a","skips":[]},"#,
                r#"{}],"schema":"olm.channel"}"#,
            ),
            many(
                r#"{"entries":[{"skips":["#,
                r#""","#,
                r#"""]}],"schema":"olm.channel"}"#,
            ),
            many(
                r#"{"entries":["#,
                r#"{"message":"m"},"#,
                r#"{}],"schema":"olm.deprecations"}"#,
            ),
            many("", "{\"schema\":\"a\"}\n{\"schema\":\"b\"}\n", ""),
        ] {
            records(lines.as_bytes());
        }
    }

    #[test]
    fn records_of_many_names_take_bounded_memory() {
        let list = |part: fn(usize) -> String| (0..20_000).map(part).collect::<Vec<_>>().join(",");
        let entries = list(|at| format!(r#"{{"name":"{at}","replaces":"{}"}}"#, at.wrapping_sub(1)));
        records(format!(r#"{{"entries":[{entries}],"name":"c","schema":"olm.channel"}}"#).as_bytes());
        let skips = list(|at| format!(r#""{at}""#));
        records(format!(r#"{{"entries":[{{"name":"a","skips":[{skips}]}}],"schema":"olm.channel"}}"#).as_bytes());
        let lines = (0..20_000).map(|at| format!("{{\"name\":\"{at}\",\"schema\":\"olm.bundle\"}}\n"));
        records(lines.collect::<String>().as_bytes());
        let lines = (0..20_000).map(|at| format!("{{\"schema\":\"{at}\"}}\n"));
        records(lines.collect::<String>().as_bytes());
    }
}
