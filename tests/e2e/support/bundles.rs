//! Bundles of the operator `etcd`, as files and as images.

use testkit::{Image, ImageBuilder, Layer};

use super::catalogs::Files;

/// Returns the files of version 1 or 2. The second one has a CRD with an unsafe change, and reads
/// secrets.
pub(crate) fn files(version: &str) -> Files {
    let (maximum, resource) = if version == "1" {
        (5, "pods")
    } else {
        (3, "secrets")
    };
    let operator = format!(
        "kind: ClusterServiceVersion\napiVersion: operators.coreos.com/v1alpha1\nmetadata: {{name: etcd.v{version}}}\n\
         spec:\n  version: {version}.0.0\n  install: {{spec: {{clusterPermissions: [{{serviceAccountName: etcd, rules: [\
         {{apiGroups: [''], resources: [{resource}], verbs: [get, list, watch]}}]}}]}}}}\n"
    );
    let crd = format!(
        "kind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1\nmetadata: {{name: etcds.example.com}}\n\
         spec: {{versions: [{{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {{properties: \
         {{spec: {{properties: {{size: {{maximum: {maximum}}}}}}}}}}}}}}}]}}\n"
    );
    let annotations =
        "annotations: {operators.operatorframework.io.bundle.package.v1: etcd}\n".to_owned();
    [
        ("manifests/operator.yaml", operator),
        ("manifests/crd.yaml", crd),
        ("metadata/annotations.yaml", annotations),
    ]
    .map(|(path, text)| (path.to_owned(), text.into_bytes()))
    .into()
}

/// Returns the files as an image with the labels of a bundle.
pub(crate) fn image(version: &str) -> Image {
    let layer = files(version)
        .iter()
        .fold(Layer::new(), |layer, (path, text)| layer.file(path, text));
    let folder = |folder: &str| format!("operators.operatorframework.io.bundle.{folder}.v1");
    ImageBuilder::new()
        .layer(layer)
        .label(&folder("manifests"), "manifests/")
        .label(&folder("metadata"), "metadata/")
        .build()
}
