//! Manifests by which a cluster uses a catalog of the mirror, as an image that the mirror serves,
//! and the folder of all files for it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::text::{is_unprintable, printable_json, value_without_secrets};
use model::{CatalogName, ImageReference, Sha256, SourceRef};
use serde::Serialize;
use serde_json::{Value, json};
use source::Source;

use crate::{CarriedImage, CarryError, ImageMirrors, SayLine, TargetRegistry};

/// Tag under which the mirror serves the published state.
pub const LATEST: &str = "latest";

/// Longest part of a tag in the name of a manifest, in bytes (`hashTruncLen` of oc-mirror v2).
const TAG_BYTES_MAX: usize = 12;

/// Longest name of a manifest. OLM names a Service after a CatalogSource, and that name is a
/// DNS-1123 label.
const NAME_BYTES_MAX: usize = 63;

/// Longest part of the name of a mirror set that tells its catalogs, in bytes. With a prefix and a
/// hash it fits into a DNS-1123 subdomain.
const SET_NAME_BYTES_MAX: usize = 200;

/// Repository and tag of a catalog, from which oc-mirror v2 makes the names of its manifests, and the
/// template of one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogRepository {
    /// Path of the repository in a registry.
    pub repository: String,
    /// Tag of the image.
    pub tag: String,
    /// Labels, annotations and `spec` for the CatalogSource.
    pub catalog_source: Option<Value>,
}

impl CatalogRepository {
    /// Returns the repository and the tag of a catalog that is published from a source. Those of an
    /// entry of an ImageSetConfiguration are those of oc-mirror v2. Any other catalog has the tag
    /// under which the mirror serves it.
    pub fn new(catalog: &CatalogName, source: &SourceRef) -> Self {
        let target = source.target.as_deref().and_then(Self::of_target);
        let named = target.unwrap_or_else(|| Self::of_name(catalog, &source.reference));
        Self {
            catalog_source: source.catalog_source.clone(),
            ..named
        }
    }

    /// Reads a repository with its tag, such as `redhat/redhat-operator-index:v4.20`; `None` for
    /// another text.
    pub fn of_target(target: &str) -> Option<Self> {
        let (repository, tag) = target.rsplit_once(':')?;
        let example: Result<Source, _> = format!("registry.example/{target}").parse();
        example.ok()?;
        Some(Self {
            repository: repository.to_owned(),
            tag: tag.to_owned(),
            catalog_source: None,
        })
    }

    /// Returns what a state tells that names no target, because an earlier version of the program
    /// published it: the name of an entry has the tag of its image in it.
    fn of_name(catalog: &CatalogName, source: &str) -> Self {
        let input = source.strip_prefix("compose:");
        // A comma separates several inputs.
        let input = input
            .and_then(|text| text.rsplit_once('#'))
            .map(|(input, _)| input);
        let input = input.filter(|input| input.contains('/') && !input.contains(','));
        let tag = input.and_then(|input| ImageReference::new(input).tag);
        let tag = tag.unwrap_or_else(|| LATEST.to_owned());
        let in_name = format!("-{}", tag.to_lowercase().replace(['.', '_'], "-"));
        match catalog.as_str().strip_suffix(&in_name) {
            Some(repository) if !repository.is_empty() => Self {
                repository: repository.to_owned(),
                tag,
                catalog_source: None,
            },
            _ => Self {
                repository: catalog.to_string(),
                tag: LATEST.to_owned(),
                catalog_source: None,
            },
        }
    }

    /// Returns the end of the names of the manifests: the last part of the repository and the tag,
    /// dashes for dots.
    pub fn suffix(&self) -> String {
        let repository = self.repository.rsplit('/').next().unwrap_or_default();
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let tag = self
            .tag
            .chars()
            .take(TAG_BYTES_MAX)
            .map(|c| c.to_ascii_lowercase());
        let tag: String = tag.map(|c| if is_plain(c) { c } else { '-' }).collect();
        format!("{repository}-{}", tag.trim_end_matches('-')).replace('.', "-")
    }
}

/// A catalog of the mirror and its image reference.
pub struct ManifestTarget {
    /// Name of the catalog in the mirror.
    pub catalog: CatalogName,
    /// End of the names of the manifests, as oc-mirror v2 builds it: repository and tag, dashes for
    /// dots.
    pub suffix: String,
    /// Reference of the image.
    pub image: String,
    /// Time between two polls by clusters. `None` for an image that is pinned by digest.
    interval: Option<Duration>,
    /// Labels, annotations and `spec` for the CatalogSource.
    catalog_source: Option<Value>,
}

impl ManifestTarget {
    /// Returns the catalog at an image reference, which clusters poll if there is an interval.
    ///
    /// # Errors
    /// A name that is too long for a manifest.
    pub fn new(
        image: String,
        catalog: &CatalogName,
        names: &CatalogRepository,
        interval: Option<Duration>,
    ) -> Result<Self, CarryError> {
        let suffix = names.suffix();
        let length = "cs-".len() + suffix.len();
        if length > NAME_BYTES_MAX {
            return Err(CarryError::Refused(format!(
                "the name of {catalog} is too long: its manifests would have {length} characters"
            )));
        }
        Ok(Self {
            catalog: catalog.clone(),
            suffix,
            image,
            interval,
            catalog_source: names.catalog_source.clone(),
        })
    }
}

/// Refuses catalogs whose manifests have one name, because dots become dashes.
///
/// # Errors
/// The names of two of them.
pub fn check_names(targets: &[ManifestTarget]) -> Result<(), CarryError> {
    let mut names: BTreeMap<&str, &CatalogName> = BTreeMap::new();
    for target in targets {
        if let Some(other) = names.insert(&target.suffix, &target.catalog) {
            let name = &target.catalog;
            return Err(CarryError::Refused(format!(
                "the manifests of {other} and {name} would have one name; name the catalogs one by one"
            )));
        }
    }
    Ok(())
}

/// Returns host and port of the URL of a mirror. An image reference contains nothing else of it.
///
/// # Errors
/// A text that is no URL, and a URL that names no registry.
pub fn registry_host(url: &str) -> Result<&str, CarryError> {
    let refused = |reason: &str| {
        let shown = value_without_secrets(url);
        CarryError::Refused(format!("{shown:?} {reason}"))
    };
    let host = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    let host = host.ok_or_else(|| refused("is not a URL: write https://HOST[:PORT]"))?;
    let host = host.trim_end_matches('/');
    // The API of a registry is at the root of its host (OCI distribution specification,
    // "Endpoints").
    if host.contains('/') {
        return Err(refused(
            "has a path: clusters look for a registry at the root of its host",
        ));
    }
    // The references of the manifests look like this one, so a mistake shows here and not in a
    // cluster.
    let example: Result<Source, _> = format!("{host}/catalog:latest").parse();
    example.map_err(|error| refused(&format!("names no registry: {error}")))?;
    Ok(host)
}

/// Returns the manifest for OLM v1.
pub fn cluster_catalog(target: &ManifestTarget) -> Value {
    let mut image = json!({"ref": target.image});
    if let Some(interval) = target.interval {
        image["pollIntervalMinutes"] = json!(minutes(interval));
    }
    json!({
        "apiVersion": "olm.operatorframework.io/v1",
        "kind": "ClusterCatalog",
        "metadata": {"name": format!("cc-{}", target.suffix)},
        "spec": {"source": {"type": "Image", "image": image}},
    })
}

/// Returns the manifest for OLM v0. The image contains only FBC, so OLM extracts it and serves it
/// with its own `opm`.
pub fn catalog_source(target: &ManifestTarget, namespace: &str) -> Value {
    let mut source = grpc_source(target, namespace);
    let spec = &mut source["spec"];
    let pod = spec.get("grpcPodConfig").and_then(Value::as_object);
    let mut pod = pod.cloned().unwrap_or_default();
    pod.insert(
        "extractContent".to_owned(),
        json!({"catalogDir": "/configs"}),
    );
    pod.entry("securityContextConfig")
        .or_insert_with(|| json!("restricted"));
    spec["grpcPodConfig"] = Value::Object(pod);
    spec["image"] = json!(target.image);
    let is_polled = spec.get("updateStrategy").is_some();
    if let Some(interval) = target.interval.filter(|_| !is_polled) {
        let interval = format!("{}m", minutes(interval));
        spec["updateStrategy"] = json!({"registryPoll": {"interval": interval}});
    }
    source
}

/// Fields of `spec` that a template may set. It comes with
/// the state, so from elsewhere.
const TEMPLATE_FIELDS: [&str; 8] = [
    "description",
    "displayName",
    "grpcPodConfig",
    "icon",
    "priority",
    "publisher",
    "secrets",
    "updateStrategy",
];

/// Returns a manifest for OLM v0 without the place that answers.
fn grpc_source(target: &ManifestTarget, namespace: &str) -> Value {
    let mut source = json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "CatalogSource",
        "metadata": {"name": format!("cs-{}", target.suffix), "namespace": namespace},
        "spec": {"displayName": target.catalog, "sourceType": "grpc"},
    });
    let Some(template) = &target.catalog_source else {
        return source;
    };
    for name in ["labels", "annotations"] {
        if let Some(value) = template.get(name) {
            source["metadata"][name] = value.clone();
        }
    }
    for name in TEMPLATE_FIELDS {
        if let Some(value) = template["spec"].get(name) {
            source["spec"][name] = value.clone();
        }
    }
    source
}

/// Returns the manifests for OLM v0 that asks the mirror itself, without a pod for each catalog: a
/// CatalogSource, and in a cluster a Service that gives the pods of the mirror the name of the
/// catalog. `host` is that of the mirror; its port does not count.
pub fn addressed_catalog_source(
    target: &ManifestTarget,
    host: &str,
    port: u16,
    namespace: &str,
) -> Vec<Value> {
    // A label of DNS has no dots.
    let label = target.catalog.as_str().replace('.', "-");
    let mut source = grpc_source(target, namespace);
    if let Some(spec) = source["spec"].as_object_mut() {
        // There is no pod, and no image that could change.
        spec.remove("grpcPodConfig");
        spec.remove("updateStrategy");
    }
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let mut labels = name.split('.');
    let (address, service) = match (labels.next(), labels.next(), labels.next()) {
        (Some(service), Some(of_mirror), Some("svc")) => (
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
        // Below another name each catalog has a name of its own.
        _ => (format!("{label}.{name}:{port}"), None),
    };
    source["spec"]["address"] = json!(address);
    [source].into_iter().chain(service).collect()
}

/// Returns the interval in whole minutes, at least one.
fn minutes(interval: Duration) -> u64 {
    interval.as_secs().div_ceil(60).max(1)
}

/// Images that a registry has for clusters.
#[derive(Debug, Default)]
pub struct ClusterImages {
    /// References of the images that nodes pull.
    pub pulled: BTreeSet<String>,
    /// References of what is attached to them.
    pub attached: BTreeSet<String>,
    /// Places of images that do not lie below the name of their registry, by reference.
    pub moved: BTreeMap<String, String>,
}

impl ClusterImages {
    /// Creates the images of a list that was copied.
    pub fn new(images: &[CarriedImage]) -> Self {
        let mut all = Self::default();
        for image in images {
            // Verifiers look for what is attached to an image in the repository of the image.
            if image.attached {
                all.attached.insert(image.image.clone());
            } else if let Some(target) = &image.target {
                all.moved.insert(image.image.clone(), target.clone());
            } else {
                all.pulled.insert(image.image.clone());
            }
        }
        all
    }
}

/// Returns the name of the mirror sets of these catalogs. Sets of other catalogs have another one,
/// so that one cluster can have both.
pub fn mirror_set_name<'a>(suffixes: impl Iterator<Item = &'a str>) -> String {
    let all = suffixes.collect::<Vec<_>>().join("-");
    if all.len() <= SET_NAME_BYTES_MAX {
        return all;
    }
    let hash = Sha256::of(all.as_bytes()).to_string();
    let cut = all.char_indices().map(|(at, _)| at);
    let cut = cut
        .take_while(|at| *at <= SET_NAME_BYTES_MAX)
        .last()
        .unwrap_or_default();
    format!("{}-{}", all[..cut].trim_end_matches('-'), &hash[..8])
}

/// Returns the manifests of catalogs and the settings of nodes, each by its path in a folder.
/// `set_name` is the name of the mirror sets. `say` is told what is left out.
///
/// # Errors
/// A value that YAML cannot hold.
pub fn cluster_files(
    namespace: &str,
    catalogs: &[ManifestTarget],
    images: &ClusterImages,
    target: &TargetRegistry,
    set_name: &str,
    say: SayLine<'_>,
) -> Result<BTreeMap<String, String>, serde_saphyr::ser::Error> {
    // In files of their own: many clusters know only one of the kinds.
    let sources = catalogs
        .iter()
        .map(|target| catalog_source(target, namespace));
    let sources: Vec<Value> = sources.collect();
    let for_olm_v1: Vec<Value> = catalogs.iter().map(cluster_catalog).collect();
    let pulled = images.pulled.iter().map(String::as_str);
    let mirrors = ImageMirrors::new(target, pulled, say).with_moved(&images.moved);
    let sets = mirrors.manifests(set_name);
    let mut files = BTreeMap::from([
        ("catalogs.yaml".to_owned(), yaml(&sources)?),
        ("cluster-catalogs.yaml".to_owned(), yaml(&for_olm_v1)?),
        ("mirror-sets.yaml".to_owned(), yaml(&sets)?),
        ("registries.conf".to_owned(), mirrors.registries_conf()),
    ]);
    let hosts = mirrors.hosts_toml().into_iter();
    files.extend(hosts.map(|(host, text)| (format!("certs.d/{host}/hosts.toml"), text)));
    let mut signed = serde_json::Map::new();
    for image in &images.attached {
        let place = target.place_of(&ImageReference::new(image).name());
        signed.insert(place, json!({"use-sigstore-attachments": true}));
    }
    if !signed.is_empty() {
        // containers-registries.d(5)
        files.insert(
            "registries.d.yaml".to_owned(),
            yaml(&[json!({"docker": signed})])?,
        );
    }
    Ok(files)
}

/// Returns documents as YAML, separated by `---`.
///
/// # Errors
/// As [`cluster_files`].
pub fn yaml(documents: &[impl Serialize]) -> Result<String, serde_saphyr::ser::Error> {
    let texts: Result<Vec<String>, _> = documents.iter().map(yaml_document).collect();
    Ok(texts?.join("---\n"))
}

fn yaml_document(document: &impl Serialize) -> Result<String, serde_saphyr::ser::Error> {
    // No folded text: people search for digests with grep, so they must stay on one line.
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let text = serde_saphyr::to_string_with_options(document, options)?;
    if !text.contains(|c| c != '\n' && is_unprintable(c)) {
        return Ok(text);
    }
    // The serializer leaves marks that turn the direction of a line as they are. JSON is YAML too
    // (YAML 1.2, section 1.2), and in it they can be escaped.
    let json = serde_json::to_string_pretty(document);
    let json = json.map_err(<serde_saphyr::ser::Error as serde::ser::Error>::custom)?;
    Ok(printable_json(&json) + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_escapes_what_changes_a_terminal() {
        let plain = json!({"name": "a", "list": ["b: c"]});
        assert_eq!(yaml(&[&plain]).unwrap(), "list:\n- \"b: c\"\nname: a\n");
        for c in [
            '\u{202e}', '\u{200f}', '\u{1b}', '\u{9b}', '\n', '\u{7f}', '\r',
        ] {
            let document = json!({"name": format!("a{c}b"), format!("k{c}"): 1});
            let text = yaml(&[&document, &document]).unwrap();
            assert!(
                !text.contains(|c| c != '\n' && is_unprintable(c)),
                "{text:?}"
            );
            let read: Value = serde_saphyr::from_str(text.split("---\n").next().unwrap()).unwrap();
            assert_eq!(read, document, "{text}");
        }
    }
    #[test]
    fn catalog_source_takes_fields_of_its_template_and_keeps_its_place() {
        let of = |template: Value| {
            let names = CatalogRepository {
                repository: "ns/index".to_owned(),
                tag: "v1".to_owned(),
                catalog_source: Some(template),
            };
            let interval = Some(Duration::from_secs(600));
            let image = "h.example/ns/index:v1".to_owned();
            let name = "index-v1".parse().unwrap();
            ManifestTarget::new(image, &name, &names, interval).unwrap()
        };
        let target = of(json!({
            "labels": {"team": "a"},
            "spec": {
                "priority": -100,
                "image": "evil.example/x:v1",
                "sourceType": "internal",
                "configMap": "x",
                "grpcPodConfig": {
                    "securityContextConfig": "legacy",
                    "extractContent": {"catalogDir": "/x"},
                    "nodeSelector": {"a": "b"},
                },
                "updateStrategy": {"registryPoll": {"interval": "30m"}},
            },
        }));
        let expected = json!({
            "apiVersion": "operators.coreos.com/v1alpha1",
            "kind": "CatalogSource",
            "metadata": {"name": "cs-index-v1", "namespace": "olm", "labels": {"team": "a"}},
            "spec": {
                "displayName": "index-v1",
                "sourceType": "grpc",
                "image": "h.example/ns/index:v1",
                "priority": -100,
                "grpcPodConfig": {
                    "securityContextConfig": "legacy",
                    "extractContent": {"catalogDir": "/configs"},
                    "nodeSelector": {"a": "b"},
                },
                "updateStrategy": {"registryPoll": {"interval": "30m"}},
            },
        });
        assert_eq!(catalog_source(&target, "olm"), expected);
        let addressed = addressed_catalog_source(&target, "mirror.example", 50051, "olm");
        let spec = json!({
            "address": "index-v1.mirror.example:50051",
            "displayName": "index-v1",
            "priority": -100,
            "sourceType": "grpc",
        });
        assert_eq!(addressed[0]["spec"], spec);
        // A state of others may have anything there.
        for odd in [
            json!(7),
            json!([]),
            json!({"spec": 7}),
            json!({"spec": {"grpcPodConfig": 7}}),
        ] {
            let source = catalog_source(&of(odd), "olm");
            assert_eq!(source["spec"]["image"], "h.example/ns/index:v1");
        }
    }
}
