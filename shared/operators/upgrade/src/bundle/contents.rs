//! All that a bundle brings to a cluster.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::Bounds;
use crate::bundle::BundleError;
use crate::bundle::crd::Crd;
use crate::bundle::documents::{BundleFiles, DocumentField};
use crate::bundle::permissions::{self, Permissions};

/// Largest object that etcd takes, in bytes (`--max-request-bytes`, "1.5 MiB").
const ETCD_BYTES: usize = 3 << 19;

const OPERATOR: &str = "ClusterServiceVersion";
const WEBHOOK: &str = "{type} {generateName} at {webhookPath}, failure policy {failurePolicy}";
const API: &str = "{group}/{version} {kind}";
const REQUIRED_API: &str = "API {group}/{version} {kind}";

/// Kinds of facts as JSON names them, each with its title for people.
pub(crate) const FACT_KINDS: [(&str, &str); 12] = [
    ("crds", "CustomResourceDefinitions"),
    ("crdVersions", "Versions of CustomResourceDefinitions"),
    ("permissions", "Permissions"),
    ("images", "Images"),
    ("webhooks", "Webhooks"),
    ("installModes", "Install modes"),
    ("minKubeVersion", "Minimum version of Kubernetes"),
    ("ownedApis", "APIs owned"),
    ("requiredApis", "APIs required"),
    ("dependencies", "Dependencies"),
    ("objects", "Other objects"),
    ("size", "Size"),
];

/// Texts by their kind.
pub(crate) type BundleFacts = BTreeMap<&'static str, BTreeSet<String>>;

/// Content of a bundle. As JSON, and as text for people, it is all that the bundle brings.
#[derive(Debug, Serialize)]
pub struct Contents {
    #[serde(flatten)]
    pub(crate) identity: BundleIdentity,
    #[serde(flatten)]
    pub(crate) facts: BundleFacts,
    #[serde(skip)]
    pub(crate) crds: BTreeMap<String, Crd>,
    #[serde(skip)]
    pub(crate) permissions: Permissions,
}

/// Name and version of a bundle, as its ClusterServiceVersion has them.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct BundleIdentity {
    pub(crate) name: String,
    /// Empty if there is none.
    pub(crate) version: String,
}

impl Contents {
    /// Reads the manifests and the metadata of a bundle.
    ///
    /// # Errors
    /// Files that Kubernetes or OLM would refuse, and more than the limits.
    pub fn read(files: &BundleFiles, bounds: &Bounds) -> Result<Self, BundleError> {
        bounds.budget.charge_bytes(files.bytes)?;
        let objects = files.documents(0);
        let metadata = files.documents(1);
        let mut definitions: BTreeMap<(&str, &str), &DocumentField<'_>> = BTreeMap::new();
        for object in &objects {
            let kind = object.text("kind")?;
            let mut name = object.text("metadata.name")?;
            if kind == OPERATOR {
                // One for all names.
                name = "";
            }
            if let Some(other) = definitions.insert((kind, name), object) {
                let text = format!(
                    "{} and {} are both the {kind} {name}: a bundle has one",
                    other.document.file, object.document.file
                );
                return Err(BundleError::refused(&text));
            }
        }
        let Some(operator) = definitions.remove(&(OPERATOR, "")) else {
            return Err(BundleError::refused(&format!("it has no {OPERATOR}")));
        };
        let permissions = permissions::read(operator, &objects, bounds)?;
        let mut facts = FactList::default();
        facts.add_operator(&operator.at("spec")?)?;
        for document in &metadata {
            facts.add_metadata(document)?;
        }
        let mut crds = BTreeMap::new();
        for ((kind, name), object) in definitions {
            if kind == "CustomResourceDefinition" {
                let crd = Crd::read(object)?;
                for version in crd.version_texts() {
                    let text = format!("{name} {version}");
                    bounds.answer(text.len())?;
                    facts.add("crdVersions", text);
                }
                facts.add("crds", name.to_owned());
                crds.insert(name.to_owned(), crd);
            } else {
                facts.add("objects", format!("{kind} {name}"));
            }
        }
        facts.add("size", size_text(&objects));
        for sentence in permissions::sentences(&permissions, bounds)? {
            facts.add("permissions", sentence);
        }
        Ok(Self {
            identity: BundleIdentity {
                name: operator.text("metadata.name")?.to_owned(),
                version: operator.text("spec.version")?.to_owned(),
            },
            facts: facts.0,
            crds,
            permissions,
        })
    }
}

/// Returns the sizes of objects in words; empty without objects.
fn size_text(objects: &[DocumentField<'_>]) -> String {
    let documents = objects.iter().map(|object| object.document);
    let Some(largest) = documents.clone().max_by_key(|document| document.bytes) else {
        return String::new();
    };
    let all: usize = documents.map(|document| document.bytes).sum();
    format!(
        "{all} bytes; the largest is {} with {}, {} % of what etcd takes",
        largest.file,
        largest.bytes,
        largest.bytes * 100 / ETCD_BYTES
    )
}

/// Facts that were found so far.
struct FactList(BundleFacts);

impl Default for FactList {
    fn default() -> Self {
        Self(FACT_KINDS.map(|(kind, _)| (kind, BTreeSet::new())).into())
    }
}

impl FactList {
    /// Adds a fact, unless it is a field without a value.
    fn add(&mut self, kind: &'static str, text: String) {
        if !text.is_empty() {
            self.0.entry(kind).or_default().insert(text);
        }
    }

    /// Adds a sentence about each field at a path with lists in it.
    fn add_all(
        &mut self,
        kind: &'static str,
        field: &DocumentField<'_>,
        path: &str,
        sentence: &str,
    ) -> Result<(), BundleError> {
        for fact in field.all(path)? {
            self.add(kind, fact.sentence(sentence)?);
        }
        Ok(())
    }

    /// Adds what the specification of a ClusterServiceVersion says.
    fn add_operator(&mut self, spec: &DocumentField<'_>) -> Result<(), BundleError> {
        self.add_all("minKubeVersion", spec, "minKubeVersion", "{}")?;
        self.add_all("webhooks", spec, "webhookdefinitions[]", WEBHOOK)?;
        self.add_all("images", spec, "relatedImages[]", "{image}")?;
        for pod in spec.all("install.spec.deployments[].spec.template.spec")? {
            self.add_all("images", &pod, "initContainers[]", "{image}")?;
            self.add_all("images", &pod, "containers[]", "{image}")?;
        }
        for mode in spec.all("installModes[]")? {
            if mode.value["supported"] == true {
                self.add_all("installModes", &mode, "type", "{}")?;
            }
        }
        for (kind, list) in [("ownedApis", "owned[]"), ("requiredApis", "required[]")] {
            self.add_all(kind, &spec.at("apiservicedefinitions")?, list, API)?;
            for api in spec.at("customresourcedefinitions")?.all(list)? {
                // Its name is a plural, a dot and its group.
                let name = api.text("name")?;
                let group = name.split_once('.').map_or(name, |(_, group)| group);
                self.add_all(kind, &api, "", &API.replace("{group}", group))?;
            }
        }
        Ok(())
    }

    /// Adds what a document of the metadata requires.
    fn add_metadata(&mut self, document: &DocumentField<'_>) -> Result<(), BundleError> {
        for list in ["dependencies[]", "properties[]"] {
            for entry in document.all(list)? {
                // Properties of types without an end tell what the bundle provides.
                let sentence = match (list, entry.text("type")?) {
                    ("dependencies[]", "olm.package") => "package {packageName} {version}",
                    ("properties[]", "olm.package.required") => {
                        "package {packageName} {versionRange}"
                    }
                    ("dependencies[]", "olm.gvk") | ("properties[]", "olm.gvk.required") => {
                        REQUIRED_API
                    }
                    (_, "olm.constraint") => "constraint {}",
                    _ => continue,
                };
                self.add_all("dependencies", &entry, "value", sentence)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read};
    use std::iter;

    use oci::FileSink;

    use super::*;
    use crate::bundle::documents::{DOCUMENT_BYTES_MAX, FILES_BYTES_MAX};
    use crate::bundle::{CatalogBundle, CatalogBundles};

    const OPERATOR: &str =
        "kind: ClusterServiceVersion\nmetadata: {name: a.v1}\nspec: {version: 1.0.0}\n";
    const CRD: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.x}\n";

    fn read(manifests: &[(&str, &str)], metadata: &[(&str, &str)]) -> Result<Contents, String> {
        let mut files = BundleFiles {
            folders: ["manifests", "metadata"].map(ToOwned::to_owned).into(),
            ..BundleFiles::default()
        };
        for (folder, contents) in files.folders.clone().iter().zip([manifests, metadata]) {
            for (file, content) in contents {
                let path = format!("{folder}/{file}");
                let added = files.file(&path, 0, &mut content.as_bytes());
                added.map_err(|error| model::text::chain(&error))?;
            }
        }
        Contents::read(&files, &Bounds::default()).map_err(|error| model::text::chain(&error))
    }

    fn crd_with(schema: &str) -> String {
        format!(
            "{CRD}spec: {{versions: [{{name: v1, storage: true, schema: {{openAPIV3Schema: {schema}}}}}]}}\n"
        )
    }

    /// Files with their content, `|` between, and a part of the error.
    const BAD_BUNDLES: &str = "\
c.md x => it has no ClusterServiceVersion
b.txt OPERATOR|c/a.yaml OPERATOR => it has no ClusterServiceVersion
a.yaml OPERATOR|b.yml OPERATOR => manifests/a.yaml and manifests/b.yml are both
a.yaml TWICE => manifests/a.yaml and manifests/a.yaml, document 2 are both
a.yaml kind: [|b.yaml OPERATOR => manifests/a.yaml: document 1
a.yaml BOMB => manifests/a.yaml: document 1
a.json NUMBER => manifests/a.json: spec.version must be a text
a.yaml MODES => manifests/a.yaml: spec.installModes must be a list
a.yaml OPERATOR|b.yaml OLD => manifests/b.yaml: apiVersion must be apiextensions.k8s.io/v1
a.yaml OPERATOR|b.yaml CRD|c.yaml CRD => manifests/b.yaml and manifests/c.yaml are both the CustomResourceDefinition as.x
a.yaml OPERATOR|b.yaml REFERENCES => manifests/b.yaml: spec.versions[0].schema.openAPIV3Schema has a $ref at ^.a, which Kubernetes \
    forbids
a.yaml OPERATOR|b.yaml DEEP => exceeds the limit depth of 120
a.yaml OPERATOR|b.yaml DEEPER => document 1, line 4: invalid YAML: recursion limit";

    #[test]
    fn read_of_bad_bundle_names_file_and_field() {
        let deep = |levels: usize| format!("{}{{}}{}", "{not: ".repeat(levels), "}".repeat(levels));
        let bomb: String = iter::once("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned())
            .chain((1..9).map(|at| {
                format!(
                    "a{at}: &a{at} [{}]\n",
                    vec![format!("*a{}", at - 1); 10].join(", ")
                )
            }))
            .collect();
        let content = |name: &str| match name {
            "OPERATOR" => OPERATOR.to_owned(),
            "TWICE" => format!("{OPERATOR}---\n{OPERATOR}"),
            "NUMBER" => OPERATOR.replace("1.0.0", "1"),
            "MODES" => OPERATOR.replace("version: 1.0.0", "installModes: {}"),
            "CRD" => CRD.to_owned(),
            "OLD" => CRD.replace("io/v1", "io/v1beta1"),
            "REFERENCES" => crd_with("{properties: {a: {$ref: b}}}"),
            "DEEP" => crd_with(&deep(115)),
            "DEEPER" => crd_with(&deep(1000)),
            "BOMB" => bomb.clone(),
            other => other.to_owned(),
        };
        for row in BAD_BUNDLES.lines() {
            let (files, says) = row.split_once(" => ").unwrap();
            let files = files.split('|').map(|file| file.split_once(' ').unwrap());
            let files: Vec<_> = files.map(|(path, name)| (path, content(name))).collect();
            let files: Vec<_> = files
                .iter()
                .map(|(path, content)| (*path, content.as_str()))
                .collect();
            let error = read(&files, &[]).err().unwrap_or_default();
            assert!(error.contains(says), "{row}: {error}");
        }
        // Five levels are around the schema.
        assert!(
            read(
                &[("a.yaml", OPERATOR), ("b.yaml", &crd_with(&deep(114)))],
                &[]
            )
            .is_ok()
        );
    }

    #[test]
    fn files_refuse_documents_beyond_limits() {
        let add = |path: &str, documents: usize, bytes: usize| {
            let document = format!("{{\"a\":\"{}\"}}\n", "b".repeat(bytes - 9));
            let documents = io::repeat(b' ')
                .take(1)
                .chain(io::Cursor::new(document.repeat(documents)));
            let added = BundleFiles::default().file(path, 0, &mut { documents });
            added.map_err(|error| model::text::chain(&error))
        };
        let count = FILES_BYTES_MAX / DOCUMENT_BYTES_MAX;
        assert_eq!(add("a.yaml", count, DOCUMENT_BYTES_MAX), Ok(()));
        assert_eq!(add("a.txt", count + 1, DOCUMENT_BYTES_MAX), Ok(()));
        let error = add("a.json", 1, DOCUMENT_BYTES_MAX + 2).unwrap_err();
        assert!(error.contains("a.json: document 1"), "{error}");
        let error = add("a.yaml", count + 1, DOCUMENT_BYTES_MAX).unwrap_err();
        assert!(
            error.contains("the files up to a.yaml exceed the limit of"),
            "{error}"
        );
    }

    #[test]
    fn link_is_read_as_file_that_it_leads_to() {
        let mut files = BundleFiles {
            folders: vec!["manifests".to_owned()],
            ..BundleFiles::default()
        };
        let mut operator = OPERATOR.as_bytes();
        files
            .file("manifests/..data/a.yaml", 0, &mut operator)
            .unwrap();
        files
            .link("manifests/a.yaml", "manifests/..data/a.yaml")
            .unwrap();
        files.link("manifests/icon.svg", "manifests/a.svg").unwrap();
        let contents = Contents::read(&files, &Bounds::default())
            .unwrap()
            .to_string();
        assert!(contents.starts_with("a.v1 (version 1.0.0)"));
        let mut large = BundleFiles::default();
        let document = format!("{{\"a\":\"{}\"}}\n", "b".repeat(DOCUMENT_BYTES_MAX - 9));
        large.file("a.yaml", 0, &mut document.as_bytes()).unwrap();
        for number in 1..FILES_BYTES_MAX / DOCUMENT_BYTES_MAX {
            large.link(&format!("{number}.yaml"), "a.yaml").unwrap();
        }
        let error = large.link("z.yaml", "a.yaml").unwrap_err().to_string();
        assert!(
            error.starts_with("the files up to z.yaml exceed"),
            "{error}"
        );
        let error = files
            .link("manifests/b.yaml", "b.txt")
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "manifests/b.yaml is a link to b.txt, which is not read"
        );
    }

    #[test]
    fn facts_are_those_of_operator_and_metadata() {
        let operator = r#"{"kind": "ClusterServiceVersion", "metadata": {"name": "a.v2"}, "spec": {
            "version": "2.0.0", "minKubeVersion": "1.30.0",
            "installModes": [{"type": "AllNamespaces", "supported": true}, {"type": "OwnNamespace", "supported": false}],
            "relatedImages": [{"name": "x", "image": "x:1"}],
            "webhookdefinitions": [{"type": "ConversionWebhook", "generateName": "c", "webhookPath": "/convert", "failurePolicy": "Fail"}],
            "customresourcedefinitions": {"owned": [{"name": "as.x", "version": "v1", "kind": "A"}]},
            "apiservicedefinitions": {"required": [{"name": "b", "group": "y", "version": "v1", "kind": "B"}]},
            "install": {"spec": {"deployments": [{"spec": {"template": {"spec": {"containers": [{"image": "y:2"}]}}}}]}}}}"#;
        let new = read(
            &[("a.json", operator), ("b.yaml", &crd_with("{type: object}")), ("c.yaml", "kind: Service\nmetadata: {name: s}\n")],
            &[
                ("annotations.yaml", "annotations: {}\n"),
                ("dependencies.yaml", "dependencies: [{type: olm.package, value: {packageName: p, version: '>1'}}]\n"),
                ("properties.yaml", "properties: [{type: olm.gvk.required, value: {group: g, version: v1, kind: K}}, {type: olm.gvk}]\n"),
            ],
        )
        .unwrap();
        assert_eq!(
            new.to_string(),
            "a.v2 (version 2.0.0)\n\
             CustomResourceDefinitions\n  as.x\n\
             Versions of CustomResourceDefinitions\n  as.x v1 (stored)\n\
             Images\n  x:1\n  y:2\n\
             Webhooks\n  ConversionWebhook c at /convert, failure policy Fail\n\
             Install modes\n  AllNamespaces\n\
             Minimum version of Kubernetes\n  1.30.0\n\
             APIs owned\n  x/v1 A\n\
             APIs required\n  y/v1 B\n\
             Dependencies\n  API g/v1 K\n  package p >1\n\
             Other objects\n  Service s\n\
             Size\n  894 bytes; the largest is manifests/a.json with 651, 0 % of what etcd takes\n"
        );
        let crd = crd_with("{type: object, nullable: true}");
        let old = read(&[("a.yaml", OPERATOR), ("b.yaml", &crd)], &[]).unwrap();
        let bounds = Bounds::default();
        let difference = old.difference(&new, &bounds).unwrap();
        let text = difference.to_string();
        let crd = "Unsafe changes\n  as.x v1 ^ nullable: nullable: true -> none\nCustomResourceDefinitions\n  ~ as.x\n";
        let images = "Images\n  + x:1\n  + y:2\n";
        assert!(text.contains(crd) && text.contains(images), "{text}");
        assert_eq!(difference.unsafe_changes.len(), 1);
        assert!(
            new.difference(&new, &bounds)
                .unwrap()
                .to_string()
                .lines()
                .count()
                == 1
        );
        let json = serde_json::to_value(&difference).unwrap();
        assert_eq!(json["unsafe"][0]["rule"], "nullable");
        assert_eq!(json["images"]["removed"], serde_json::json!([]));
    }

    #[test]
    fn catalog_bundle_has_objects_or_image() {
        let line = |data: &str, properties: &str| {
            format!(
                r#"{{"image":"x@y","name":"a.v1","properties":[{{"type":"olm.bundle.object","value":{{"data":"{data}"}}}}{properties}],"schema":"olm.bundle"}}"#
            )
        };
        let required = r#",{"type":"olm.package","value":{"version":"1.0.0"}},{"type":"olm.package.required","value":{"packageName":"p","versionRange":"1"}}"#;
        // `OPERATOR` in base64.
        let data = "a2luZDogQ2x1c3RlclNlcnZpY2VWZXJzaW9uCm1ldGFkYXRhOiB7bmFtZTogYS52MX0Kc3BlYzoge3ZlcnNpb246IDEuMC4wfQo=";
        let find = |line: &str, wanted| {
            let lines = format!("{{}}\n{line}\n");
            CatalogBundles::new(lines.into_bytes()).find(wanted)
        };
        let Some(CatalogBundle::Files(files)) = find(&line(data, required), "1.0.0").unwrap()
        else {
            panic!("it has objects");
        };
        let contents = Contents::read(&files, &Bounds::default()).unwrap();
        let text = contents.to_string();
        assert!(
            text.contains("the largest is olm.bundle.object/0000 with"),
            "{text}"
        );
        assert!(contents.facts["dependencies"].iter().eq(["package p 1"]));
        let error = find(&line("?", ""), "a.v1").unwrap_err().to_string();
        assert!(
            error.starts_with("the catalog: properties[0].value.data is no base64"),
            "{error}"
        );
        let bundle = find(
            r#"{"name":"a.v1","image":"x@y","schema":"olm.bundle"}"#,
            "a.v1",
        );
        assert!(matches!(bundle.unwrap(), Some(CatalogBundle::Image(image)) if image == "x@y"));
        assert!(find(&line(data, required), "2.0.0").unwrap().is_none());
    }
}
