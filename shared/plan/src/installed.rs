//! Operators that a cluster has: from what kubectl prints, or from a plain list.

use std::collections::{BTreeMap, HashSet};

use fbc::{Chunks, FbcError, FbcLimits};
use serde::Deserialize;
use serde_json::Value;

/// Size of the chunks in which documents are parsed, in bytes.
const CHUNK_BYTES: usize = 1 << 20;

/// Annotation by which OLM v0 repeats the properties of the bundle.
const PROPERTIES: &str = "operatorframework.io/properties";

/// Property with the newest version of OpenShift for which a bundle is.
pub(crate) const MAX_OPENSHIFT: &str = "olm.maxOpenShiftVersion";

/// Operator that is installed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstalledOperator {
    /// Name of the package. `None` for a ClusterServiceVersion that no Subscription names and whose annotations lack it.
    pub package: Option<String>,
    /// Namespace, if it is known.
    pub namespace: Option<String>,
    /// Name of the bundle, if it is known.
    pub bundle: Option<String>,
    /// Version, if it is known.
    pub version: Option<String>,
    /// Channel, if one was chosen.
    pub channel: Option<String>,
    /// Values of `olm.maxOpenShiftVersion` in the cluster, as JSON. `None` where only the catalog knows them.
    pub max_openshift: Option<Vec<String>>,
}

/// Operators of a cluster, and what was left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Installed {
    /// Operators in the order of the input.
    pub operators: Vec<InstalledOperator>,
    /// Remarks for people: objects that are no operators yet.
    pub notices: Vec<String>,
}

/// Input that lists no operators.
#[derive(Debug, thiserror::Error)]
pub enum InstalledError {
    /// A document that is malformed or exceeds a limit.
    #[error("cannot read the installed operators")]
    Document(#[from] FbcError),
    /// An object whose fields have other types.
    #[error("cannot read the {kind} {name}")]
    Object {
        /// Kind of the object.
        kind: String,
        /// Namespace and name of the object.
        name: String,
        /// Error that names the field.
        source: serde_json::Error,
    },
    /// A line of a list with another number of words.
    #[error("line {0} is not `package version [channel]`")]
    Line(usize),
    /// Input without an operator.
    #[error("it has no Subscription, no ClusterServiceVersion and no ClusterExtension, and lists no packages")]
    Empty,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClusterObject {
    kind: String,
    metadata: ObjectMetadata,
    spec: Value,
    status: Value,
    items: Vec<Value>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct ObjectMetadata {
    name: String,
    namespace: Option<String>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct PropertyList {
    #[serde(default)]
    properties: Vec<Property>,
}

#[derive(Deserialize)]
struct Property {
    #[serde(rename = "type")]
    kind: String,
    value: Value,
}

/// Objects of the input by their kind.
#[derive(Default)]
struct ClusterObjects {
    subscriptions: Vec<ClusterObject>,
    versions: Vec<ClusterObject>,
    extensions: Vec<ClusterObject>,
}

impl Installed {
    /// Reads YAML or JSON from kubectl, or lines `package version [channel]`.
    ///
    /// # Errors
    /// Input that is malformed or has no operator. Objects of other kinds are ignored.
    pub fn parse(text: &str) -> Result<Self, InstalledError> {
        let text = text.trim_start_matches('\u{feff}');
        let mut lines = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        // Names and versions have no colon, and YAML and JSON begin with a key, a brace or a separator.
        let is_list = lines
            .next()
            .is_some_and(|line| !line.contains(':') && !line.starts_with(['{', '[', '-', '%']));
        let installed = if is_list {
            Self::of_list(text)?
        } else {
            Self::of_objects(text)?
        };
        if installed.operators.is_empty() && installed.notices.is_empty() {
            return Err(InstalledError::Empty);
        }
        Ok(installed)
    }

    fn of_list(text: &str) -> Result<Self, InstalledError> {
        let mut installed = Self::default();
        for (number, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
            let [package, version, channel @ ..] = words.as_slice() else {
                if words.is_empty() {
                    continue;
                }
                return Err(InstalledError::Line(number + 1));
            };
            if channel.len() > 1 {
                return Err(InstalledError::Line(number + 1));
            }
            installed.operators.push(InstalledOperator {
                package: Some((*package).to_owned()),
                version: Some((*version).to_owned()),
                channel: channel.first().map(|channel| (*channel).to_owned()),
                ..InstalledOperator::default()
            });
        }
        Ok(installed)
    }

    fn of_objects(text: &str) -> Result<Self, InstalledError> {
        let limits = FbcLimits::default();
        let (mut objects, mut failed) = (ClusterObjects::default(), None);
        for chunk in Chunks::new(text.as_bytes(), limits, CHUNK_BYTES) {
            chunk?.metas(&limits, &mut |meta| {
                let read = serde_json::from_slice(meta.line).map_err(|error| (Value::Null, error));
                if let Err(error) = read.and_then(|object| objects.add(&object)) {
                    failed.get_or_insert(error);
                }
            })?;
        }
        match failed {
            None => Ok(objects.operators()),
            Some((object, source)) => {
                let part = |pointer| {
                    object
                        .pointer(pointer)
                        .and_then(Value::as_str)
                        .unwrap_or_default()
                        .to_owned()
                };
                let name = format!("{}/{}", part("/metadata/namespace"), part("/metadata/name"));
                Err(InstalledError::Object {
                    kind: part("/kind"),
                    name: name.trim_start_matches('/').to_owned(),
                    source,
                })
            }
        }
    }
}

impl ClusterObjects {
    /// Sorts an object, or the items of a list, by kind.
    fn add(&mut self, value: &Value) -> Result<(), (Value, serde_json::Error)> {
        let kind = value["kind"].as_str().unwrap_or_default();
        if !kind.ends_with("List") && !["Subscription", "ClusterServiceVersion", "ClusterExtension"].contains(&kind) {
            return Ok(());
        }
        // Of an API of the same kind, such as a Subscription of Knative.
        let group = value["apiVersion"].as_str().unwrap_or_default();
        if !kind.ends_with("List")
            && !group.starts_with("operators.coreos.com/")
            && !group.starts_with("olm.operatorframework.io/")
        {
            return Ok(());
        }
        let object: ClusterObject = ClusterObject::deserialize(value).map_err(|error| (value.clone(), error))?;
        match object.kind.as_str() {
            "Subscription" => self.subscriptions.push(object),
            "ClusterServiceVersion" => self.versions.push(object),
            "ClusterExtension" => self.extensions.push(object),
            _ => {
                for item in object.items {
                    self.add(&item)?;
                }
            }
        }
        Ok(())
    }

    /// Joins each Subscription with its ClusterServiceVersion.
    fn operators(self) -> Installed {
        let mut installed = Installed::default();
        // A copy in each namespace stands for the one operator that was installed.
        let versions = self.versions.iter().filter(|version| !version.is_copied());
        let versions: BTreeMap<(Option<&str>, &str), &ClusterObject> = versions.map(|one| (one.place(), one)).collect();
        let mut joined = HashSet::new();
        for subscription in &self.subscriptions {
            let (name, namespace) = (&subscription.metadata.name, &subscription.metadata.namespace);
            let Some(bundle) = text(&subscription.status, "/installedCSV") else {
                installed
                    .notices
                    .push(format!("Subscription {name}: nothing is installed yet"));
                continue;
            };
            let version = versions.get(&(namespace.as_deref(), bundle.as_str()));
            joined.extend(version.map(|version| version.place()));
            if version.is_none() {
                installed.notices.push(format!(
                    "Subscription {name}: its ClusterServiceVersion {bundle} is not in the input"
                ));
            }
            installed.operators.push(InstalledOperator {
                package: text(&subscription.spec, "/name"),
                namespace: namespace.clone(),
                channel: text(&subscription.spec, "/channel"),
                ..version.map_or_else(|| named(&bundle), |version| version.operator())
            });
        }
        let rest = versions.iter().filter(|(place, _)| !joined.contains(*place));
        installed.operators.extend(rest.map(|(_, version)| version.operator()));
        for extension in &self.extensions {
            let package = text(&extension.spec, "/source/catalog/packageName");
            let bundle = text(&extension.status, "/install/bundle/name");
            if bundle.is_none() {
                let name = &extension.metadata.name;
                installed
                    .notices
                    .push(format!("ClusterExtension {name}: nothing is installed yet"));
                continue;
            }
            installed.operators.push(InstalledOperator {
                package,
                bundle,
                version: text(&extension.status, "/install/bundle/version"),
                channel: text(&extension.spec, "/source/catalog/channels/0"),
                ..InstalledOperator::default()
            });
        }
        installed
    }
}

/// Returns the text at a JSON pointer (RFC 6901); `None` for an empty one.
fn text(value: &Value, pointer: &str) -> Option<String> {
    let text = value.pointer(pointer)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

fn named(bundle: &str) -> InstalledOperator {
    InstalledOperator {
        bundle: Some(bundle.to_owned()),
        ..InstalledOperator::default()
    }
}

impl ClusterObject {
    /// Returns the namespace and the name.
    fn place(&self) -> (Option<&str>, &str) {
        (self.metadata.namespace.as_deref(), &self.metadata.name)
    }

    /// Returns true for a ClusterServiceVersion that OLM v0 has copied from another namespace.
    fn is_copied(&self) -> bool {
        let (metadata, has) = (&self.metadata, |map: &Option<BTreeMap<String, String>>, key: &str| {
            map.as_ref().and_then(|map| map.get(key)).cloned()
        });
        let origin = has(&metadata.annotations, "olm.operatorNamespace");
        let is_elsewhere = origin.is_some_and(|origin| metadata.namespace.as_deref() != Some(&*origin));
        is_elsewhere
            || has(&metadata.labels, "olm.copiedFrom").is_some()
            || text(&self.status, "/reason").as_deref() == Some("Copied")
    }

    /// Returns what a ClusterServiceVersion says of itself.
    fn operator(&self) -> InstalledOperator {
        let annotation = self
            .metadata
            .annotations
            .as_ref()
            .and_then(|annotations| annotations.get(PROPERTIES));
        // OLM v0 takes an annotation that it cannot read for an operator that stops the cluster.
        let unreadable = || Property {
            kind: MAX_OPENSHIFT.to_owned(),
            value: Value::Null,
        };
        let read = |text: &String| serde_json::from_str::<PropertyList>(text);
        let properties = annotation.map(|text| read(text).map_or_else(|_| vec![unreadable()], |list| list.properties));
        let package = properties
            .iter()
            .flatten()
            .find(|property| property.kind == "olm.package");
        InstalledOperator {
            package: package.and_then(|package| package.value["packageName"].as_str().map(str::to_owned)),
            namespace: self.metadata.namespace.clone(),
            bundle: Some(self.metadata.name.clone()),
            version: text(&self.spec, "/version"),
            channel: None,
            max_openshift: properties.map(|properties| {
                let values = properties.iter().filter(|property| property.kind == MAX_OPENSHIFT);
                values.map(|property| property.value.to_string()).collect()
            }),
        }
    }
}

#[cfg(test)]
mod tests;
