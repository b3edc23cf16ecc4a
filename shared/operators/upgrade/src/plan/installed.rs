//! Operators that a cluster has: from what kubectl prints, or from a plain list.

use std::{collections::BTreeMap, slice};

use fbc::{Chunks, FbcError, FbcLimits};
use olm::{BundleFields, Package, PropertyFields, UpgradeStep};
use serde::Serialize;
use serde_json::Value;

/// Size of the chunks in which documents are parsed, in bytes.
const CHUNK_BYTES: usize = 1 << 20;

const NO_OPERATOR: &str = "it has no Subscription, no ClusterServiceVersion and no ClusterExtension, and lists no packages";

/// Operator that is installed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
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
    /// Values of `olm.maxOpenShiftVersion`, if they are known.
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

    /// Returns true if a package has the bundle, or one with the version if the bundle is not
    /// known.
    pub(crate) fn is_in(&self, package: &Package) -> bool {
        let mut known = self.clone();
        known.complete(&[package]);
        package.bundles.contains_key(&known.step().bundle)
    }

    /// Takes from packages what the cluster does not tell.
    pub(crate) fn complete(&mut self, packages: &[&Package]) {
        let bundle = |version: &String| {
            Some(
                packages
                    .iter()
                    .find_map(|one| one.bundle_of(version))?
                    .to_owned(),
            )
        };
        self.bundle = self
            .bundle
            .take()
            .or_else(|| self.version.as_ref().and_then(bundle));
        let bundles = |name| packages.iter().find_map(|one| one.bundles.get(name));
        let known = self.bundle.as_ref().and_then(bundles);
        self.version = self.version.take().or_else(|| known?.version.clone());
        self.max_openshift = self
            .max_openshift
            .take()
            .or_else(|| Some(known?.max_openshift.clone()));
        let default = || packages.iter().find_map(|one| one.default_channel.clone());
        self.channel = self.channel.take().or_else(default);
    }
}

impl Installed {
    /// Reads YAML or JSON from kubectl, or lines `package version [channel]`.
    ///
    /// # Errors
    /// Input that is malformed or has no operator, and objects of OLM with another type for a text.
    /// Other objects are ignored.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        let text = text.trim_start_matches('\u{feff}');
        let mut lines = text.lines().map(str::trim);
        let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
        // Names and versions have no colon, and YAML and JSON begin with a key, a brace or a
        // separator.
        let is_list = first
            .is_some_and(|line| !line.contains(':') && !line.starts_with(['{', '[', '-', '%']));
        let read = if is_list {
            Self::of_list
        } else {
            Self::of_objects
        };
        let installed = read(text)?;
        if installed == Self::default() {
            return Err(PlanError::Refused(NO_OPERATOR.to_owned()));
        }
        Ok(installed)
    }

    fn of_list(text: &str) -> Result<Self, PlanError> {
        let mut installed = Self::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_whitespace().map(str::to_owned);
            let Some(package) = words.next() else {
                continue;
            };
            let (version, channel) = (words.next(), words.next());
            if version.is_none() || words.next().is_some() {
                let problem = format!("line {} is not `package version [channel]`", number + 1);
                return Err(PlanError::Refused(problem));
            }
            installed.operators.push(InstalledOperator {
                package,
                version,
                channel,
                ..InstalledOperator::default()
            });
        }
        Ok(installed)
    }

    /// Joins each Subscription with its ClusterServiceVersion.
    fn of_objects(text: &str) -> Result<Self, PlanError> {
        let (limits, mut documents) = (FbcLimits::default(), Vec::<Value>::new());
        for chunk in Chunks::new(text.as_bytes(), limits, CHUNK_BYTES) {
            chunk?.metas(&limits, &mut |meta| {
                documents.extend(serde_json::from_slice(meta.line));
            })?;
        }
        let objects = documents.iter().flat_map(|document| {
            let items = document["items"].as_array();
            items.map_or(slice::from_ref(document), Vec::as_slice)
        });
        let (mut installed, mut versions) = (Self::default(), BTreeMap::new());
        for object in objects.clone() {
            if let Some(version) = installed_version(object)? {
                versions.insert((version.namespace.clone(), version.bundle.clone()), version);
            }
        }
        for object in objects {
            let kind = kind(object);
            let mut operator = match kind {
                "Subscription" => read(
                    object,
                    ["/spec/name", "/status/installedCSV", "", "/spec/channel"],
                )?,
                "ClusterExtension" => read(object, EXTENSION)?,
                _ => continue,
            };
            let name = text_at(object, "/metadata/name")?.unwrap_or_default();
            let Some(bundle) = &operator.bundle else {
                let notice = format!("{kind} {name}: nothing is installed yet");
                installed.notices.push(notice);
                continue;
            };
            if let Some(version) =
                versions.remove(&(operator.namespace.clone(), operator.bundle.clone()))
            {
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
        installed.operators.extend(versions.into_values());
        Ok(installed)
    }
}

/// Returns the kind of an object of OLM; empty for another one, as a Subscription may be one of
/// Knative.
fn kind(object: &Value) -> &str {
    let group = object["apiVersion"].as_str().unwrap_or_default();
    let is_olm = group.starts_with("operators.coreos.com/")
        || group.starts_with("olm.operatorframework.io/");
    object["kind"]
        .as_str()
        .filter(|_| is_olm)
        .unwrap_or_default()
}

/// Returns the text at a JSON pointer (RFC 6901), if it is there and not empty. An empty pointer
/// finds nothing.
fn text_at(object: &Value, field: &str) -> Result<Option<String>, PlanError> {
    match object.pointer(field).filter(|_| !field.is_empty()) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
        Some(_) => {
            let (kind, name) = (
                kind(object),
                object["metadata"]["name"].as_str().unwrap_or_default(),
            );
            let field = field[1..].replace('/', ".").replace("~1", "/");
            Err(PlanError::Refused(format!(
                "{kind} {name}: {field} is no text"
            )))
        }
    }
}

/// Pointers to package, bundle, version and channel in a ClusterExtension.
const EXTENSION: [&str; 4] = [
    "/spec/source/catalog/packageName",
    "/status/install/bundle/name",
    "/status/install/bundle/version",
    "/spec/source/catalog/channels/0",
];

/// Reads an object by pointers to its package, bundle, version and channel. An empty pointer reads
/// nothing.
fn read(
    object: &Value,
    [package, bundle, version, channel]: [&str; 4],
) -> Result<InstalledOperator, PlanError> {
    let text = |field| text_at(object, field);
    Ok(InstalledOperator {
        package: text(package)?.unwrap_or_default(),
        namespace: text("/metadata/namespace")?,
        bundle: text(bundle)?,
        version: text(version)?,
        channel: text(channel)?,
        max_openshift: None,
    })
}

/// Returns what a ClusterServiceVersion tells of itself; `None` for another object, and for one
/// that OLM v0 has copied from another namespace.
fn installed_version(version: &Value) -> Result<Option<InstalledOperator>, PlanError> {
    let text = |field| text_at(version, field);
    if kind(version) != "ClusterServiceVersion" {
        return Ok(None);
    }
    let mut operator = read(version, ["", "/metadata/name", "/spec/version", ""])?;
    let origin = text("/metadata/annotations/olm.operatorNamespace")?;
    if origin.is_some() && origin != operator.namespace
        || text("/metadata/labels/olm.copiedFrom")?.is_some()
        || text("/status/reason")?.as_deref() == Some("Copied")
    {
        return Ok(None);
    }
    // Here OLM v0 repeats the properties of the bundle.
    if let Some(json) = text("/metadata/annotations/operatorframework.io~1properties")? {
        // It takes an annotation that it cannot read for an operator that stops the cluster.
        operator.max_openshift = Some(vec!["null".to_owned()]);
        if let Ok(BundleFields { properties, .. }) = serde_json::from_str(&json) {
            let properties: Vec<PropertyFields<'_>> = properties.unwrap_or_default();
            let package = properties
                .iter()
                .find(|property| property.kind == "olm.package");
            let package = package.and_then(PropertyFields::value::<Value>);
            let package = package
                .as_ref()
                .and_then(|package| package["packageName"].as_str());
            operator.package = package.unwrap_or_default().to_owned();
            operator.max_openshift = Some(
                properties
                    .iter()
                    .filter_map(PropertyFields::max_openshift)
                    .collect(),
            );
        }
    }
    Ok(Some(operator))
}

/// Input that cannot be planned.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A document that is malformed or exceeds a limit.
    #[error("cannot read the installed operators")]
    Document(#[from] FbcError),
    /// Anything else that is wrong with the input, and where.
    #[error("{0}")]
    Refused(String),
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

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
        let found = match Installed::parse(&text) {
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
