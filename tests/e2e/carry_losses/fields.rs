use std::time::{Duration, Instant};

use testkit::Registry;

use crate::support::work::Work;

/// A value of the wrong type in any field is an error that names the file, at once.
#[tokio::test(flavor = "multi_thread")]
async fn carry_refuses_wrong_values_of_each_field() {
    let work = Work::new();
    let registry = Registry::start().await;
    let host = registry.host();
    let entry = format!("catalog: {host}/ns/index:v1, full: true");
    let with = |more: &str| format!("{{operators: [{{{entry}{more}}}]}}");
    let own = |more: &str| format!("{{operators: [{{{entry}}}], {more}}}");
    let values = [
        "{}",
        "[]",
        "7",
        "true",
        "'x'",
        "[{}]",
        "[7]",
        "[[]]",
        "{name: 7}",
        "[{name: [x]}]",
    ];
    let mut texts = Vec::new();
    for value in values {
        texts.push(value.to_owned());
        texts.push(format!("{{operators: {value}}}"));
        for field in [
            "catalog",
            "packages",
            "targetCatalog",
            "targetTag",
            "full",
            "platforms",
            "targetCatalogSourceTemplate",
        ] {
            texts.push(with(&format!(", {field}: {value}")).replace("full: true, full", "full"));
        }
        for field in [
            "channels",
            "defaultChannel",
            "minVersion",
            "maxVersion",
            "selectedBundles",
        ] {
            texts.push(with(&format!(
                ", packages: [{{name: a, {field}: {value}}}]"
            )));
        }
        for field in [
            "additionalImages",
            "blockedImages",
            "platform",
            "helm",
            "kubeVirtContainer",
        ] {
            texts.push(own(&format!("{field}: {value}")));
        }
        for field in ["targetRepo", "targetTag", "name"] {
            texts.push(own(&format!(
                "additionalImages: [{{name: 'q.io/a:1', {field}: {value}}}]"
            )));
        }
    }
    for expression in [
        "(",
        "[",
        "(a{1000}){1000}",
        "((a{100}){100}){100}",
        "a{99999999}",
        "\\\\p{Foo}",
    ] {
        texts.push(own(&format!("blockedImages: [{{name: \"{expression}\"}}]")));
    }
    for text in &texts {
        let text = format!(
            "apiVersion: mirror.openshift.io/v2alpha1\nkind: ImageSetConfiguration\nmirror: {text}\n"
        );
        work.write("isc.yaml", &text);
        let started = Instant::now();
        let ran = work.run(&format!("carry out isc.yaml disk --plain-http {host}"));
        assert_eq!(ran.code, Some(1), "{text}\n{ran:#?}");
        let is_named =
            ran.stderr.contains("isc.yaml") || ran.stderr.contains("no catalog could be composed");
        assert!(
            is_named && !ran.stderr.contains("panicked"),
            "{text}\n{ran:#?}"
        );
        assert!(started.elapsed() < Duration::from_secs(30), "{text}");
    }
}
