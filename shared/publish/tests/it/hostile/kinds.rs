//! Catalogs as they are: every layout that builders write, with the sizes of the largest real ones, under the default limits.

use std::fmt::Write;

use catalog_mirror_publish::SourceLimits;
use model::Outcome;
use serde_json::{Value, json};
use testkit::Layer;

use super::{
    row,
    site::{self, Site},
};

/// Size of the largest documents of real catalogs: bundles with their manifests inside, in bytes.
const LARGEST: usize = 10_000_000;

/// A package of one channel in which each bundle replaces the one before it. Each has `weight` bytes of base64.
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
    documents.iter().map(|document| format!("{document:#}\n")).collect()
}

fn yaml_stream(documents: &[Value]) -> String {
    let texts = documents
        .iter()
        .map(|document| serde_saphyr::to_string(document).unwrap());
    texts.fold(String::new(), |mut all, text| {
        write!(all, "---\n# a comment\n{text}").unwrap();
        all
    })
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
    let ten: Vec<_> = (0..10).map(|at| package(&format!("p{at}"), 3, 300)).collect();
    let folders = |file: &str, text: fn(&[Value]) -> String| {
        ten.iter().enumerate().fold(Layer::new(), |layer, (at, documents)| {
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
    let many: Vec<_> = (0..400).flat_map(|at| package(&format!("m{at}"), 17, 100)).collect();
    let anchors = "---\nschema: olm.package\nname: anchors\nx: &x {a: [1, 2, 3]}\ny: *x\nz: {<<: *x, b: 1}\n";
    let kinds = [
        (
            "a folder for each package, JSON",
            folders("catalog.json", json_stream),
            10,
        ),
        (
            "a folder for each package, YAML",
            folders("catalog.yaml", yaml_stream),
            10,
        ),
        ("a file for each document", single, 10),
        (
            "one file, JSON",
            Layer::new().file("configs/index.json", json_stream(&ten.concat())),
            10,
        ),
        (
            "one file, YAML",
            Layer::new().file("configs/index.yaml", yaml_stream(&ten.concat())),
            10,
        ),
        (
            "400 packages with 6,800 bundles",
            Layer::new().file("configs/index.json", json_stream(&many)),
            400,
        ),
        (
            "the largest document",
            Layer::new().file("configs/large.json", json_stream(&package("large", 2, LARGEST))),
            1,
        ),
        (
            "a large document in YAML",
            Layer::new().file("configs/large.yaml", yaml_stream(&package("large", 1, LARGEST / 4))),
            1,
        ),
        (
            "deep schemas",
            Layer::new().file(
                "configs/deep.json",
                json_stream(&[package("deep", 1, 4), vec![deep()]].concat()),
            ),
            1,
        ),
        (
            "anchors and merges",
            Layer::new().file("configs/anchors.yaml", anchors),
            1,
        ),
        (
            "a file that is left out",
            Layer::new()
                .file("configs/.indexignore", "**/*.md\n")
                .file("configs/p/README.md", "{")
                .file("configs/p/catalog.json", json_stream(&ten[0])),
            1,
        ),
    ];
    for (kind, layer, packages) in kinds {
        let site = Site::start(images.clone(), &limits).await;
        site.push(&row::image([layer]));
        // Forced: the package that was there before is gone.
        let report = site.poll(true).await;
        assert_eq!(report.outcome, Outcome::Published, "{kind}: {:?}", report.error_text());
        assert_eq!(site.served().await.split(' ').count(), packages, "{kind}");
    }
}
