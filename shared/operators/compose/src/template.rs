//! `targetCatalogSourceTemplate` of an ImageSetConfiguration: a file of a CatalogSource, some fields of
//! which the manifest of the catalog gets.

use std::collections::BTreeMap;
use std::path::Path;

use model::text;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_saphyr::Spanned;

use crate::ComposeError;
use crate::error::TEXT_CHARS;
use crate::file::{at_line, read, without_end};

/// Maximum size of a template, in bytes. It lies in the pointer of the catalog, which readers fetch
/// again and again. One with an icon has a few kilobytes.
const TEMPLATE_BYTES_MAX: u64 = 32 << 10;

/// Path of a template as it is written, with its line in the ImageSetConfiguration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TemplateFile {
    pub(crate) path: String,
    pub(crate) line: u64,
}

impl TemplateFile {
    pub(crate) fn new(written: Option<Spanned<String>>) -> Option<Self> {
        let written = written.filter(|written| !written.value.is_empty())?;
        Some(Self {
            line: written.referenced.line(),
            path: written.value,
        })
    }

    /// Reads the template. A relative path starts at `folder`.
    ///
    /// # Errors
    /// Names the line of the ImageSetConfiguration, the file, and the line and field in it.
    pub(crate) fn read(&self, folder: &Path) -> Result<Value, ComposeError> {
        let path = folder.join(&self.path);
        let wrong = |problem: &str| {
            let path = path.display();
            let message = format!("targetCatalogSourceTemplate: {path}: {problem}");
            at_line(self.line, &message)
        };
        let bytes = work::read_file(&path, TEMPLATE_BYTES_MAX)
            .map_err(|error| wrong(&format!("cannot read it: {error}")))?;
        let text = String::from_utf8(bytes).map_err(|error| wrong(&error.to_string()))?;
        parse(&text).map_err(|error| wrong(&error.to_string()))
    }
}

/// Fields of a CatalogSource that oc-mirror v2 reads (855b64a3, `catalogSourceContentFromTemplate`).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CatalogSourceFields {
    api_version: Spanned<String>,
    kind: Spanned<String>,
    metadata: Option<TemplateMetadata>,
    spec: Option<TemplateSpec>,
}

/// Metadata that is kept. Name and namespace are those of the manifest.
#[derive(Default, Deserialize, Serialize)]
struct TemplateMetadata {
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
}

/// Fields of `spec` (operators.coreos.com/v1alpha1). Those that are not serialized say where the
/// catalog is, and are those of the manifest.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TemplateSpec {
    #[serde(skip_serializing)]
    source_type: Option<Spanned<String>>,
    #[serde(skip_serializing)]
    config_map: Option<Spanned<String>>,
    #[serde(rename = "address", skip_serializing)]
    _address: Option<String>,
    #[serde(rename = "image", skip_serializing)]
    _image: Option<String>,
    priority: Option<i64>,
    grpc_pod_config: Option<TemplatePod>,
    update_strategy: Option<TemplateUpdates>,
    secrets: Option<Vec<String>>,
    display_name: Option<String>,
    description: Option<String>,
    publisher: Option<String>,
    icon: Option<TemplateIcon>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TemplatePod {
    node_selector: Option<BTreeMap<String, String>>,
    tolerations: Option<Vec<Map<String, Value>>>,
    affinity: Option<Map<String, Value>>,
    security_context_config: Option<SecurityContextConfig>,
    priority_class_name: Option<String>,
    memory_target: Option<String>,
    /// The manifest has its own: the image has nothing but FBC.
    #[serde(rename = "extractContent", skip_serializing)]
    _extract_content: Option<Map<String, Value>>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum SecurityContextConfig {
    Legacy,
    Restricted,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TemplateUpdates {
    registry_poll: Option<TemplatePoll>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct TemplatePoll {
    interval: Option<String>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct TemplateIcon {
    base64data: String,
    mediatype: String,
}

/// Returns `labels`, `annotations` and `spec` of a template.
fn parse(text: &str) -> Result<Value, ComposeError> {
    let fields: CatalogSourceFields = read(without_end(text))?;
    let metadata = fields.metadata.unwrap_or_default();
    let spec = fields.spec.unwrap_or_default();
    check(
        &fields.api_version,
        "apiVersion",
        "operators.coreos.com/v1alpha1",
    )?;
    check(&fields.kind, "kind", "CatalogSource")?;
    if let Some(source_type) = spec
        .source_type
        .as_ref()
        .filter(|text| !text.value.is_empty())
    {
        check(source_type, "spec.sourceType", "grpc")?;
    }
    if let Some(map) = spec
        .config_map
        .as_ref()
        .filter(|text| !text.value.is_empty())
    {
        let line = map.referenced.line();
        return Err(at_line(
            line,
            "spec.configMap: remove it: the catalog is an image",
        ));
    }
    let mut template = to_value(&metadata)?;
    template["spec"] = to_value(&spec)?;
    drop_nulls(&mut template);
    Ok(template)
}

fn to_value(fields: &impl Serialize) -> Result<Value, ComposeError> {
    serde_json::to_value(fields).map_err(|error| ComposeError::Refused(error.to_string()))
}

/// Checks the value of a field that can have one only.
fn check(found: &Spanned<String>, field: &str, expected: &str) -> Result<(), ComposeError> {
    if found.value == expected {
        return Ok(());
    }
    let line = found.referenced.line();
    let value = text::line(&found.value, TEXT_CHARS);
    let problem =
        format!("{field}: a template of a CatalogSource has {expected}, and not {value:?}");
    Err(at_line(line, &problem))
}

/// Removes fields without a value.
fn drop_nulls(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|_, field| !field.is_null());
        fields.values_mut().for_each(drop_nulls);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HEAD: &str = "apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\n";

    #[test]
    fn template_keeps_what_does_not_say_where_the_catalog_is() {
        let text = "---
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata:
  name: other
  namespace: other
  resourceVersion: '7'
  labels: {team: a}
spec:
  sourceType: grpc
  image: h.example/other:v1
  address: h.example:50051
  priority: -100
  displayName: Ours
  secrets: [pull]
  icon: {base64data: eA==, mediatype: image/png}
  updateStrategy: {registryPoll: {interval: 30m0s}}
  grpcPodConfig:
    securityContextConfig: legacy
    nodeSelector: {kubernetes.io/os: linux}
    tolerations: [{key: infra, operator: Exists}]
    memoryTarget: 64Mi
    extractContent: {cacheDir: /tmp/cache, catalogDir: /configs}
status: {message: ready}
---
";
        let expected = json!({
            "labels": {"team": "a"},
            "spec": {
                "priority": -100,
                "displayName": "Ours",
                "secrets": ["pull"],
                "icon": {"base64data": "eA==", "mediatype": "image/png"},
                "updateStrategy": {"registryPoll": {"interval": "30m0s"}},
                "grpcPodConfig": {
                    "securityContextConfig": "legacy",
                    "nodeSelector": {"kubernetes.io/os": "linux"},
                    "tolerations": [{"key": "infra", "operator": "Exists"}],
                    "memoryTarget": "64Mi",
                },
            },
        });
        assert_eq!(parse(text).unwrap(), expected);
        for text in [
            HEAD,
            &format!("{HEAD}spec:\n"),
            &format!("{HEAD}spec: {{sourceType: ''}}"),
        ] {
            assert_eq!(parse(text).unwrap(), json!({"spec": {}}));
        }
    }

    #[test]
    fn text_that_is_no_template_is_refused_with_line_and_field() {
        for row in "\
apiVersion: v1|kind: CatalogSource => line 1: apiVersion: a template of a CatalogSource has operators.coreos.com/v1alpha1
kind: CatalogSource => apiVersion
HEAD|spec: {sourceType: internal} => line 3: spec.sourceType: a template of a CatalogSource has grpc, and not \"internal\"
HEAD|spec:|  configMap: x => line 4: spec.configMap: remove it
HEAD|spec:|  priority: high => line 4: priority: write a whole number
HEAD|spec:|  prioriti: 1 => line 4: unknown field `prioriti`
HEAD|spec:|  grpcPodConfig: {securityContextConfig: none} => line 4: securityContextConfig: write
HEAD|spec:|  grpcPodConfig:|    affinity: [1] => line 5: affinity: write a mapping
HEAD|metadata: {labels: [a]} => line 3: labels: write a mapping
HEAD|spec: [] => line 3: spec: write a mapping
HEAD|---|HEAD => only single YAML document
[ => line 1:
apiVersion: operators.coreos.com/v1alpha1|kind: ClusterCatalog => line 2: kind: a template of a CatalogSource has CatalogSource"
            .lines()
        {
            let (text, expected) = row.split_once(" => ").unwrap();
            let text = text.replace('|', "\n").replace("HEAD", HEAD.trim_end());
            let error = parse(&text).unwrap_err().to_string();
            assert!(error.contains(expected), "{row}: {error}");
        }
    }

    #[test]
    fn file_that_cannot_be_read_is_named_with_its_line() {
        let file = TemplateFile {
            path: "nowhere.yaml".to_owned(),
            line: 7,
        };
        let error = file.read(Path::new("/nowhere")).unwrap_err().to_string();
        let expected =
            "line 7: targetCatalogSourceTemplate: /nowhere/nowhere.yaml: cannot read it: ";
        assert!(error.starts_with(expected), "{error}");
    }
}
