//! Catalogs as they are: every layout that builders write, with the sizes of the largest real ones,
//! under the default limits.

use model::Outcome;
use publish::SourceLimits;
use serde_json::{Value, json};
use testkit::Layer;

use super::served;
use crate::site::{self, Site, image};

/// Size of the largest documents of real catalogs: bundles with their manifests inside, in bytes.
const LARGEST: usize = 10_000_000;

/// A package of one channel in which each bundle replaces the one before it. Each has `weight`
/// bytes of base64.
fn package(name: &str, bundles: usize, weight: usize) -> Vec<Value> {
    let bundle = |at: usize| format!("{name}.v1.{at}.0");
    let entries: Vec<_> = (0..bundles)
        .map(|at| match at.checked_sub(1) {
            Some(before) => json!({"name": bundle(at), "replaces": bundle(before)}),
            None => json!({"name": bundle(at)}),
        })
        .collect();
    let mut documents = vec![
        json!({"schema": "olm.package", "name": name, "defaultChannel": "stable", "icon": {"base64data": "PHN2Zz4=", "mediatype": "image/svg+xml"}}),
        json!({"schema": "olm.channel", "package": name, "name": "stable", "entries": entries}),
    ];
    documents.extend((0..bundles).map(|at| {
        json!({
            "schema": "olm.bundle", "package": name, "name": bundle(at), "image": format!("quay.io/example/{name}@sha256:{at:064x}"),
            "properties": [
                {"type": "olm.package", "value": {"packageName": name, "version": format!("1.{at}.0")}},
                {"type": "olm.bundle.object", "value": {"data": "QUFB".repeat(weight / 4)}},
            ],
        })
    }));
    documents
}

fn json_stream(documents: &[Value]) -> String {
    documents
        .iter()
        .map(|document| format!("{document:#}\n"))
        .collect()
}

fn yaml_stream(documents: &[Value]) -> String {
    let text = |document| {
        format!(
            "---\n# a comment\n{}",
            serde_saphyr::to_string(document).unwrap()
        )
    };
    documents.iter().map(text).collect()
}

/// A definition of a resource, as deep as the deepest real ones.
fn deep() -> Value {
    let schema = (0..60).fold(
        json!({"type": "string"}),
        |inner, _| json!({"type": "object", "properties": {"spec": inner}}),
    );
    json!({"schema": "example.com.crd", "package": "deep", "name": "deep", "openAPIV3Schema": schema})
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_catalog_is_published_under_the_default_limits() {
    let limits = SourceLimits::default();
    let images = site::images(&limits);
    let ten: Vec<_> = (0..10)
        .map(|at| package(&format!("p{at}"), 3, 300))
        .collect();
    let folders = |file: &str, text: fn(&[Value]) -> String| {
        ten.iter()
            .enumerate()
            .fold(Layer::new(), |layer, (at, documents)| {
                layer.file(&format!("configs/p{at}/{file}"), text(documents))
            })
    };
    let single = ten
        .iter()
        .flatten()
        .enumerate()
        .fold(Layer::new(), |layer, (at, document)| {
            layer.file(&format!("configs/all/{at:03}.json"), document.to_string())
        });
    let many: Vec<_> = (0..400)
        .flat_map(|at| package(&format!("m{at}"), 17, 100))
        .collect();
    let anchors =
        "---\nschema: olm.package\nname: anchors\nx: &x {a: [1, 2, 3]}\ny: *x\nz: {<<: *x, b: 1}\n";
    let file = |name: &str, text: String| Layer::new().file(&format!("configs/{name}"), text);
    let largest = json_stream(&package("large", 2, LARGEST));
    let large_yaml = yaml_stream(&package("large", 1, LARGEST / 4));
    let deep = json_stream(&[package("deep", 1, 4), vec![deep()]].concat());
    let left_out = file(".indexignore", "**/*.md\n".to_owned())
        .file("configs/p/README.md", "{")
        .file("configs/p/catalog.json", json_stream(&ten[0]));
    let kinds = [
        (
            "folders of packages, JSON",
            folders("catalog.json", json_stream),
            10,
        ),
        (
            "folders of packages, YAML",
            folders("catalog.yaml", yaml_stream),
            10,
        ),
        ("a file for each document", single, 10),
        (
            "one file, JSON",
            file("index.json", json_stream(&ten.concat())),
            10,
        ),
        (
            "one file, YAML",
            file("index.yaml", yaml_stream(&ten.concat())),
            10,
        ),
        ("6,800 bundles", file("index.json", json_stream(&many)), 400),
        ("the largest document", file("large.json", largest), 1),
        (
            "a large document in YAML",
            file("large.yaml", large_yaml),
            1,
        ),
        ("deep schemas", file("deep.json", deep), 1),
        (
            "anchors and merges",
            file("anchors.yaml", anchors.to_owned()),
            1,
        ),
        ("a file that is left out", left_out, 1),
    ];
    for (kind, layer, packages) in kinds {
        let site = Site::registry(images.clone(), site::settings(&limits)).await;
        site.push(&image([layer]));
        let report = site.poll().await;
        assert_eq!(
            report.outcome,
            Outcome::Published,
            "{kind}: {:?}",
            report.error_text()
        );
        assert_eq!(served(&site).await.split(' ').count(), packages, "{kind}");
    }
}
