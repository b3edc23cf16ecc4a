//! Operators that a cluster has: from what kubectl prints, or from a plain list.

use std::collections::HashMap;

use olm::comparable_version;
use work::Budget;

use crate::plan::cluster_objects::ClusterObjects;
use crate::plan::{Installed, InstalledOperator, PlanCatalog, PlanError};

const NO_OPERATOR: &str = "it has no Subscription, no ClusterServiceVersion and no ClusterExtension, and lists no packages";

impl Installed {
    /// Reads YAML or JSON from kubectl, or lines `package version [channel]`. In a line the name of
    /// a ClusterServiceVersion may stand in place of the version, or alone.
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
        if is_list {
            return Self::of_list(text);
        }
        let objects = ClusterObjects::read(text, budget)?;
        if objects.is_empty() {
            return Err(PlanError::Refused(NO_OPERATOR.to_owned()));
        }
        Ok(objects.joined())
    }

    fn of_list(text: &str) -> Result<Self, PlanError> {
        let mut installed = Self::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            match line.split_whitespace().collect::<Vec<_>>()[..] {
                [] => {}
                [name] if name.contains('.') => {
                    // As `kubectl get -o name` prints it.
                    let name = name.rsplit('/').next().unwrap_or_default();
                    installed.operators.push(InstalledOperator::of_bundle(name));
                }
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

    /// Adds an operator by its package, and its version or the name of its ClusterServiceVersion.
    fn list(&mut self, package: &str, version: &str, channel: Option<&str>) {
        let mut operator = InstalledOperator {
            package: package.to_owned(),
            channel: channel.map(str::to_owned),
            ..InstalledOperator::default()
        };
        if comparable_version(version).is_some() {
            operator.version = Some(version.to_owned());
        } else {
            operator.bundle = Some(version.to_owned());
        }
        self.operators.push(operator);
    }

    /// Returns true if nothing tells the package of an operator. [`Self::find_packages`] finds it.
    pub fn lacks_packages(&self) -> bool {
        self.operators.iter().any(|one| one.lacks_package)
    }

    /// Returns the names of bundles of which nothing tells the package.
    pub fn bundles_without_package(&self) -> impl Iterator<Item = &str> {
        let lacking = self.operators.iter().filter(|one| one.lacks_package);
        lacking.filter_map(|one| one.bundle.as_deref())
    }

    /// Finds the packages of operators by the names of their bundles.
    pub fn find_packages(&mut self, catalogs: &[PlanCatalog]) {
        if !self.lacks_packages() {
            return;
        }
        let mut packages: HashMap<&str, &str> = HashMap::new();
        for catalog in catalogs {
            for (name, package) in &catalog.packages {
                for bundle in package.bundles.keys() {
                    packages.entry(bundle).or_insert(name);
                }
            }
        }
        for operator in self.operators.iter_mut().filter(|one| one.lacks_package) {
            let bundle = operator.bundle.as_deref().unwrap_or_default();
            if let Some(package) = packages.get(bundle) {
                operator.package = (*package).to_owned();
                operator.lacks_package = false;
            }
        }
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

    /// Returns a ClusterServiceVersion whose package is in no annotation, with a label.
    fn labelled(label: &str) -> String {
        let labels = format!(r#""labels":{{"{label}":""}}"#);
        let version = VERSION.replace("olm.package", "other");
        list(&[&version.replace(r#""labels":{}"#, &labels)])
    }

    /// Returns another ClusterServiceVersion with a label.
    fn other_with_label(label: &str) -> String {
        let labels = format!(r#""labels":{{"{label}":"x"}}"#);
        VERSION
            .replace(r#""labels":{}"#, &labels)
            .replace("p.v1", "other.v1")
    }

    #[test]
    fn label_that_is_cut_off_tells_package() {
        let namespace = "openshift-operators-of-a-team-with-a-long-name";
        let package = "an-operator-with-a-name";
        let version = VERSION.replace("olm.package", "other");
        let mark = &format!("{package}.{namespace}")[..63];
        let labels = format!(r#""labels":{{"operators.coreos.com/{mark}":""}}"#);
        let version = version.replace(r#""labels":{}"#, &labels);
        let version = version.replace(
            r#""namespace":"n""#,
            &format!(r#""namespace":"{namespace}""#),
        );
        let installed = Installed::parse(&version, &Budget::default()).unwrap();
        assert_eq!(installed.operators[0].package, package);
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
    #[case::version_without_package(list(&[&VERSION.replace("olm.package", "other")]), "p.v1 p.v1 1.0.0 - 4.20")]
    #[case::maximum_unreadable(list(&[&VERSION.replace(r#"{\"properties"#, r#"\"properties"#)]), "p.v1 p.v1 1.0.0 - null")]
    #[case::package_by_label(labelled("operators.coreos.com/a.b.n"), "a.b p.v1 1.0.0 - 4.20")]
    #[case::label_of_another_namespace(
        labelled("operators.coreos.com/p.m"),
        "p.v1 p.v1 1.0.0 - 4.20"
    )]
    #[case::subscription_without_package(list(&[&SUBSCRIPTION.replace(r#","name":"p"}"#, "}")]), &format!("p.v1 p.v1 - c -; {NOT_THERE}"))]
    #[case::package_server(list(&[SUBSCRIPTION, VERSION, &VERSION.replace("p.v1", "packageserver")]), "p p.v1 1.0.0 c 4.20")]
    #[case::part_of_openshift(list(&[SUBSCRIPTION, VERSION, &other_with_label("olm.clusteroperator.name")]), "p p.v1 1.0.0 c 4.20")]
    #[case::olm_alone(list(&[&VERSION.replace("p.v1", "packageserver")]), "")]
    #[case::bundles_in_list("p p.v1 c\nq.v2\nclusterserviceversion.operators.coreos.com/r.v3\n".to_owned(), "p p.v1 - c -; q.v2 q.v2 - - -; r.v3 r.v3 - - -")]
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
