//! From a ClusterCatalog to the catalog that is polled.

use std::path::{Path, PathBuf};
use std::time::Duration;

use config::ConfigLoader;
use kube::ResourceExt;
use model::ImageReference;
use publish::Catalog;
use serde_json::{Value, json};
use source::Source;

use crate::{catalog::ClusterCatalog, conditions::Fact};

/// Policy files for signatures, in the order in which containers/image looks for them
/// (containers-policy.json(5)).
const POLICY_FILES: [&str; 2] = [
    ".config/containers/policy.json",
    "/etc/containers/policy.json",
];

/// Returns the catalog of an object, with the signature policy of the node or pod, if there is one.
///
/// # Errors
/// [`Fact::Failed`] with all problems, before anything is asked of a registry.
pub(crate) fn catalog(object: &ClusterCatalog) -> Result<Catalog, Fact> {
    let failed = |is_terminal| {
        move |message| Fact::Failed {
            message,
            is_terminal,
        }
    };
    let own = load(object, None).map_err(failed(true))?;
    match policy_file() {
        None => Ok(own),
        // A policy of the node may be corrected, and another object does not help.
        Some(policy) => load(object, Some(&policy)).map_err(failed(false)),
    }
}

fn load(object: &ClusterCatalog, policy: Option<&Path>) -> Result<Catalog, String> {
    let mut loader = ConfigLoader::new(Duration::ZERO);
    #[cfg(feature = "openpgp")]
    loader.openpgp(trust::openpgp::read_keyring);
    if let Some(policy) = policy {
        let rule = json!({"signature": {"policy": policy}});
        loader.text("signature policy", &rule.to_string());
    }
    loader.text("object", &manifest(object).to_string());
    let config = loader.finish().map_err(|problems| problems.to_string())?;
    let catalog = config
        .catalogs
        .into_iter()
        .next()
        .ok_or("there is no catalog")?;
    let pulled = catalog
        .source
        .pulled()
        .ok_or("the source is not an image")?;
    let text = object
        .spec
        .pointer("/source/image/ref")
        .and_then(Value::as_str);
    check_reference(&pulled.source, text.unwrap_or_default())?;
    Ok(catalog)
}

/// Returns the fields that matter here as a manifest. A newer CustomResourceDefinition may have
/// others.
fn manifest(object: &ClusterCatalog) -> Value {
    let field = |path: &str| object.spec.pointer(path).cloned().unwrap_or_default();
    let mut source = json!({"type": field("/source/type")});
    if object
        .spec
        .pointer("/source/image")
        .is_some_and(Value::is_object)
    {
        source["image"] = json!({
            "ref": field("/source/image/ref"),
            "pollIntervalMinutes": field("/source/image/pollIntervalMinutes"),
        });
    }
    json!({
        "apiVersion": "olm.operatorframework.io/v1",
        "kind": "ClusterCatalog",
        "metadata": {"name": object.name(), "annotations": object.annotations()},
        "spec": {"source": source},
    })
}

/// Returns `REPOSITORY@DIGEST`, as the status names what was resolved.
pub(crate) fn canonical(source: &Source, digest: &str) -> String {
    format!(
        "{}@{digest}",
        ImageReference::new(&source.to_string()).name()
    )
}

/// Refuses what catalogd refuses, so that the same object has the same status.
fn check_reference(source: &Source, text: &str) -> Result<(), String> {
    let Source::Registry { reference, pinned } = source else {
        return Err(format!("{source} is not an image in a registry"));
    };
    if pinned.is_some() && reference.tag().is_some() {
        return Err(format!(
            "{source} has both a tag and a digest: remove one of them"
        ));
    }
    let full = source.to_string();
    if full != text {
        return Err(format!(
            "{text} is not the full name of the image: write {full}"
        ));
    }
    Ok(())
}

fn policy_file() -> Option<PathBuf> {
    let home = std::env::var_os("HOME")
        .map(PathBuf::from)
        .unwrap_or_default();
    // An absolute path replaces the home directory.
    let mut files = POLICY_FILES.iter().map(|file| home.join(file));
    files.find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn load_spec(
        spec: &Value,
        annotations: &Value,
        policy: Option<&Path>,
    ) -> Result<Catalog, String> {
        let object = json!({"metadata": {"name": "a", "annotations": annotations}, "spec": spec});
        load(&serde_json::from_value(object).unwrap(), policy)
    }

    fn load_image(image: &Value) -> Result<Catalog, String> {
        let spec = json!({"source": {"type": "Image", "image": image}, "priority": 7, "availabilityMode": "Available", "newer": 1});
        load_spec(&spec, &Value::Null, None)
    }

    /// Returns the catalog of a right image with these annotations and this policy.
    fn load_with(annotations: &Value, policy: Option<&Path>) -> Result<Catalog, String> {
        let spec = json!({"source": {"type": "Image", "image": {"ref": "quay.io/a/b:v1"}}});
        load_spec(&spec, annotations, policy)
    }

    #[test]
    fn catalog_has_source_and_interval_of_its_object() {
        let catalog =
            load_image(&json!({"ref": "quay.io/a/b:v1", "pollIntervalMinutes": 10})).unwrap();
        assert_eq!(catalog.source.to_string(), "quay.io/a/b:v1");
        assert_eq!(catalog.poll_interval(), Some(Duration::from_secs(600)));
        assert_eq!(catalog.name.as_str(), "a");
        for reference in [
            "quay.io/a/b:v1".to_owned(),
            format!("quay.io/a/b@sha256:{HEX}"),
        ] {
            let catalog = load_image(&json!({"ref": reference})).unwrap();
            assert_eq!(catalog.poll_interval(), None, "{reference}");
        }
    }

    #[test]
    fn catalog_of_wrong_object_is_refused_with_a_hint() {
        for (reference, hint) in [
            ("a/b:v1", "docker.io/a/b:v1"),
            (
                &format!("quay.io/a/b:v1@sha256:{HEX}"),
                "remove one of them",
            ),
            ("docker.io/b:v1", "write docker.io/library/b:v1"),
            ("docker://quay.io/a/b:v1", "write quay.io/a/b:v1"),
            ("dir:/etc", "not an image in a registry"),
            ("https://a.io/c.tar.gz", "not an image in a registry"),
            ("quay.io/a/b", "quay.io/a/b:latest"),
        ] {
            let problem = load_image(&json!({"ref": reference})).unwrap_err();
            assert!(problem.contains(hint), "{problem}");
        }
        let without = |spec: Value| load_spec(&spec, &Value::Null, None).unwrap_err();
        let problem = without(json!({"source": {"type": "Image"}}));
        let missing = "spec, source: the field image is missing";
        assert!(problem.contains(missing), "{problem}");
        without(Value::Null);
    }

    #[test]
    fn annotations_of_others_are_passed_over() {
        let annotations = json!({"example.com/a": "b", "catalog-mirror/limits": "{documents: 7}"});
        assert!(load_with(&annotations, None).unwrap().limits.is_some());
        assert!(load_with(&json!({"catalog-mirror/limit": "{}"}), None).is_err());
    }

    #[test]
    fn policy_that_cannot_be_used_is_no_fault_of_the_object() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let with = |text: &str| {
            std::fs::write(&file, text).unwrap();
            load_with(&Value::Null, Some(file.path()))
        };
        let accepting = with(r#"{"default": [{"type": "insecureAcceptAnything"}]}"#).unwrap();
        assert!(accepting.source.pulled().unwrap().policy.is_some());
        assert!(with("{").unwrap_err().contains("signature policy"));
    }
}
