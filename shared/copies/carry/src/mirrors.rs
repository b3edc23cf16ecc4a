//! Settings by which nodes find copied images in another registry: of OpenShift, of podman and
//! CRI-O, and of containerd.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::num::NonZeroUsize;

use model::ImageReference;
use model::text::value_without_secrets;
use serde_json::{Value, json};
use source::Source;

use crate::{CatalogRepository, SayLine, images::is_image, printable};

/// Registry to which images are copied, each below the name of the registry that it came from, as
/// `skopeo sync --scoped` does: `quay.io/team/app` becomes `REGISTRY/PATH/quay.io/team/app`. So
/// images of two registries never have one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetRegistry {
    /// Host with its port.
    pub host: String,
    /// Host and path, without a slash at the end.
    pub base: String,
    /// True if the registry has no TLS.
    pub is_plain: bool,
    /// Maximum number of parts of a repository's path. What is deeper has its last parts joined by
    /// dashes.
    pub max_nested_paths: Option<NonZeroUsize>,
}

impl TargetRegistry {
    /// Returns the place of an image or of a group of repositories in this registry.
    pub fn place_of(&self, image: &str) -> String {
        match image.split_once('/') {
            Some((host, path)) => self.own(&format!("{}/{path}", in_path(host))),
            None => self.own(&in_path(image)),
        }
    }

    /// Returns the place of a repository, with or without a tag, that lies below the path of this
    /// registry.
    pub fn own(&self, repository: &str) -> String {
        let place = format!("{}/{repository}", self.base);
        let Some(most) = self.max_nested_paths else {
            return place;
        };
        let Some((host, path)) = place.split_once('/') else {
            return place;
        };
        // As `WithMaxNestedPaths` of oc-mirror v2.
        let kept: Vec<&str> = path.splitn(most.get(), '/').collect();
        let Some((last, before)) = kept.split_last() else {
            return place;
        };
        let mut parts = vec![host];
        parts.extend(before);
        let last = last.replace('/', "-");
        parts.push(&last);
        parts.join("/")
    }

    /// Returns the image of a catalog in this registry.
    pub fn catalog_image(&self, place: &CatalogRepository) -> String {
        format!("{}:{}", self.own(&place.repository), place.tag)
    }

    /// Returns the warning about a registry that speaks plain HTTP.
    pub fn plain_warning(host: &str) -> String {
        format!(
            "warning: {host} speaks plain HTTP: nodes pull from it only if their settings list it as insecure \
             (OpenShift: spec.registrySources.insecureRegistries of image.config.openshift.io/cluster)"
        )
    }
}

impl std::str::FromStr for TargetRegistry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (is_plain, rest) = match text.split_once("://") {
            Some(("http", rest)) => (true, rest),
            Some(("https" | "docker", rest)) => (false, rest),
            Some(_) => return Err("write HOST[:PORT][/PATH]".to_owned()),
            None => (false, text),
        };
        let base = rest.trim_end_matches('/');
        match format!("{base}/image:latest").parse() {
            Ok(Source::Registry { .. }) if ImageReference::new(base).digest.is_none() => {
                let host = base.split('/').next().unwrap_or(base);
                let has_host = host.contains(['.', ':']) || host == "localhost";
                let named = has_host
                    .then_some(host)
                    .ok_or("name its host: HOST[:PORT][/PATH]")?;
                Ok(Self {
                    host: named.to_owned(),
                    base: base.to_owned(),
                    is_plain,
                    max_nested_paths: None,
                })
            }
            _ => {
                let shown = value_without_secrets(text);
                Err(format!(
                    "{shown:?} names no registry: write HOST[:PORT][/PATH]"
                ))
            }
        }
    }
}

/// Pulls that a mirror answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct MirroredPulls {
    by_digest: bool,
    by_tag: bool,
}

/// Repositories whose pulls a mirror answers.
#[derive(Debug, Default)]
struct MirroredScope {
    pulls: MirroredPulls,
    /// Places in the other registry, in the order in which they are asked.
    places: Vec<String>,
}

/// Groups of repositories with their place in another registry.
#[derive(Debug)]
pub struct ImageMirrors<'a> {
    target: &'a TargetRegistry,
    scopes: BTreeMap<String, MirroredScope>,
}

impl<'a> ImageMirrors<'a> {
    /// Groups images. What is no reference of an image is said: no cluster can pull it either.
    pub fn new<'i>(
        target: &'a TargetRegistry,
        images: impl IntoIterator<Item = &'i str>,
        say: SayLine<'_>,
    ) -> Self {
        let mut references = Vec::new();
        for image in images {
            if is_image(image) {
                references.push(ImageReference::new(image));
            } else {
                let image = printable(image);
                say(&format!(
                    "warning: {image} is no image reference and has no mirror"
                ));
            }
        }
        let mut scopes: BTreeMap<String, MirroredScope> = BTreeMap::new();
        for reference in &references {
            // Repositories of one namespace need not lie side by side if paths are cut.
            let scope = match target.max_nested_paths {
                None => scope(reference),
                Some(_) => reference.name(),
            };
            let places = vec![target.place_of(&scope)];
            scopes.entry(scope).or_insert_with(|| MirroredScope {
                pulls: MirroredPulls::default(),
                places,
            });
        }
        let mut mirrors = Self { target, scopes };
        for reference in &references {
            mirrors.note_pull(reference);
        }
        mirrors
    }

    /// Adds images that lie at places of their own below the registry.
    #[must_use]
    pub fn with_moved(mut self, moved: &BTreeMap<String, String>) -> Self {
        for (image, place) in moved {
            let reference = ImageReference::new(image);
            let name = reference.name();
            let repository = place.rsplit_once(':').map_or(&**place, |(path, _)| path);
            let place = self.target.own(repository);
            let inherited = self.longest_scope(&name).map(|scope| MirroredScope {
                pulls: scope.pulls,
                // Other images of the repository lie at the usual place.
                places: vec![self.target.place_of(&name)],
            });
            let scope = self.scopes.entry(name);
            let scope = scope.or_insert_with(|| inherited.unwrap_or_default());
            scope.places.insert(0, place);
            self.note_pull(&reference);
        }
        self
    }

    /// Notes the pull of an image at the longest scope that contains it: nodes ask no other one
    /// (containers-registries.conf(5), "choosing a registry").
    fn note_pull(&mut self, reference: &ImageReference) {
        let name = reference.name();
        let scope = prefixes(&name).find(|prefix| self.scopes.contains_key(*prefix));
        if let Some(scope) = scope.and_then(|scope| self.scopes.get_mut(scope)) {
            scope.pulls.by_digest |= reference.digest.is_some();
            scope.pulls.by_tag |= reference.digest.is_none();
        }
    }

    fn longest_scope(&self, name: &str) -> Option<&MirroredScope> {
        prefixes(name).find_map(|prefix| self.scopes.get(prefix))
    }

    /// Returns an ImageDigestMirrorSet and an ImageTagMirrorSet, each only if it has an entry.
    pub fn manifests(&self, name: &str) -> Vec<Value> {
        let set = |kind: &str, name: &str, field: &str, wanted: fn(&MirroredPulls) -> bool| {
            let scopes = self.scopes.iter().filter(|(_, scope)| wanted(&scope.pulls));
            let entries =
                scopes.map(|(source, scope)| json!({"source": source, "mirrors": scope.places}));
            let entries: Vec<Value> = entries.collect();
            (!entries.is_empty()).then(|| {
                json!({
                    "apiVersion": "config.openshift.io/v1",
                    "kind": kind,
                    "metadata": {"name": name},
                    "spec": {field: entries},
                })
            })
        };
        let digests = set(
            "ImageDigestMirrorSet",
            &format!("idms-{name}"),
            "imageDigestMirrors",
            |pulls| pulls.by_digest,
        );
        let tags = set(
            "ImageTagMirrorSet",
            &format!("itms-{name}"),
            "imageTagMirrors",
            |pulls| pulls.by_tag,
        );
        digests.into_iter().chain(tags).collect()
    }

    /// Returns a file for `/etc/containers/registries.conf.d` of podman and CRI-O
    /// (containers-registries.conf(5)).
    pub fn registries_conf(&self) -> String {
        let mut text = String::new();
        for (source, scope) in &self.scopes {
            if scope.pulls == MirroredPulls::default() {
                continue;
            }
            let source = quoted(source);
            let _ = writeln!(text, "[[registry]]\nlocation = {source}\n");
            for place in &scope.places {
                let mirror = quoted(place);
                let _ = writeln!(text, "[[registry.mirror]]\nlocation = {mirror}");
                if self.target.is_plain {
                    text.push_str("insecure = true\n");
                }
                match (scope.pulls.by_digest, scope.pulls.by_tag) {
                    (true, false) => text.push_str("pull-from-mirror = \"digest-only\"\n"),
                    (false, true) => text.push_str("pull-from-mirror = \"tag-only\"\n"),
                    _ => {}
                }
                text.push('\n');
            }
        }
        text
    }

    /// Returns the files of [`hosts_toml()`](Self::hosts_toml) as one text, each below a comment with
    /// its path.
    pub fn hosts_toml_files(&self) -> String {
        let files = self.hosts_toml().into_iter();
        let files: Vec<_> = files
            .map(|(host, text)| format!("# /etc/containerd/certs.d/{host}/hosts.toml\n{text}"))
            .collect();
        files.join("\n")
    }

    /// Returns a `hosts.toml` of containerd for each registry, by its folder below
    /// `/etc/containerd/certs.d`.
    ///
    /// There are none if paths are cut, because containerd cannot be told so.
    pub fn hosts_toml(&self) -> BTreeMap<&str, String> {
        if self.target.max_nested_paths.is_some() {
            return BTreeMap::new();
        }
        let hosts = self
            .scopes
            .keys()
            .map(|scope| scope.split('/').next().unwrap_or(scope));
        let file = |host: &str| {
            // Docker Hub answers at another name than that in its references.
            let server = match host {
                "docker.io" => "registry-1.docker.io",
                _ => host,
            };
            let scheme = if self.target.is_plain {
                "http"
            } else {
                "https"
            };
            let place = self.target.place_of(host);
            let (registry, path) = place.split_once('/').unwrap_or((&place, ""));
            let server = quoted(&format!("https://{server}"));
            let api = quoted(&format!("{scheme}://{registry}/v2/{path}"));
            format!(
                "server = {server}\n\n[host.{api}]\ncapabilities = [\"pull\", \"resolve\"]\noverride_path = true\n"
            )
        };
        hosts.map(|host| (host, file(host))).collect()
    }
}

/// Returns a name and the groups of repositories above it, the longest first.
fn prefixes(name: &str) -> impl Iterator<Item = &str> {
    let parents = name.rmatch_indices('/').map(|(at, _)| &name[..at]);
    std::iter::once(name).chain(parents)
}

/// Returns the repositories that have one rule: those beside the image, below the namespace of its
/// registry. An image right below its registry has a rule of its own, because a rule for the host
/// would redirect images that were not copied.
fn scope(reference: &ImageReference) -> String {
    let namespace = reference
        .repository
        .rsplit_once('/')
        .map(|(namespace, _)| namespace);
    format!(
        "{}/{}",
        reference.registry,
        namespace.unwrap_or(&reference.repository)
    )
}

/// Returns a host as a part of a path, which has no colon and no capital letter.
fn in_path(host: &str) -> String {
    host.to_lowercase().replace(':', "-")
}

/// Returns a string of TOML. Its escapes are those of JSON.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: &str = "mirror.example:5000/olm";
    const DIGEST: &str = "@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn target(text: &str) -> TargetRegistry {
        text.parse().unwrap()
    }

    #[test]
    fn deep_paths_are_cut_as_oc_mirror_cuts_them() {
        // Facts of oc-mirror v2 (`WithMaxNestedPaths`), but for one part: it begins with a slash there.
        for (registry, most, image, expected) in [
            ("r.io", 0, "q.io/a/b/c:v1", "r.io/q.io/a/b/c:v1"),
            ("r.io", 4, "q.io/a/b/c:v1", "r.io/q.io/a/b/c:v1"),
            ("r.io", 3, "q.io/a/b/c:v1", "r.io/q.io/a/b-c:v1"),
            ("r.io", 2, "q.io/a/b/c:v1", "r.io/q.io/a-b-c:v1"),
            ("r.io", 1, "q.io/a/b/c:v1", "r.io/q.io-a-b-c:v1"),
            (
                "r.io:5000/x/y",
                3,
                "q.io:443/a/b",
                "r.io:5000/x/y/q.io-443-a-b",
            ),
            ("r.io/x", 2, "q.io/a@sha256:00", "r.io/x/q.io-a@sha256:00"),
        ] {
            let mut target = target(registry);
            target.max_nested_paths = NonZeroUsize::new(most);
            assert_eq!(
                target.place_of(image),
                expected,
                "{registry} {most} {image}"
            );
        }
    }

    #[test]
    fn each_repository_has_a_mirror_of_its_own_if_paths_are_cut() {
        let mut target = target("r.io/olm");
        target.max_nested_paths = NonZeroUsize::new(2);
        let images = [format!("q.io/a/b{DIGEST}"), format!("q.io/a/c{DIGEST}")];
        let mirrors = ImageMirrors::new(&target, images.iter().map(String::as_str), &|_| {});
        let sets = mirrors.manifests("all");
        let entries = sets[0]["spec"]["imageDigestMirrors"].as_array().unwrap();
        let entries: Vec<String> = entries
            .iter()
            .map(|entry| format!("{} {}", entry["source"], entry["mirrors"][0]))
            .collect();
        assert_eq!(
            entries,
            [
                r#""q.io/a/b" "r.io/olm/q.io-a-b""#,
                r#""q.io/a/c" "r.io/olm/q.io-a-c""#
            ]
        );
        assert!(mirrors.hosts_toml().is_empty());
    }

    /// Facts of oc-mirror v2 (855b64a3, `generateImageMirrors` and `attemptNamespaceScope`): source
    /// and kind of each entry, whose mirror is the target with the path of the source. Ours differ
    /// in this: the mirror has the registry of the source in its path; an image right below its
    /// registry is `registry/image` and not the whole registry; an image with tag and digest is
    /// pulled by digest, so it is in no ImageTagMirrorSet; an image by tag is at the longest scope
    /// that contains it, because nodes ask no other one; there are no annotations of oc-mirror.
    #[test]
    fn mirror_sets_equal_those_of_oc_mirror_up_to_listed_differences() {
        let by = |name: &str| format!("{name}{DIGEST}");
        let redhat = [
            by("registry.redhat.io/openshift4/ose-a"),
            by("registry.redhat.io/openshift4/ose-b"),
            by("registry.redhat.io/rhel9/postgresql-16"),
        ];
        let community = [
            by("quay.io/team/operator"),
            by("quay.io/other/operator"),
            "quay.io/team/bundle:v1".to_owned(),
            "nginx:1.27".to_owned(),
        ];
        let nested = [
            by("ghcr.io/org/app/controller"),
            "ghcr.io/org/app:v2".to_owned(),
            by("quay.io:443/a/b:v3"),
        ];
        // Digest sources, then tag sources.
        let facts: [(&[String], &[&str], &[&str]); 3] = [
            (
                &redhat,
                &["registry.redhat.io/openshift4", "registry.redhat.io/rhel9"],
                &[],
            ),
            (
                &community,
                &["quay.io/other", "quay.io/team"],
                &["docker.io/library", "quay.io/team"],
            ),
            (
                &nested,
                &["ghcr.io/org/app", "quay.io:443/a"],
                &["ghcr.io/org/app"],
            ),
        ];
        for (images, digests, tags) in facts {
            let target = target(TARGET);
            let sets = ImageMirrors::new(&target, images.iter().map(String::as_str), &|_| {})
                .manifests("operator-0");
            let entries = |kind: &str, field: &str| {
                let set = sets.iter().find(|set| set["kind"] == kind);
                set.map_or(json!([]), |set| set["spec"][field].clone())
            };
            let expected = |sources: &[&str]| {
                let entry = |source: &&str| {
                    let path = source.replace("quay.io:443", "quay.io-443");
                    json!({"source": source, "mirrors": [format!("{TARGET}/{path}")]})
                };
                Value::from_iter(sources.iter().map(entry))
            };
            assert_eq!(
                entries("ImageDigestMirrorSet", "imageDigestMirrors"),
                expected(digests)
            );
            assert_eq!(
                entries("ImageTagMirrorSet", "imageTagMirrors"),
                expected(tags)
            );
        }
    }

    #[test]
    fn moved_image_is_asked_at_its_own_place_first() {
        let target = target(TARGET);
        let by_digest = format!("quay.io/team/app{DIGEST}");
        let images = [&*by_digest, "quay.io/team/b:1"];
        let moved = [
            ("quay.io/team/app:v1".to_owned(), "own/app:v2".to_owned()),
            ("ghcr.io/x/y:v1".to_owned(), "y:v1".to_owned()),
        ];
        let mirrors = ImageMirrors::new(&target, images, &|_| {}).with_moved(&moved.into());
        insta::assert_snapshot!(mirrors.registries_conf(), @r#"
        [[registry]]
        location = "ghcr.io/x/y"

        [[registry.mirror]]
        location = "mirror.example:5000/olm/y"
        pull-from-mirror = "tag-only"

        [[registry]]
        location = "quay.io/team"

        [[registry.mirror]]
        location = "mirror.example:5000/olm/quay.io/team"

        [[registry]]
        location = "quay.io/team/app"

        [[registry.mirror]]
        location = "mirror.example:5000/olm/own/app"

        [[registry.mirror]]
        location = "mirror.example:5000/olm/quay.io/team/app"
        "#);
    }

    #[test]
    fn mirrors_of_nodes_have_the_same_groups() {
        let images = [
            &format!("quay.io/team/a{DIGEST}"),
            "quay.io/team/b:1",
            "alone.io/c:2",
            "not an image",
        ];
        let plain = target("http://mirror.example:5000");
        let mirrors = ImageMirrors::new(&plain, images, &|_| {});
        insta::assert_snapshot!(mirrors.registries_conf(), @r#"
        [[registry]]
        location = "alone.io/c"

        [[registry.mirror]]
        location = "mirror.example:5000/alone.io/c"
        insecure = true
        pull-from-mirror = "tag-only"

        [[registry]]
        location = "quay.io/team"

        [[registry.mirror]]
        location = "mirror.example:5000/quay.io/team"
        insecure = true
        "#);
        insta::assert_snapshot!(mirrors.hosts_toml()["quay.io"], @r#"
        server = "https://quay.io"

        [host."http://mirror.example:5000/v2/quay.io"]
        capabilities = ["pull", "resolve"]
        override_path = true
        "#);
        let tls = target(TARGET);
        let files = ImageMirrors::new(&tls, ["nginx"], &|_| {});
        assert!(
            files.hosts_toml()["docker.io"]
                .contains("[host.\"https://mirror.example:5000/v2/olm/docker.io\"]")
        );
    }

    #[test]
    fn target_registry_needs_a_host() {
        for wrong in [
            "",
            "olm",
            "ftp://h.example",
            "h.example/UP",
            "h.example/a@sha256:00",
            "h.example/a b",
        ] {
            assert!(wrong.parse::<TargetRegistry>().is_err(), "{wrong}");
        }
        assert_eq!(target("localhost/a/").base, "localhost/a");
    }
}
