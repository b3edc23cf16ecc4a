//! Objects of OLM as kubectl prints them.

use std::collections::BTreeMap;

use fbc::{Chunks, FbcLimits};
use olm::{BundleFields, PropertyFields};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use work::Budget;

use crate::plan::{Installed, InstalledOperator, PlanError, StepApproval};

/// Size of the chunks in which documents are parsed, in bytes.
const CHUNK_BYTES: usize = 1 << 20;

/// Maximum size of what kubectl prints as YAML, in bytes: a ClusterServiceVersion has up to a
/// megabyte, and OLM v0 copies it into each namespace. It is one document.
const OBJECTS_BYTES_MAX: usize = 1 << 30;

const SUBSCRIPTION: &str = "Subscription";
const EXTENSION: &str = "ClusterExtension";
const VERSION: &str = "ClusterServiceVersion";

/// ClusterServiceVersion with which OLM v0 serves PackageManifests.
const PACKAGE_SERVER: &str = "packageserver";

/// Label of the ClusterServiceVersions that are a part of OpenShift.
const CLUSTER_OPERATOR_LABEL: &str = "olm.clusteroperator.name";

/// Start of the label with which OLM v0 marks all that belongs to an operator. Its package and its
/// namespace follow, with a dot between them, cut off after so many bytes.
const COMPONENT_LABEL: &str = "operators.coreos.com/";
const COMPONENT_BYTES_MAX: usize = 63;

/// Label with the name of a ClusterCatalog.
const CATALOG_NAME_LABEL: &str = "olm.operatorframework.io/metadata.name";

/// Objects of OLM in a cluster.
#[derive(Default)]
pub(super) struct ClusterObjects {
    /// Subscriptions and ClusterExtensions in the order of the input.
    requests: Vec<OperatorRequest>,
    /// ClusterServiceVersions by namespace and name.
    versions: BTreeMap<(Option<String>, Option<String>), InstalledOperator>,
    /// True if OLM itself is there, or a copy of a ClusterServiceVersion.
    has_others: bool,
}

/// Subscription or ClusterExtension.
struct OperatorRequest {
    kind: &'static str,
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
    /// Reads YAML or JSON.
    pub(super) fn read(text: &str, budget: &Budget) -> Result<Self, PlanError> {
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

    /// Returns true if there is no object of OLM.
    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.versions.is_empty() && !self.has_others
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
        let kinds = [SUBSCRIPTION, EXTENSION, VERSION];
        let kind = kinds.into_iter().find(|kind| header.kind == *kind);
        let Some(kind) = kind.filter(|_| is_olm) else {
            return Ok(());
        };
        let fields = serde_json::from_str(json).unwrap_or_default();
        let object = OlmObject { kind, fields };
        match kind {
            SUBSCRIPTION => self.requests.push(object.subscription()?),
            EXTENSION => self.requests.push(object.extension()?),
            _ if object.is_no_operator()? => self.has_others = true,
            _ => {
                let version = object.installed_version()?;
                let name = (version.namespace.clone(), version.bundle.clone());
                self.versions.insert(name, version);
            }
        }
        Ok(())
    }

    /// Joins each Subscription with its ClusterServiceVersion.
    pub(super) fn joined(mut self) -> Installed {
        let mut installed = Installed::default();
        for request in self.requests {
            let OperatorRequest {
                kind,
                name,
                mut operator,
            } = request;
            let Some(bundle) = operator.bundle.clone() else {
                let notice = format!("{kind} {name}: nothing is installed yet");
                installed.notices.push(notice);
                continue;
            };
            let key = (operator.namespace.clone(), operator.bundle.clone());
            if let Some(version) = self.versions.remove(&key) {
                operator.version = version.version;
                operator.max_openshift = version.max_openshift;
            } else if kind == SUBSCRIPTION {
                let notice = format!(
                    "{kind} {name}: its ClusterServiceVersion {bundle} is not in the input"
                );
                installed.notices.push(notice);
            }
            if operator.package.is_empty() {
                operator.package = bundle;
                operator.lacks_package = true;
            }
            installed.operators.push(operator);
        }
        installed.operators.extend(self.versions.into_values());
        installed
    }
}

struct OlmObject {
    kind: &'static str,
    fields: Value,
}

impl OlmObject {
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
            kind: self.kind,
            name: self.text("/metadata/name")?.unwrap_or_default(),
            operator,
        })
    }

    fn subscription(&self) -> Result<OperatorRequest, PlanError> {
        // OLM v0 takes any other text, and none, for Automatic.
        let approval = match self.text("/spec/installPlanApproval")?.as_deref() {
            Some("Manual") => StepApproval::Manual,
            _ => StepApproval::Automatic,
        };
        self.request(InstalledOperator {
            package: self.text("/spec/name")?.unwrap_or_default(),
            namespace: self.text("/metadata/namespace")?,
            bundle: self.text("/status/installedCSV")?,
            channel: self.text("/spec/channel")?,
            source: self.text("/spec/source")?,
            install_plan_approval: Some(approval),
            ..InstalledOperator::default()
        })
    }

    fn extension(&self) -> Result<OperatorRequest, PlanError> {
        let package = self.text("/spec/source/catalog/packageName")?;
        let mut operator = InstalledOperator {
            package: package.unwrap_or_default(),
            namespace: self.text("/spec/namespace")?,
            bundle: self.text("/status/install/bundle/name")?,
            version: self.text("/status/install/bundle/version")?,
            source: self.cluster_catalog(),
            pin: self.text("/spec/source/catalog/version")?,
            is_extension: true,
            ..InstalledOperator::default()
        };
        let mut channels = Vec::new();
        while let Some(channel) =
            self.text(&format!("/spec/source/catalog/channels/{}", channels.len()))?
        {
            channels.push(channel);
        }
        match channels.as_slice() {
            [one] => operator.channel = Some(one.clone()),
            _ => operator.channels = Some(channels),
        }
        self.request(operator)
    }

    /// Returns the name of the ClusterCatalog that the selector of a ClusterExtension names.
    fn cluster_catalog(&self) -> Option<String> {
        let selector = self.fields.pointer("/spec/source/catalog/selector")?;
        let name = &selector["matchLabels"][CATALOG_NAME_LABEL];
        if let Some(name) = name.as_str() {
            return Some(name.to_owned());
        }
        let conditions = selector["matchExpressions"]
            .as_array()
            .into_iter()
            .flatten();
        let mut named =
            conditions.filter(|one| one["key"] == CATALOG_NAME_LABEL && one["operator"] == "In");
        match named.next()?["values"].as_array()?.as_slice() {
            [name] => name.as_str().map(str::to_owned),
            _ => None,
        }
    }

    /// Returns true for a ClusterServiceVersion of OLM itself, and for one that OLM v0 has copied
    /// from another namespace.
    fn is_no_operator(&self) -> Result<bool, PlanError> {
        let labels = &self.fields["metadata"]["labels"];
        if self.fields["metadata"]["name"] == PACKAGE_SERVER
            || labels.get(CLUSTER_OPERATOR_LABEL).is_some()
        {
            return Ok(true);
        }
        let origin = self.text("/metadata/annotations/olm.operatorNamespace")?;
        Ok(
            origin.is_some() && origin != self.text("/metadata/namespace")?
                || labels.get("olm.copiedFrom").is_some()
                || self.text("/status/reason")?.as_deref() == Some("Copied"),
        )
    }

    /// Returns what a ClusterServiceVersion tells of itself.
    fn installed_version(&self) -> Result<InstalledOperator, PlanError> {
        let name = self.text("/metadata/name")?.unwrap_or_default();
        let mut operator = InstalledOperator::of_bundle(&name);
        operator.namespace = self.text("/metadata/namespace")?;
        operator.version = self.text("/spec/version")?;
        // Here OLM v0 repeats the properties of the bundle.
        let mut package = None;
        if let Some(json) = self.text("/metadata/annotations/operatorframework.io~1properties")? {
            package = operator.read_properties(&json);
        }
        let namespace = operator.namespace.as_deref().unwrap_or_default();
        if let Some(package) = package.or_else(|| self.labelled_package(namespace)) {
            operator.package = package;
            operator.lacks_package = false;
        }
        Ok(operator)
    }

    /// Returns the package in the label of the operator to which the object belongs.
    fn labelled_package(&self, namespace: &str) -> Option<String> {
        let labels = self.fields["metadata"]["labels"].as_object()?;
        let marks = labels
            .keys()
            .filter_map(|label| label.strip_prefix(COMPONENT_LABEL));
        let mut packages = marks.filter_map(|mark| package_of_mark(mark, namespace));
        packages.next()
    }
}

/// Returns the package of an operator by `PACKAGE.NAMESPACE`, the end of which may be cut off.
fn package_of_mark(mark: &str, namespace: &str) -> Option<String> {
    let whole = mark
        .strip_suffix(namespace)
        .and_then(|rest| rest.strip_suffix('.'));
    let mut found = whole;
    // OLM v0 also cuts off what may not end a label.
    if found.is_none() && mark.len() >= COMPONENT_BYTES_MAX - 2 {
        let mut dots = mark.match_indices('.');
        let cut = dots.find(|(at, _)| namespace.starts_with(&mark[at + 1..]));
        found = cut.map(|(at, _)| &mark[..at]);
    }
    let package = found.filter(|package| !package.is_empty())?;
    Some(package.to_owned())
}

impl InstalledOperator {
    /// Reads the annotation with the properties of the bundle, and returns its package.
    fn read_properties(&mut self, json: &str) -> Option<String> {
        let Ok(BundleFields { properties, .. }) = serde_json::from_str(json) else {
            // OLM v0 takes an annotation that it cannot read for an operator that stops the cluster.
            self.max_openshift = Some(vec!["null".to_owned()]);
            return None;
        };
        let properties: Vec<PropertyFields<'_>> = properties.unwrap_or_default();
        let max = properties.iter().filter_map(PropertyFields::max_openshift);
        self.max_openshift = Some(max.take(2).collect());
        let mut properties = properties.iter();
        let package = properties.find(|property| property.kind == "olm.package");
        let package = package.and_then(PropertyFields::value::<Value>)?;
        let name = package["packageName"].as_str()?;
        Some(name.to_owned()).filter(|name| !name.is_empty())
    }
}
