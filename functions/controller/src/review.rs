//! The answer to a review of catalogd's mutating webhook (Kubernetes, `admission.k8s.io/v1`).

use std::fmt;

use k8s_openapi::ByteString;
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use serde_json::{Value, json};

use crate::catalog::NAME_LABEL;

/// Maximum length of a name, in bytes: that of a DNS subdomain, the longest name that Kubernetes
/// allows an object.
const NAME_MAX: usize = 253;

/// A review, as far as the answer follows from it. serde passes over all other fields without
/// keeping them, so that a review takes no more memory than its body.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AdmissionReview {
    api_version: Option<ShortText>,
    kind: Option<ShortText>,
    request: Option<ReviewRequest>,
}

#[derive(Deserialize)]
struct ReviewRequest {
    uid: Option<ShortText>,
    kind: Option<GroupKind>,
    name: Option<ShortText>,
    /// `None` in a deletion.
    object: Option<ReviewedObject>,
}

#[derive(Deserialize)]
struct GroupKind {
    group: Option<ShortText>,
    kind: Option<ShortText>,
}

#[derive(Deserialize)]
struct ReviewedObject {
    metadata: Option<ReviewedMetadata>,
}

#[derive(Deserialize)]
struct ReviewedMetadata {
    name: Option<ShortText>,
    labels: Option<ReviewedLabels>,
}

#[derive(Deserialize)]
struct ReviewedLabels {
    /// Label [`NAME_LABEL`].
    #[serde(rename = "olm.operatorframework.io/metadata.name")]
    name: Option<ShortText>,
}

/// Text of at most [`NAME_MAX`] bytes. A longer one is refused before it is copied.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ShortText(String);

impl<'de> Deserialize<'de> for ShortText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Short;

        impl Visitor<'_> for Short {
            type Value = ShortText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "text of at most {NAME_MAX} bytes")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<ShortText, E> {
                if text.len() > NAME_MAX {
                    return Err(E::invalid_length(text.len(), &self));
                }
                Ok(ShortText(text.to_owned()))
            }
        }

        deserializer.deserialize_str(Short)
    }
}

/// Returns the answer to the review in a body.
///
/// # Errors
/// Text for the client if the body is no review.
pub(crate) fn answer(body: &[u8]) -> Result<Value, &'static str> {
    let review: AdmissionReview = serde_json::from_slice(body)
        .map_err(|_| "the body is not JSON, or not an AdmissionReview")?;
    if !is_text(review.api_version.as_ref(), "admission.k8s.io/v1")
        || !is_text(review.kind.as_ref(), "AdmissionReview")
    {
        return Err("the body is not an AdmissionReview of admission.k8s.io/v1");
    }
    let request = review.request.ok_or("the review has no request")?;
    let uid = request.uid.as_ref().filter(|uid| !uid.0.is_empty());
    let uid = uid.ok_or("the request has no uid")?;
    let mut response = json!({"uid": uid.0, "allowed": true});
    let is_catalog = request.kind.as_ref().is_some_and(|kind| {
        is_text(kind.group.as_ref(), "olm.operatorframework.io")
            && is_text(kind.kind.as_ref(), "ClusterCatalog")
    });
    if is_catalog && let Some(patch) = patch(request)? {
        response["patchType"] = json!("JSONPatch");
        response["patch"] = json!(ByteString(json!([patch]).to_string().into_bytes()));
    }
    Ok(
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}),
    )
}

fn is_text(found: Option<&ShortText>, expected: &str) -> bool {
    found.is_some_and(|found| found.0 == expected)
}

/// Returns the operation that sets the label; `None` if it is right, or if there is no object, as
/// in a deletion.
fn patch(request: ReviewRequest) -> Result<Option<Value>, &'static str> {
    let Some(object) = request.object else {
        return Ok(None);
    };
    let metadata = object.metadata.ok_or("the object has no metadata")?;
    // Not in the object yet if the API server makes it.
    let name = metadata.name.or(request.name);
    let Some(name) = name.filter(|name| !name.0.is_empty()) else {
        return Ok(None);
    };
    let operation = match metadata.labels {
        None => {
            json!({"op": "add", "path": "/metadata/labels", "value": {NAME_LABEL: name.0}})
        }
        Some(labels) if labels.name.as_ref() == Some(&name) => return Ok(None),
        Some(_) => {
            // RFC 6901, section 3.
            let path = format!(
                "/metadata/labels/{}",
                NAME_LABEL.replace('~', "~0").replace('/', "~1")
            );
            json!({"op": "add", "path": path, "value": name.0})
        }
    };
    Ok(Some(operation))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a review of an object of a kind, in the group of ClusterCatalogs.
    pub(crate) fn review(kind: &str, object: &Value) -> Value {
        let kind = json!({"group": "olm.operatorframework.io", "version": "v1", "kind": kind});
        let request = json!({"uid": "u", "kind": kind, "name": "a", "object": object});
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
    }

    #[test]
    fn answer_adds_the_label_and_keeps_others() {
        let response = |kind, object: &Value| {
            let mut answer = answer(review(kind, object).to_string().as_bytes()).unwrap();
            answer["response"].take()
        };
        let unchanged = json!({"uid": "u", "allowed": true});
        let patched = |path, value: Value| {
            let patch = json!([{"op": "add", "path": path, "value": value}]).to_string();
            json!({"uid": "u", "allowed": true, "patchType": "JSONPatch", "patch": ByteString(patch.into_bytes())})
        };
        let all = patched("/metadata/labels", json!({NAME_LABEL: "a"}));
        let set = patched(
            "/metadata/labels/olm.operatorframework.io~1metadata.name",
            json!("a"),
        );
        for (metadata, expected) in [
            (json!({"name": "a"}), &all),
            (json!({"generateName": "a"}), &all),
            (json!({"name": "a", "labels": null}), &all),
            (json!({"name": "a", "labels": {}}), &set),
            (json!({"name": "a", "labels": {"b": "c"}}), &set),
            (json!({"name": "a", "labels": {NAME_LABEL: "b"}}), &set),
            (
                json!({"name": "a", "labels": {NAME_LABEL: "a"}}),
                &unchanged,
            ),
        ] {
            let object = json!({"metadata": metadata, "spec": {"newer": [1, {"a": null}]}});
            assert_eq!(response("ClusterCatalog", &object), *expected, "{object}");
        }
        assert_eq!(
            response("ClusterCatalog", &Value::Null),
            unchanged,
            "a deletion"
        );
        let object = json!({"metadata": {"name": "a"}});
        assert_eq!(response("ClusterExtension", &object), unchanged);
    }

    #[test]
    fn answer_takes_names_up_to_the_longest_of_kubernetes() {
        let named = |length: usize| {
            let object = json!({"metadata": {"name": "a".repeat(length)}});
            answer(review("ClusterCatalog", &object).to_string().as_bytes())
        };
        assert!(named(NAME_MAX).is_ok());
        assert!(named(NAME_MAX + 1).is_err());
    }
}
