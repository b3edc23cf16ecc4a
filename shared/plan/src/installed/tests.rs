use rstest::rstest;

use super::*;

const SUBSCRIPTION: &str = r#"{"apiVersion":"operators.coreos.com/v1alpha1","kind":"Subscription",
    "metadata":{"name":"s","namespace":"n"},"spec":{"channel":"c","name":"p"},"status":{"installedCSV":"p.v1"}}"#;
const VERSION: &str = r#"{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"annotations":{"x":"",
    "operatorframework.io/properties":"{\"properties\":[{\"type\":\"olm.package\",\"value\":{\"packageName\":\"p\"}},{\"type\":\"olm.maxOpenShiftVersion\",\"value\":\"4.20\"}]}"},
    "labels":{},"name":"p.v1","namespace":"n"},"spec":{"version":"1.0.0"}}"#;
const EXTENSION: &str = r#"{"apiVersion":"olm.operatorframework.io/v1","kind":"ClusterExtension","metadata":{"name":"e"},
    "spec":{"source":{"catalog":{"channels":["x"],"packageName":"q"}}},"status":{"install":{"bundle":{"name":"q.v2","version":"2.0.0"}}}}"#;
const YAML: &str = "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: s}\nspec: {name: p}\nstatus: {installedCSV: p.v1}\n";
const NO_OPERATOR: &str =
    "it has no Subscription, no ClusterServiceVersion and no ClusterExtension, and lists no packages";
const NOT_THERE: &str = "Subscription s: its ClusterServiceVersion p.v1 is not in the input";

fn list(items: &[&str]) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"List","items":[{}]}}"#, items.join(","))
}

/// Returns a list with a ClusterServiceVersion and its copy in another namespace.
fn with_copy(field: &str, mark: &str) -> String {
    let copy = VERSION.replace(r#""namespace":"n""#, r#""namespace":"m""#);
    list(&[SUBSCRIPTION, &copy.replace(field, mark), VERSION])
}

#[rstest]
#[case::list("p 1.0.0 c\nq 2.0.0\n".to_owned(), "p - 1.0.0 c; q - 2.0.0 -")]
#[case::crlf_bom_and_comments("\u{feff}# mine\r\np 1.0.0 c\r\n\r\nq 2.0.0 # too\r\n".to_owned(), "p - 1.0.0 c; q - 2.0.0 -")]
#[case::joined(list(&[SUBSCRIPTION, VERSION]), "p p.v1 1.0.0 c")]
#[case::several_documents(format!("{SUBSCRIPTION}\n{VERSION}\n"), "p p.v1 1.0.0 c")]
#[case::yaml(YAML.replace('\n', "\r\n"), &format!("p p.v1 - -; {NOT_THERE}"))]
#[case::subscription_alone(list(&[SUBSCRIPTION]), &format!("p p.v1 - c; {NOT_THERE}"))]
#[case::version_alone(list(&[VERSION]), "p p.v1 1.0.0 -")]
#[case::version_without_package(list(&[&VERSION.replace("olm.package", "other")]), "- p.v1 1.0.0 -")]
#[case::copied_by_label(with_copy(r#""labels":{}"#, r#""labels":{"olm.copiedFrom":"n"}"#), "p p.v1 1.0.0 c")]
#[case::copied_by_annotation(with_copy(r#""x":"""#, r#""olm.operatorNamespace":"n""#), "p p.v1 1.0.0 c")]
#[case::copied_by_reason(with_copy(r#""spec""#, r#""status":{"reason":"Copied"},"spec""#), "p p.v1 1.0.0 c")]
#[case::nothing_installed(list(&[&SUBSCRIPTION.replace("installedCSV", "currentCSV")]), "Subscription s: nothing is installed yet")]
#[case::extension(list(&[EXTENSION]), "q q.v2 2.0.0 x")]
#[case::other_kinds(
    list(&[r#"{"kind":"Pod"}"#, r#"{"kind":"Subscription","apiVersion":"messaging.knative.dev/v1"}"#, EXTENSION]), "q q.v2 2.0.0 x"
)]
#[case::line_of_one_word("p\n".to_owned(), "line 1 is not `package version [channel]`")]
#[case::line_of_four_words("p 1 c\nq 1 c d\n".to_owned(), "line 2 is not `package version [channel]`")]
#[case::empty(String::new(), NO_OPERATOR)]
#[case::no_operators(list(&[]), NO_OPERATOR)]
#[case::malformed("{\"kind\": \n".to_owned(), "cannot read the installed operators")]
#[case::field_of_another_type(list(&[&VERSION.replace(r#""labels":{}"#, r#""labels":1"#)]), "cannot read the ClusterServiceVersion n/p.v1")]
fn installed_operators_are_read_in_each_form(#[case] text: String, #[case] expected: &str) {
    let found = match Installed::parse(&text) {
        Ok(installed) => {
            let show = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
            let operators = installed.operators.iter();
            let operators = operators.map(|one| {
                [&one.package, &one.bundle, &one.version, &one.channel]
                    .map(show)
                    .join(" ")
            });
            operators
                .chain(installed.notices.iter().cloned())
                .collect::<Vec<_>>()
                .join("; ")
        }
        Err(error) => error.to_string(),
    };
    assert_eq!(found, expected);
}

#[test]
fn installed_version_has_maximum_of_its_annotation() {
    let max = |text: &str| {
        Installed::parse(&list(&[text])).unwrap().operators[0]
            .max_openshift
            .clone()
    };
    assert_eq!(max(VERSION).unwrap(), ["\"4.20\""]);
    assert_eq!(
        max(&VERSION.replace(r#"{\"properties"#, r#"\"properties"#)).unwrap(),
        ["null"],
        "unreadable"
    );
    assert_eq!(max(EXTENSION), None);
}
