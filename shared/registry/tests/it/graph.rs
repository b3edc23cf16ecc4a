use bytes::Bytes;
use catalog_mirror_registry::{
    GRAPH_VERSION, Graph, GraphBuilder, ListedBundle, PackageRecord, PackageRecorder, RegistryError,
    api::{CustomSchemasRequest, GetBundleRequest, ProvidersRequest},
};
use model::Sha256;
use proptest::prelude::*;
use rstest::rstest;

const LIMIT: usize = 1 << 20;

fn record(name: &str) -> (PackageRecord, Sha256) {
    let lines = format!(
        r#"{{"defaultChannel":"c","name":"{name}","schema":"olm.package"}}
{{"entries":[{{"name":"b"}}],"name":"c","package":"{name}","schema":"olm.channel"}}
{{"image":"x/y","name":"b","package":"{name}","properties":[{{"type":"olm.package","value":{{"packageName":"{name}","version":"1.0.0"}}}},{{"type":"olm.gvk","value":{{"group":"g","kind":"K","version":"v"}}}}],"schema":"olm.bundle"}}
{{"name":"x","package":"{name}","schema":"custom"}}
"#
    );
    let hash = Sha256::of(lines.as_bytes());
    let mut recorder = PackageRecorder::new(name);
    recorder.push(lines.as_bytes());
    (recorder.finish(hash).unwrap(), hash)
}

fn graph_of(names: &[&str]) -> Vec<u8> {
    let mut builder = GraphBuilder::default();
    for name in names {
        builder.push(&record(name).0);
    }
    builder.finish()
}

fn parse(bytes: Vec<u8>) -> Result<Graph, RegistryError> {
    Graph::parse(bytes.into(), LIMIT)
}

fn names(graph: &Graph) -> Vec<String> {
    graph.list_packages().map(|name| name.unwrap().name).collect()
}

#[test]
fn graph_without_records_has_no_packages() {
    assert!(names(&parse(graph_of(&[])).unwrap()).is_empty());
}

#[test]
fn packages_are_sorted_by_name_whatever_their_order_was() {
    let graph = parse(graph_of(&["b", "c", "a"])).unwrap();
    assert_eq!(names(&graph), ["a", "b", "c"]);
    assert_eq!(graph.get_package("c").unwrap().channels[0].csv_name, "b");
}

#[test]
fn record_of_equal_lines_makes_the_same_graph() {
    let first = parse(graph_of(&["a", "b"])).unwrap();
    let mut builder = GraphBuilder::new();
    for name in ["a", "b"] {
        let (record, hash) = record(name);
        assert_eq!(record.lines().unwrap(), hash);
        builder.push_raw(&first.record_of(name, hash).unwrap());
    }
    assert_eq!(builder.finish(), graph_of(&["a", "b"]));
}

#[test]
fn record_of_other_lines_is_not_found() {
    let graph = parse(graph_of(&["a", "b"])).unwrap();
    assert_eq!(graph.record_of("a", record("b").1), None);
    assert_eq!(graph.record_of("c", record("a").1), None);
}

#[test]
fn graph_of_exactly_the_limit_is_read_and_of_one_byte_more_refused() {
    let bytes = graph_of(&["a"]);
    let size = bytes.len();
    assert!(Graph::parse(bytes.clone().into(), size).is_ok());
    let error = Graph::parse(bytes.into(), size - 1).unwrap_err();
    assert_eq!(
        error,
        RegistryError::TooLarge {
            bytes: size,
            limit: size - 1
        }
    );
}

#[test]
fn graph_of_another_version_says_what_to_do() {
    let mut bytes = graph_of(&["a"]);
    bytes[1] = 77;
    let error = parse(bytes).unwrap_err();
    assert_eq!(error, RegistryError::Version { found: 77 });
    assert_eq!(
        error.to_string(),
        format!(
            "the graph has version 77, and this program reads {GRAPH_VERSION}: publish the catalog again with `poll --force`, or \
             copy it again with `sync`"
        )
    );
}

#[rstest]
#[case::nothing(vec![])]
#[case::no_version(graph_of(&["a"])[2..].to_vec())]
#[case::cut(graph_of(&["a"])[..60].to_vec())]
#[case::twice(graph_of(&["a", "a"]))]
#[case::other_field([graph_of(&["a"]), vec![0x18, 1]].concat())]
#[case::empty_record([graph_of(&["a"]), vec![0x12, 0]].concat())]
fn damaged_graph_is_refused(#[case] bytes: Vec<u8>) {
    assert!(matches!(parse(bytes), Err(RegistryError::Damaged(_))));
}

/// Asks for everything, and ignores what comes.
fn ask_all(graph: &Graph) {
    let name = |name: Result<_, RegistryError>| name.map(|name: catalog_mirror_registry::api::PackageName| name.name);
    let names: Vec<String> = graph.list_packages().filter_map(|found| name(found).ok()).collect();
    for name in names {
        let _ = graph.get_package(&name);
        let custom = CustomSchemasRequest {
            schema: "custom".to_owned(),
            package_name: name,
        };
        let _ = graph.list_custom_schemas(&custom);
    }
    for bundle in graph.list_bundles() {
        let Ok(ListedBundle::Complete(bundle)) = bundle else {
            continue;
        };
        let request = GetBundleRequest {
            pkg_name: bundle.package_name,
            channel_name: bundle.channel_name,
            csv_name: bundle.csv_name,
        };
        let Ok(query) = graph.get_bundle(&request) else {
            continue;
        };
        if let Ok(mut builder) = graph.contents_of(&query, b"", 1 << 20) {
            let _ = builder.push(&[b' '; 1000]);
            let _ = builder.finish().and_then(|contents| contents.content(&query));
        }
    }
    let api = ProvidersRequest::default();
    let _ = graph.get_channel_entries_that_replace("").map(Iterator::count);
    let _ = graph.get_channel_entries_that_provide(&api).map(Iterator::count);
    let _ = graph.get_latest_channel_entries_that_provide(&api).map(Iterator::count);
    let _ = graph.get_default_bundle_that_provides(&api);
}

proptest! {
    #[test]
    fn parse_accepts_any_bytes_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let versioned = [&graph_of(&[])[..], &bytes].concat();
        for bytes in [bytes, versioned] {
            if let Ok(graph) = Graph::parse(Bytes::from(bytes), LIMIT) {
                ask_all(&graph);
            }
        }
    }

    #[test]
    fn changed_bytes_of_a_graph_never_panic(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut bytes = graph_of(&["a", "b"]);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if cut {
            bytes.remove(at);
        }
        if let Ok(graph) = Graph::parse(Bytes::from(bytes), LIMIT) {
            ask_all(&graph);
        }
    }
}
