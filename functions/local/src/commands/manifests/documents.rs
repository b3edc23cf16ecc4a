//! Manifests by which a cluster uses a catalog of the mirror, as an image that the mirror serves.

use std::time::Duration;

use model::{CatalogName, Sha256};
use olm::Reference;
use serde_json::{Value, json};

/// Tag under which the mirror serves the published state.
const LATEST: &str = "latest";

/// Longest part of a tag in the name of a manifest, in bytes (`hashTruncLen` of oc-mirror v2).
const TAG_BYTES_MAX: usize = 12;

/// Longest name of a manifest. OLM names a Service after a CatalogSource, and that name is a DNS-1123 label.
const NAME_BYTES_MAX: usize = 63;

/// Repository and tag of a catalog, from which oc-mirror v2 makes the names of its manifests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CatalogRepository {
    pub(crate) repository: String,
    pub(crate) tag: String,
}

impl CatalogRepository {
    /// Returns the repository and the tag of a catalog that is published from a source. The name of an entry of an ImageSetConfiguration has the tag of
    /// its image in it, such as `redhat-operator-index-v4-20`. Any other catalog has the tag under which the mirror serves it.
    pub(crate) fn new(catalog: &CatalogName, source: &str) -> Self {
        let input = source.strip_prefix("compose:");
        // A comma separates several inputs.
        let input = input.and_then(|text| text.rsplit_once('#')).map(|(input, _)| input);
        let input = input.filter(|input| input.contains('/') && !input.contains(','));
        let tag = input.map(Reference::new).filter(|input| !input.is_digest);
        let tag = tag.map_or_else(|| LATEST.to_owned(), |input| input.version);
        let in_name = format!("-{}", tag.to_lowercase().replace(['.', '_'], "-"));
        match catalog.as_str().strip_suffix(&in_name) {
            Some(repository) if !repository.is_empty() => Self {
                repository: repository.to_owned(),
                tag,
            },
            _ => Self {
                repository: catalog.to_string(),
                tag: LATEST.to_owned(),
            },
        }
    }

    /// Returns the end of the names of the manifests: repository and tag, dashes for dots.
    fn suffix(&self) -> String {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let tag = self.tag.chars().take(TAG_BYTES_MAX).map(|c| c.to_ascii_lowercase());
        let tag: String = tag.map(|c| if is_plain(c) { c } else { '-' }).collect();
        format!("{}-{}", self.repository, tag.trim_end_matches('-')).replace('.', "-")
    }
}

/// A catalog of the mirror and its image reference.
pub(crate) struct ManifestTarget {
    pub(crate) catalog: CatalogName,
    suffix: String,
    image: String,
    /// Time between two polls by clusters. `None` for an image that is pinned by digest.
    interval: Option<Duration>,
}

impl ManifestTarget {
    /// Returns the catalog on a mirror: by tag, or pinned to the digest of an image index.
    ///
    /// # Errors
    /// A name that is too long for a manifest.
    pub(crate) fn new(
        host: &str,
        catalog: &CatalogName,
        image: &CatalogRepository,
        pinned: Option<Sha256>,
        interval: Duration,
    ) -> anyhow::Result<Self> {
        let reference = pinned.map_or_else(|| format!(":{LATEST}"), |index| format!("@sha256:{index}"));
        Self {
            catalog: catalog.clone(),
            suffix: image.suffix(),
            image: format!("{host}/{catalog}{reference}"),
            interval: pinned.is_none().then_some(interval),
        }
        .checked()
    }

    fn checked(self) -> anyhow::Result<Self> {
        let length = "cs-".len() + self.suffix.len();
        anyhow::ensure!(
            length <= NAME_BYTES_MAX,
            "the name of {} is too long: its manifests would have {length} characters",
            self.catalog
        );
        Ok(self)
    }

    /// Returns the end of the names of the manifests, as oc-mirror v2 builds it: repository and tag, dashes for dots.
    pub(crate) fn suffix(&self) -> &str {
        &self.suffix
    }
}

/// Returns the manifest for OLM v1.
pub(crate) fn cluster_catalog(target: &ManifestTarget) -> Value {
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

/// Returns the manifest for OLM v0. The image contains only FBC, so OLM extracts it and serves it with its own `opm`.
pub(crate) fn catalog_source(target: &ManifestTarget, namespace: &str) -> Value {
    let mut source = grpc_source(target, namespace);
    source["spec"]["grpcPodConfig"] = json!({
        "extractContent": {"catalogDir": "/configs"},
        "securityContextConfig": "restricted",
    });
    source["spec"]["image"] = json!(target.image);
    if let Some(interval) = target.interval {
        let interval = format!("{}m", minutes(interval));
        source["spec"]["updateStrategy"] = json!({"registryPoll": {"interval": interval}});
    }
    source
}

/// Returns a manifest for OLM v0 without the place that answers.
fn grpc_source(target: &ManifestTarget, namespace: &str) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "CatalogSource",
        "metadata": {"name": format!("cs-{}", target.suffix()), "namespace": namespace},
        "spec": {"displayName": target.catalog, "sourceType": "grpc"},
    })
}

/// Host at which clusters reach the registry API of a mirror.
pub(crate) enum GrpcHost<'a> {
    /// Name in DNS, below which each catalog has a name of its own.
    Name(&'a str),
    /// Service of the cluster itself, and its namespace.
    Service(&'a str, &'a str),
}

impl<'a> GrpcHost<'a> {
    /// Returns the host of a URL, without its port.
    pub(crate) fn of(host: &'a str) -> Self {
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let mut labels = name.split('.');
        match (labels.next(), labels.next(), labels.next()) {
            (Some(service), Some(namespace), Some("svc")) => Self::Service(service, namespace),
            _ => Self::Name(name),
        }
    }
}

/// Returns the manifests for OLM v0 that asks the mirror itself, without a pod for each catalog: a CatalogSource, and in a cluster
/// a Service that gives the pods of the mirror the name of the catalog.
pub(crate) fn addressed_catalog_source(
    target: &ManifestTarget,
    host: &GrpcHost<'_>,
    port: u16,
    namespace: &str,
) -> Vec<Value> {
    // A label of DNS has no dots.
    let label = target.catalog.as_str().replace('.', "-");
    let mut source = grpc_source(target, namespace);
    let (address, service) = match host {
        GrpcHost::Name(name) => (format!("{label}.{name}:{port}"), None),
        GrpcHost::Service(service, of_mirror) => (
            format!("{label}.{of_mirror}.svc:{port}"),
            Some(json!({
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": label, "namespace": of_mirror},
                "spec": {
                    "ports": [{"name": "grpc", "port": port, "targetPort": port}],
                    "selector": {"app.kubernetes.io/name": service},
                },
            })),
        ),
    };
    source["spec"]["address"] = json!(address);
    [source].into_iter().chain(service).collect()
}

/// Returns the interval in whole minutes, at least one.
fn minutes(interval: Duration) -> u64 {
    interval.as_secs().div_ceil(60).max(1)
}

#[cfg(test)]
mod tests {
    use config::ConfigLoader;

    use super::*;

    fn latest(catalog: &str) -> CatalogRepository {
        CatalogRepository {
            repository: catalog.to_owned(),
            tag: LATEST.to_owned(),
        }
    }

    fn target(pinned: Option<Sha256>) -> ManifestTarget {
        let (name, image) = ("community.v4-20", latest("community.v4-20"));
        let catalog = name.parse().unwrap();
        ManifestTarget::new("mirror.example:8443", &catalog, &image, pinned, Duration::from_secs(90)).unwrap()
    }

    #[test]
    fn manifests_have_the_fields_that_olm_reads() {
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
        crate::output::yaml(documents).unwrap()
    }

    #[test]
    fn addressed_catalog_source_names_the_catalog_in_its_host() {
        let manifests = |host: &str| {
            yaml(&addressed_catalog_source(
                &target(None),
                &GrpcHost::of(host),
                50051,
                "olm",
            ))
        };
        insta::assert_snapshot!(manifests("mirror.olm-system.svc:8080"), @r"
        apiVersion: operators.coreos.com/v1alpha1
        kind: CatalogSource
        metadata:
          name: cs-community-v4-20-latest
          namespace: olm
        spec:
          address: community-v4-20.olm-system.svc:50051
          displayName: community.v4-20
          sourceType: grpc
        ---
        apiVersion: v1
        kind: Service
        metadata:
          name: community-v4-20
          namespace: olm-system
        spec:
          ports:
          - name: grpc
            port: 50051
            targetPort: 50051
          selector:
            app.kubernetes.io/name: mirror
        ");
        let outside = manifests("mirror.example:8443");
        assert!(
            outside.contains("address: community-v4-20.mirror.example:50051"),
            "{outside}"
        );
        assert!(!outside.contains("Service"), "{outside}");
    }

    /// The configuration checks ClusterCatalogs with the rules of the CRD.
    #[test]
    fn cluster_catalog_is_accepted_as_configuration() {
        for pinned in [None, Some(Sha256::of(b""))] {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), yaml(&[cluster_catalog(&target(pinned))])).unwrap();
            let mut loader = ConfigLoader::new(Duration::from_secs(60));
            loader.file(file.path());
            let config = loader.finish().unwrap();
            assert_eq!(config.catalogs[0].name.as_str(), "cc-community-v4-20-latest");
            let source = config.catalogs[0].source.to_string();
            assert!(source.starts_with("mirror.example:8443/community.v4-20"), "{source}");
        }
    }

    /// Facts of oc-mirror v2 (`generateCatalogSource`): `cs-`, the last part of the repository, at most 12 characters of the tag.
    #[test]
    fn manifest_names_are_those_of_oc_mirror() {
        for (name, source, expected) in [
            (
                "community-operator-index-v4-20",
                "compose:quay.io/redhat/community-operator-index:v4.20#0123456789ab",
                "community-operator-index-v4-20",
            ),
            (
                "index-v4-20-2026-11-24",
                "compose:registry.example:5000/index:v4.20-2026-11-24#0",
                "index-v4-20-2026-1",
            ),
            (
                "operatorhubio",
                "quay.io/operatorhubio/catalog:latest",
                "operatorhubio-latest",
            ),
            // The repository is targetCatalog, whose name in the mirror has no tag.
            ("mine", "compose:quay.io/redhat/index:v4.20#0", "mine-latest"),
            ("team-v1", "compose:quay.io/a/b:v1,quay.io/a/c:v1#0", "team-v1-latest"),
        ] {
            assert_eq!(
                CatalogRepository::new(&name.parse().unwrap(), source).suffix(),
                expected
            );
        }
    }

    #[test]
    fn manifest_name_longer_than_63_bytes_is_refused() {
        let named = |length: usize| {
            let name = "a".repeat(length);
            let catalog = name.parse().unwrap();
            ManifestTarget::new("h.example", &catalog, &latest(&name), None, Duration::ZERO)
        };
        assert!(named(63 - "cs--latest".len()).is_ok());
        assert!(named(64 - "cs--latest".len()).is_err());
    }
}
