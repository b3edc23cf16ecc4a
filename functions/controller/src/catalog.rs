//! `ClusterCatalog`, as its CustomResourceDefinition of olm.operatorframework.io/v1 declares it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use k8s_openapi::{ClusterResourceScope, Metadata, Resource};
use kube::ResourceExt;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Finalizer that keeps a ClusterCatalog until its content is no longer served.
pub(crate) const FINALIZER: &str = "olm.operatorframework.io/delete-server-cache";

/// Label with the name of the object. Operator-controller selects catalogs by it.
pub(crate) const NAME_LABEL: &str = "olm.operatorframework.io/metadata.name";

/// Beginning of the annotations that decide about the content.
const OWN_ANNOTATIONS: &str = "catalog-mirror/";

/// A ClusterCatalog.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ClusterCatalog {
    pub(crate) metadata: ObjectMeta,
    /// Not typed: an object that this program does not understand must not keep the others from
    /// being listed.
    #[serde(default)]
    pub(crate) spec: Value,
    #[serde(default)]
    pub(crate) status: CatalogStatus,
}

/// The parts of an object that decide about its content. A change of any of them is a reason to
/// poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectVersion {
    /// Identifier of the object. An object of the same name that was created anew is another one.
    pub(crate) uid: String,
    /// Generation, which grows with each change of the spec and with a deletion, but not with one
    /// of an annotation.
    pub(crate) generation: i64,
    /// Annotations of this program.
    pub(crate) annotations: BTreeMap<String, String>,
}

/// `status` of a ClusterCatalog. Absent fields are written as `null`, so that a merge patch removes
/// them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CatalogStatus {
    #[serde(default)]
    pub(crate) conditions: Vec<Condition>,
    /// Content that is served: `{"type": "Image", "image": {"ref": "REPOSITORY@DIGEST"}}`.
    pub(crate) resolved_source: Option<Value>,
    /// URL to which clients add `/api/v1/all`: `{"base": URL}`.
    pub(crate) urls: Option<Value>,
    pub(crate) last_unpacked: Option<Time>,
}

impl Resource for ClusterCatalog {
    const API_VERSION: &'static str = "olm.operatorframework.io/v1";
    const GROUP: &'static str = "olm.operatorframework.io";
    const KIND: &'static str = "ClusterCatalog";
    const VERSION: &'static str = "v1";
    const URL_PATH_SEGMENT: &'static str = "clustercatalogs";
    type Scope = ClusterResourceScope;
}

impl Metadata for ClusterCatalog {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl ClusterCatalog {
    /// Returns the name. The API server gives every object one.
    pub(crate) fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Returns the generation, which grows with each change of the spec and with a deletion.
    pub(crate) fn generation(&self) -> i64 {
        self.metadata.generation.unwrap_or_default()
    }

    /// Returns the parts that decide about the content.
    pub(crate) fn version(&self) -> ObjectVersion {
        let mut annotations = self.annotations().clone();
        annotations.retain(|name, _| name.starts_with(OWN_ANNOTATIONS));
        ObjectVersion {
            uid: self.uid().unwrap_or_default(),
            generation: self.generation(),
            annotations,
        }
    }

    /// True if the object waits for its finalizers.
    pub(crate) const fn is_deleted(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// True if `spec.availabilityMode` is `Unavailable`.
    pub(crate) fn is_unavailable(&self) -> bool {
        self.spec.get("availabilityMode").and_then(Value::as_str) == Some("Unavailable")
    }

    /// True if the object has our finalizer.
    pub(crate) fn has_finalizer(&self) -> bool {
        self.finalizers()
            .iter()
            .any(|finalizer| finalizer == FINALIZER)
    }

    /// True if the label with the name is right.
    pub(crate) fn has_label(&self) -> bool {
        self.labels().get(NAME_LABEL).map(String::as_str) == Some(self.name())
    }
}

impl CatalogStatus {
    /// True if the content is served, as far as the status tells.
    pub(crate) fn is_serving(&self) -> bool {
        let mut conditions = self.conditions.iter();
        conditions.any(|condition| condition.type_ == "Serving" && condition.status == "True")
    }

    /// Returns `REPOSITORY@DIGEST` of the content that clients expect; `None` if none is served.
    pub(crate) fn served(&self) -> Option<&str> {
        self.resolved().filter(|_| self.is_serving())
    }

    /// Returns the digest of the image that clients expect.
    pub(crate) fn served_digest(&self) -> Option<&str> {
        Some(self.served()?.rsplit_once('@')?.1)
    }

    /// Returns `REPOSITORY@DIGEST` of the content that was published last.
    pub(crate) fn resolved(&self) -> Option<&str> {
        self.resolved_source
            .as_ref()?
            .pointer("/image/ref")?
            .as_str()
    }
}
