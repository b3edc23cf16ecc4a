//! What a cluster needs to consume a catalog of the mirror, as an image that its registry API serves.

use std::time::Duration;

use anyhow::Context;
use layout::{CatalogName, Sha256};
use serde_json::{Value, json};

use super::print_yaml;

/// The tag of what is published.
const LATEST: &str = "latest";

/// A CatalogSource's name becomes that of a Service, a DNS-1123 label.
const MOST_NAME_BYTES: usize = 63;

/// A catalog of the mirror, as clusters see it.
pub(crate) struct Target {
    pub(crate) catalog: CatalogName,
    image: String,
    /// How often clusters look; none for an image that never changes.
    interval: Option<Duration>,
}

impl Target {
    /// The catalog below that host, or only the image with that digest.
    pub(crate) fn new(
        host: &str,
        catalog: &CatalogName,
        pinned: Option<Sha256>,
        interval: Duration,
    ) -> anyhow::Result<Self> {
        let reference = pinned.map_or_else(|| format!(":{LATEST}"), |index| format!("@sha256:{index}"));
        let target = Self {
            catalog: catalog.clone(),
            image: format!("{host}/{catalog}{reference}"),
            interval: pinned.is_none().then_some(interval),
        };
        let length = "cs-".len() + target.suffix().len();
        (length <= MOST_NAME_BYTES)
            .then_some(target)
            .with_context(|| format!("the name of {catalog} is too long: its manifests would have {length} characters"))
    }

    /// As oc-mirror v2 names its manifests: the repository and the tag, dots being dashes.
    pub(crate) fn suffix(&self) -> String {
        format!("{}-{LATEST}", self.catalog).replace('.', "-")
    }
}

/// For OLM v1.
pub(crate) fn cluster_catalog(target: &Target) -> Value {
    let mut image = json!({"ref": target.image});
    if let Some(interval) = target.interval {
        image["pollIntervalMinutes"] = json!(minutes(interval));
    }
    json!({
        "apiVersion": "olm.operatorframework.io/v1",
        "kind": "ClusterCatalog",
        "metadata": {"name": format!("cc-{}", target.suffix())},
        "spec": {"source": {"type": "Image", "image": image}},
    })
}

/// For OLM v0. The image holds FBC and nothing that runs: OLM extracts it and serves it with an `opm` of its own.
pub(crate) fn catalog_source(target: &Target, namespace: &str) -> Value {
    let mut spec = json!({
        "displayName": target.catalog,
        "grpcPodConfig": {
            "extractContent": {"catalogDir": "/configs"},
            "securityContextConfig": "restricted",
        },
        "image": target.image,
        "sourceType": "grpc",
    });
    if let Some(interval) = target.interval {
        let interval = format!("{}m", minutes(interval));
        spec["updateStrategy"] = json!({"registryPoll": {"interval": interval}});
    }
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "CatalogSource",
        "metadata": {"name": format!("cs-{}", target.suffix()), "namespace": namespace},
        "spec": spec,
    })
}

/// One YAML document each.
pub(crate) fn print(documents: &[Value]) -> anyhow::Result<()> {
    print_yaml(documents)
}

/// Clusters count in minutes, at least one.
fn minutes(interval: Duration) -> u64 {
    interval.as_secs().div_ceil(60).max(1)
}

#[cfg(test)]
mod tests {
    use config::Reader;

    use super::*;

    fn target(pinned: Option<Sha256>) -> Target {
        let catalog = "community.v4-20".parse().unwrap();
        Target::new("mirror.example:8443", &catalog, pinned, Duration::from_secs(90)).unwrap()
    }

    #[test]
    fn manifests_are_what_olm_reads() {
        insta::assert_snapshot!(yaml(&[cluster_catalog(&target(None)), catalog_source(&target(None), "olm")]), @r"
        apiVersion: olm.operatorframework.io/v1
        kind: ClusterCatalog
        metadata:
          name: cc-community-v4-20-latest
        spec:
          source:
            image:
              pollIntervalMinutes: 2
              ref: mirror.example:8443/community.v4-20:latest
            type: Image
        ---
        apiVersion: operators.coreos.com/v1alpha1
        kind: CatalogSource
        metadata:
          name: cs-community-v4-20-latest
          namespace: olm
        spec:
          displayName: community.v4-20
          grpcPodConfig:
            extractContent:
              catalogDir: /configs
            securityContextConfig: restricted
          image: mirror.example:8443/community.v4-20:latest
          sourceType: grpc
          updateStrategy:
            registryPoll:
              interval: 2m
        ");
        insta::assert_snapshot!(yaml(&[cluster_catalog(&target(Some(Sha256::of(b""))))]), @r"
        apiVersion: olm.operatorframework.io/v1
        kind: ClusterCatalog
        metadata:
          name: cc-community-v4-20-latest
        spec:
          source:
            image:
              ref: mirror.example:8443/community.v4-20@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
            type: Image
        ");
    }

    fn yaml(documents: &[Value]) -> String {
        super::super::yaml(documents).unwrap()
    }

    /// The mirror reads ClusterCatalogs itself, with the rules of the CRD.
    #[test]
    fn the_mirror_accepts_its_own_cluster_catalogs() {
        for pinned in [None, Some(Sha256::of(b""))] {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), yaml(&[cluster_catalog(&target(pinned))])).unwrap();
            let mut reader = Reader::new(Duration::from_secs(60));
            reader.file(file.path());
            let config = reader.finish().unwrap();
            assert_eq!(config.catalogs[0].name.as_str(), "cc-community-v4-20-latest");
            let source = config.catalogs[0].source.to_string();
            assert!(source.starts_with("mirror.example:8443/community.v4-20"), "{source}");
        }
    }

    #[test]
    fn a_name_that_no_service_can_have_is_refused() {
        let named =
            |length: usize| Target::new("h.example", &"a".repeat(length).parse().unwrap(), None, Duration::ZERO);
        assert!(named(63 - "cs--latest".len()).is_ok());
        assert!(named(64 - "cs--latest".len()).is_err());
    }
}
