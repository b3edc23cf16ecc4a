use catalog_mirror_registry::{
    BundleQuery, Graph, GraphBuilder, PackageRecorder, RegistryError, api::GetBundleRequest,
};
use model::Sha256;
use rstest::rstest;
use serde_json::{Value, json};

use crate::replies::complete;

/// Returns the lines of a package with one bundle for each description, and its graph.
fn package(descriptions: &[String]) -> (Vec<u8>, Graph) {
    let names: Vec<String> = (0..descriptions.len()).map(|at| format!("b{at}")).collect();
    let entries: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
    let mut entries = entries;
    for (at, entry) in entries.iter_mut().enumerate().skip(1) {
        entry["replaces"] = json!(names[at - 1]);
    }
    let icon = json!({ "base64data": "aWNvbg==", "mediatype": "image/svg+xml" });
    let mut metas = vec![
        json!({ "schema": "olm.package", "name": "p", "defaultChannel": "c", "icon": icon }),
        json!({ "schema": "olm.channel", "package": "p", "name": "c", "entries": entries }),
    ];
    for (at, description) in descriptions.iter().enumerate() {
        let version = json!({ "packageName": "p", "version": format!("1.0.{at}") });
        metas.push(
            json!({ "schema": "olm.bundle", "package": "p", "name": names[at], "image": "i", "properties": [
                { "type": "olm.package", "value": version },
                { "type": "olm.csv.metadata", "value": { "description": description, "displayName": "P" } },
            ]}),
        );
    }
    let lines: String = metas.iter().map(|meta| format!("{meta}\n")).collect();
    let mut recorder = PackageRecorder::new("p");
    recorder.push(lines.as_bytes());
    let mut builder = GraphBuilder::new();
    builder.push(&recorder.finish(Sha256::of(lines.as_bytes())).unwrap());
    let graph = Graph::parse(builder.finish().into(), 1 << 30).unwrap();
    (lines.into_bytes(), graph)
}

fn query(graph: &Graph, at: usize) -> BundleQuery {
    let request = GetBundleRequest {
        pkg_name: "p".to_owned(),
        channel_name: "c".to_owned(),
        csv_name: format!("b{at}"),
    };
    graph.get_bundle(&request).unwrap()
}

/// Returns a text that does not compress well.
fn text(length: usize) -> String {
    let words = (0_u64..).map(|at| format!("{:x} ", at.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    words
        .flat_map(String::into_bytes)
        .take(length)
        .map(char::from)
        .collect()
}

#[rstest]
#[case::in_one_frame(&[100, 200])]
#[case::each_in_its_own(&[40 << 10, 50 << 10])]
#[case::in_several(&[300 << 10, 10, 700 << 10])]
#[case::at_the_limit_of_a_frame(&[(128 << 10) - 400, (128 << 10) - 300, 128 << 10])]
fn content_is_complete_in_any_number_of_frames(#[case] lengths: &[usize]) {
    let descriptions: Vec<String> = lengths.iter().map(|length| text(*length)).collect();
    let (lines, graph) = package(&descriptions);
    for (at, description) in descriptions.iter().enumerate() {
        let bundle = complete(&graph, &lines, query(&graph, at)).unwrap();
        let csv: Value = serde_json::from_str(&bundle.csv_json).unwrap();
        assert_eq!(csv["spec"]["description"], json!(description));
        assert_eq!(csv["spec"]["icon"][0]["base64data"], "aWNvbg==");
        assert_eq!(csv["spec"]["version"], format!("1.0.{at}"));
        assert_eq!(bundle.object, [bundle.csv_json]);
        assert_eq!(bundle.bundle_path, "i");
    }
}

#[test]
fn contents_above_their_limit_are_refused() {
    let (lines, graph) = package(&[text(100 << 10), text(100 << 10)]);
    let query = query(&graph, 0);
    let made = |limit| {
        let mut builder = graph.contents_of(&query, b"{}", limit)?;
        builder.push(&lines)?;
        builder.finish()
    };
    let memory = made(usize::MAX).unwrap().memory();
    assert!(memory < lines.len(), "{memory} bytes for {}", lines.len());
    let package = "p".to_owned();
    let error = made(memory - 1).unwrap_err();
    assert_eq!(
        error,
        RegistryError::ContentsTooLarge {
            package,
            limit: memory - 1
        }
    );
}

#[test]
fn contents_need_the_lines_of_all_bundles() {
    let (lines, graph) = package(&[text(10)]);
    let mut builder = graph.contents_of(&query(&graph, 0), b"{}", 1 << 20).unwrap();
    builder.push(&lines[..lines.len() - 1]).unwrap();
    assert!(matches!(builder.finish(), Err(RegistryError::Damaged(_))));
}
