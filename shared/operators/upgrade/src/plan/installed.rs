//! Operators that a cluster has: from what kubectl prints, or from a plain list.

use std::collections::BTreeMap;

use fbc::{Chunks, FbcLimits};
use olm::{BundleFields, PropertyFields, UpgradeStep};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use work::Budget;

use crate::plan::PlanError;

/// Size of the chunks in which documents are parsed, in bytes.
const CHUNK_BYTES: usize = 1 << 20;

/// Maximum size of what kubectl prints as YAML, in bytes: a ClusterServiceVersion has up to a
/// megabyte, and OLM v0 copies it into each namespace. It is one document.
const OBJECTS_BYTES_MAX: usize = 1 << 30;

const NO_OPERATOR: &str = "it has no Subscription, no ClusterServiceVersion and no ClusterExtension, and lists no packages";

/// Operator that is installed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstalledOperator {
    /// Name of the package; empty for a ClusterServiceVersion that no Subscription names and whose
    /// annotations lack it.
    pub package: String,
    /// Namespace, if it is known.
    pub namespace: Option<String>,
    /// Name of the bundle, if it is known.
    pub bundle: Option<String>,
    /// Version, if it is known.
    pub version: Option<String>,
    /// Channel, if one was chosen.
    pub channel: Option<String>,
    /// Values of `olm.maxOpenShiftVersion`, if they are known. Of several the first two.
    #[serde(skip)]
    pub max_openshift: Option<Vec<String>>,
}

/// Operators of a cluster, and what was left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Installed {
    /// Operators in the order of the input. Those that only have a ClusterServiceVersion come last.
    pub operators: Vec<InstalledOperator>,
    /// Remarks for people: objects that are no operators yet.
    pub notices: Vec<String>,
}

impl InstalledOperator {
    /// Returns the start of the ways of the operator.
    pub fn step(&self) -> UpgradeStep {
        UpgradeStep::start(
            self.bundle.as_deref().unwrap_or_default(),
            self.version.as_deref(),
        )
    }
}

impl Installed {
    /// Reads YAML or JSON from kubectl, or lines `package version [channel]`.
    ///
    /// # Errors
    /// Input that is malformed or has no operator, and objects of OLM with another type for a text.
    /// Other objects are ignored. A budget that is used up.
    pub fn parse(text: &str, budget: &Budget) -> Result<Self, PlanError> {
        let text = text.trim_start_matches('\u{feff}');
        let mut lines = text.lines().map(str::trim);
        let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
        // Names and versions have no colon, and YAML and JSON begin with a key, a brace or a
        // separator.
        let is_list = first
            .is_some_and(|line| !line.contains(':') && !line.starts_with(['{', '[', '-', '%']));
        let installed = if is_list {
            Self::of_list(text)?
        } else {
            ClusterObjects::read(text, budget)?.joined()
        };
        if installed == Self::default() {
            return Err(PlanError::Refused(NO_OPERATOR.to_owned()));
        }
        Ok(installed)
    }

    fn of_list(text: &str) -> Result<Self, PlanError> {
        let mut installed = Self::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            match line.split_whitespace().collect::<Vec<_>>()[..] {
                [] => {}
                [package, version] => installed.list(package, version, None),
                [package, version, channel] => installed.list(package, version, Some(channel)),
                _ => {
                    let problem = format!("line {} is not `package version [channel]`", number + 1);
                    return Err(PlanError::Refused(problem));
                }
            }
        }
        Ok(installed)
    }

    fn list(&mut self, package: &str, version: &str, channel: Option<&str>) {
        self.operators.push(InstalledOperator {
            package: package.to_owned(),
            version: Some(version.to_owned()),
            channel: channel.map(str::to_owned),
            ..InstalledOperator::default()
        });
    }
}

/// Objects of OLM in a cluster.
#[derive(Default)]
struct ClusterObjects {
    /// Subscriptions and ClusterExtensions in the order of the input.
    requests: Vec<OperatorRequest>,
    /// ClusterServiceVersions by namespace and name.
    versions: BTreeMap<(Option<String>, Option<String>), InstalledOperator>,
}

/// Subscription or ClusterExtension.
struct OperatorRequest {
    kind: String,
    name: String,
    operator: InstalledOperator,
}

/// Document that kubectl prints: an object, or a list of them.
#[derive(Deserialize)]
struct KubernetesList<'a> {
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

/// Fields that tell the kind of an object.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ObjectHeader {
    api_version: Value,
    kind: Value,
}

impl ClusterObjects {
    fn read(text: &str, budget: &Budget) -> Result<Self, PlanError> {
        let mut objects = Self::default();
        // JSON needs no copy of the whole document. What is no JSON may be YAML.
        if serde_json::from_str::<&RawValue>(text).is_ok() {
            objects.document(text, budget)?;
            return Ok(objects);
        }
        let limits = FbcLimits {
            document_bytes: OBJECTS_BYTES_MAX,
            memory_bytes: OBJECTS_BYTES_MAX * FbcLimits::default().memory_ratio,
            ..FbcLimits::default()
        };
        for chunk in Chunks::new(text.as_bytes(), limits, CHUNK_BYTES) {
            let mut found = Ok(());
            chunk?.metas(&limits, &mut |meta| {
                if found.is_ok() {
                    let line = String::from_utf8_lossy(meta.line);
                    found = objects.document(&line, budget);
                }
            })?;
            found?;
        }
        Ok(objects)
    }

    /// Adds the objects of a document in JSON.
    fn document(&mut self, json: &str, budget: &Budget) -> Result<(), PlanError> {
        let charged = budget.charge_bytes(json.len());
        charged.map_err(|over| PlanError::exceeded(over, "the installed operators"))?;
        match serde_json::from_str::<KubernetesList<'_>>(json) {
            Ok(list) => list
                .items
                .into_iter()
                .try_for_each(|item| self.object(item.get())),
            Err(_) => self.object(json),
        }
    }

    /// Adds an object, if it is one of OLM. A Subscription may be one of Knative.
    fn object(&mut self, json: &str) -> Result<(), PlanError> {
        let header: ObjectHeader = serde_json::from_str(json).unwrap_or_default();
        let group = header.api_version.as_str().unwrap_or_default();
        let is_olm = group.starts_with("operators.coreos.com/")
            || group.starts_with("olm.operatorframework.io/");
        let kind = header.kind.as_str().unwrap_or_default();
        if !is_olm || !["Subscription", "ClusterExtension", VERSION].contains(&kind) {
            return Ok(());
        }
        let fields = serde_json::from_str(json).unwrap_or_default();
        let object = OlmObject { kind, fields };
        match kind {
            "Subscription" => self.requests.push(object.subscription()?),
            "ClusterExtension" => self.requests.push(object.extension()?),
            _ => {
                if let Some(version) = object.installed_version()? {
                    let name = (version.namespace.clone(), version.bundle.clone());
                    self.versions.insert(name, version);
                }
            }
        }
        Ok(())
    }

    /// Joins each Subscription with its ClusterServiceVersion.
    fn joined(mut self) -> Installed {
        let mut installed = Installed::default();
        for request in self.requests {
            let OperatorRequest {
                kind,
                name,
                mut operator,
            } = request;
            let Some(bundle) = &operator.bundle else {
                let notice = format!("{kind} {name}: nothing is installed yet");
                installed.notices.push(notice);
                continue;
            };
            let key = (operator.namespace.clone(), operator.bundle.clone());
            if let Some(version) = self.versions.remove(&key) {
                operator.version = version.version;
                operator.max_openshift = version.max_openshift;
            } else if kind == "Subscription" {
                let notice = format!(
                    "{kind} {name}: its ClusterServiceVersion {bundle} is not in the input"
                );
                installed.notices.push(notice);
            }
            installed.operators.push(operator);
        }
        installed.operators.extend(self.versions.into_values());
        installed
    }
}

const VERSION: &str = "ClusterServiceVersion";

/// Object of OLM.
struct OlmObject<'a> {
    kind: &'a str,
    fields: Value,
}

impl OlmObject<'_> {
    /// Returns the text at a JSON pointer (RFC 6901), if it is there and not empty.
    fn text(&self, field: &str) -> Result<Option<String>, PlanError> {
        match self.fields.pointer(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => {
                let name = self.fields["metadata"]["name"].as_str().unwrap_or_default();
                let field = field[1..].replace('/', ".").replace("~1", "/");
                let problem = format!("{} {name}: {field} is no text", self.kind);
                Err(PlanError::Refused(problem))
            }
        }
    }

    fn request(&self, operator: InstalledOperator) -> Result<OperatorRequest, PlanError> {
        Ok(OperatorRequest {
            kind: self.kind.to_owned(),
            name: self.text("/metadata/name")?.unwrap_or_default(),
            operator,
        })
    }

    fn subscription(&self) -> Result<OperatorRequest, PlanError> {
        self.request(InstalledOperator {
            package: self.text("/spec/name")?.unwrap_or_default(),
            namespace: self.text("/metadata/namespace")?,
            bundle: self.text("/status/installedCSV")?,
            channel: self.text("/spec/channel")?,
            ..InstalledOperator::default()
        })
    }

    fn extension(&self) -> Result<OperatorRequest, PlanError> {
        let package = self.text("/spec/source/catalog/packageName")?;
        self.request(InstalledOperator {
            package: package.unwrap_or_default(),
            namespace: self.text("/metadata/namespace")?,
            bundle: self.text("/status/install/bundle/name")?,
            version: self.text("/status/install/bundle/version")?,
            channel: self.text("/spec/source/catalog/channels/0")?,
            max_openshift: None,
        })
    }

    /// Returns what a ClusterServiceVersion tells of itself; `None` for one that OLM v0 has copied
    /// from another namespace.
    fn installed_version(&self) -> Result<Option<InstalledOperator>, PlanError> {
        let mut operator = InstalledOperator {
            namespace: self.text("/metadata/namespace")?,
            bundle: self.text("/metadata/name")?,
            version: self.text("/spec/version")?,
            ..InstalledOperator::default()
        };
        let origin = self.text("/metadata/annotations/olm.operatorNamespace")?;
        if origin.is_some() && origin != operator.namespace
            || self.text("/metadata/labels/olm.copiedFrom")?.is_some()
            || self.text("/status/reason")?.as_deref() == Some("Copied")
        {
            return Ok(None);
        }
        // Here OLM v0 repeats the properties of the bundle.
        if let Some(json) = self.text("/metadata/annotations/operatorframework.io~1properties")? {
            operator.read_properties(&json);
        }
        Ok(Some(operator))
    }
}

impl InstalledOperator {
    /// Reads the annotation with the properties of the bundle.
    fn read_properties(&mut self, json: &str) {
        let Ok(BundleFields { properties, .. }) = serde_json::from_str(json) else {
            // OLM v0 takes an annotation that it cannot read for an operator that stops the cluster.
            self.max_openshift = Some(vec!["null".to_owned()]);
            return;
        };
        let properties: Vec<PropertyFields<'_>> = properties.unwrap_or_default();
        let package = properties
            .iter()
            .find(|property| property.kind == "olm.package")
            .and_then(PropertyFields::value::<Value>);
        if let Some(package) = package {
            let name = package["packageName"].as_str();
            self.package = name.unwrap_or_default().to_owned();
        }
        let max = properties.iter().filter_map(PropertyFields::max_openshift);
        self.max_openshift = Some(max.take(2).collect());
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use work::Budget;

    use super::Installed;

    const SUBSCRIPTION: &str = r#"{"apiVersion":"operators.coreos.com/v1alpha1","kind":"Subscription",
    "metadata":{"name":"s","namespace":"n"},"spec":{"channel":"c","name":"p"},"status":{"installedCSV":"p.v1"}}"#;
    const VERSION: &str = r#"{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"annotations":{"x":"",
    "operatorframework.io/properties":"{\"properties\":[{\"type\":\"olm.package\",\"value\":{\"packageName\":\"p\"}},{\"type\":\"olm.maxOpenShiftVersion\",\"value\":\"4.20\"}]}"},
    "labels":{},"name":"p.v1","namespace":"n"},"spec":{"version":"1.0.0"}}"#;
    const EXTENSION: &str = r#"{"apiVersion":"olm.operatorframework.io/v1","kind":"ClusterExtension","metadata":{"name":"e"},
    "spec":{"source":{"catalog":{"channels":["x"],"packageName":"q"}}},"status":{"install":{"bundle":{"name":"q.v2","version":"2.0.0"}}}}"#;
    const YAML: &str = "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: s}\nspec: {name: p}\nstatus: {installedCSV: p.v1}\n";
    const NO_OPERATOR: &str = "it has no Subscription, no ClusterServiceVersion and no ClusterExtension, and lists no packages";
    const NOT_THERE: &str = "Subscription s: its ClusterServiceVersion p.v1 is not in the input";

    fn list(items: &[&str]) -> String {
        format!(
            r#"{{"apiVersion":"v1","kind":"List","items":[{}]}}"#,
            items.join(",")
        )
    }

    /// Returns a list with a ClusterServiceVersion and its copy in another namespace.
    fn with_copy(field: &str, mark: &str) -> String {
        let copy = VERSION.replace(r#""namespace":"n""#, r#""namespace":"m""#);
        list(&[SUBSCRIPTION, &copy.replace(field, mark), VERSION])
    }

    #[rstest]
    #[case::list("p 1.0.0 c\nq 2.0.0\n".to_owned(), "p - 1.0.0 c -; q - 2.0.0 - -")]
    #[case::crlf_bom_and_comments("\u{feff}# mine\r\np 1.0.0 c\r\n\r\nq 2.0.0 # too\r\n".to_owned(), "p - 1.0.0 c -; q - 2.0.0 - -")]
    #[case::joined(list(&[SUBSCRIPTION, VERSION]), "p p.v1 1.0.0 c 4.20")]
    #[case::renamed(list(&[&SUBSCRIPTION.replace(r#""name":"p""#, r#""name":"new""#), VERSION]), "new p.v1 1.0.0 c 4.20")]
    #[case::ten_thousand("p 1.0.0\n".repeat(10_000), &vec!["p - 1.0.0 - -"; 10_000].join("; "))]
    #[case::several_documents(format!("{SUBSCRIPTION}\n{VERSION}\n"), "p p.v1 1.0.0 c 4.20")]
    #[case::yaml(YAML.replace('\n', "\r\n"), &format!("p p.v1 - - -; {NOT_THERE}"))]
    #[case::subscription_alone(list(&[SUBSCRIPTION]), &format!("p p.v1 - c -; {NOT_THERE}"))]
    #[case::version_alone(list(&[VERSION]), "p p.v1 1.0.0 - 4.20")]
    #[case::version_without_package(list(&[&VERSION.replace("olm.package", "other")]), "- p.v1 1.0.0 - 4.20")]
    #[case::maximum_unreadable(list(&[&VERSION.replace(r#"{\"properties"#, r#"\"properties"#)]), "- p.v1 1.0.0 - null")]
    #[case::copied_by_label(
        with_copy(r#""labels":{}"#, r#""labels":{"olm.copiedFrom":"n"}"#),
        "p p.v1 1.0.0 c 4.20"
    )]
    #[case::copied_by_annotation(
        with_copy(r#""x":"""#, r#""olm.operatorNamespace":"n""#),
        "p p.v1 1.0.0 c 4.20"
    )]
    #[case::copied_by_reason(
        with_copy(r#""spec""#, r#""status":{"reason":"Copied"},"spec""#),
        "p p.v1 1.0.0 c 4.20"
    )]
    #[case::nothing_installed(list(&[&SUBSCRIPTION.replace("installedCSV", "currentCSV")]), "Subscription s: nothing is installed yet")]
    #[case::extension(list(&[EXTENSION]), "q q.v2 2.0.0 x -")]
    #[case::other_kinds(
        list(&[r#"{"kind":"Pod"}"#, r#"{"kind":"Subscription","apiVersion":"messaging.knative.dev/v1","spec":{"name":1}}"#, EXTENSION]),
        "q q.v2 2.0.0 x -"
    )]
    #[case::line_of_one_word("p\n".to_owned(), "line 1 is not `package version [channel]`")]
    #[case::line_of_four_words("p 1 c\nq 1 c d\n".to_owned(), "line 2 is not `package version [channel]`")]
    #[case::empty(String::new(), NO_OPERATOR)]
    #[case::no_operators(list(&[]), NO_OPERATOR)]
    #[case::number_for_name(list(&[&SUBSCRIPTION.replace(r#""name":"p""#, r#""name":1"#)]), "Subscription s: spec.name is no text")]
    #[case::malformed("{\"kind\": \n".to_owned(), "cannot read the installed operators")]
    #[case::field_of_another_type(list(&[&VERSION.replace(r#""1.0.0""#, "1")]), "ClusterServiceVersion p.v1: spec.version is no text")]
    fn installed_operators_are_read_in_each_form(#[case] text: String, #[case] expected: &str) {
        let found = match Installed::parse(&text, &Budget::default()) {
            Ok(installed) => {
                let operators = installed.operators.iter().map(|one| {
                    let max = one.max_openshift.as_ref().map(|max| max.join(","));
                    let package = Some(one.package.clone()).filter(|name| !name.is_empty());
                    let fields = [&package, &one.bundle, &one.version, &one.channel, &max];
                    fields
                        .map(|field| field.as_deref().unwrap_or("-"))
                        .join(" ")
                });
                let all = operators.chain(installed.notices.iter().cloned());
                all.collect::<Vec<_>>().join("; ")
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected);
    }
}
