use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use carry::{
    CatalogRepository, ImageMirrors, LATEST, ManifestTarget, TargetRegistry,
    addressed_catalog_source, catalog_source, check_names, cluster_catalog, mirror_set_name,
    registry_host,
};
use clap::{Args, ValueEnum};
use config::poll_interval;
use inspect::{needs, published};
use model::CatalogName;
use serde_json::Value;
use store::Store;
use terminal::{print_text, remark, say};

use crate::args::{Access, StoreArgs};

#[derive(Debug, Args)]
#[command(after_help = "\
Names are the same as those of oc-mirror v2: cc- or cs-, the repository, the tag, with dashes for dots. They do not \
change with --pin, so that subscriptions and GitOps keep pointing at them. An entry of an ImageSetConfiguration has the \
tag of its image.

With --images-at there are also an ImageDigestMirrorSet and an ImageTagMirrorSet. Clusters that are not OpenShift use \
--kind registries-conf (podman, CRI-O) or hosts-toml (containerd) instead.

Examples:
  catalog-mirror manifests --url https://mirror.example --images-at registry.example/olm
  catalog-mirror manifests --images-at registry.example/olm --kind registries-conf

Exit codes: 0 done, 1 failed.")]
pub(crate) struct ManifestsArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// URL of the mirror for clusters, such as `https://mirror.example:8443`.
    #[arg(long, value_name = "URL", required_unless_present = "images_at")]
    url: Option<String>,
    /// Registry to which the images of the catalogs were copied, each below the name of its
    /// registry, as `carry` and `skopeo sync --scoped` do. `http://` says that it has no TLS.
    #[arg(long, value_name = "HOST[:PORT][/PATH]")]
    images_at: Option<TargetRegistry>,
    /// Maximum number of parts of a repository's path there, as for `carry`.
    #[arg(long, value_name = "NUMBER", requires = "images_at")]
    max_nested_paths: Option<NonZeroUsize>,
    /// Kind of the manifests: OLM v1 reads ClusterCatalog, OLM v0 reads CatalogSource.
    #[arg(long, value_enum, default_value_t)]
    kind: ManifestKind,
    /// Port of `serve --grpc`, for --kind catalogsource-address.
    #[arg(long, value_name = "PORT", default_value_t = 50051)]
    grpc_port: u16,
    /// Name the current image by its digest: clusters do not change until the manifest does.
    #[arg(long)]
    pin: bool,
    /// Time between two polls by clusters, from 1s to 365d. Rounded up to minutes.
    #[arg(long, default_value = "10m", value_parser = poll_interval)]
    interval: Duration,
    /// Namespace of CatalogSources. Outside OpenShift it is `olm`.
    #[arg(long, default_value = "openshift-marketplace")]
    namespace: String,
    /// End of the names of the mirror sets. Default: operator-0 for all catalogs of the store, else
    /// from the names of the catalogs.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Catalogs to print manifests for. Default: all of the store.
    #[arg(value_name = "NAME")]
    names: Vec<CatalogName>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ManifestKind {
    /// All manifests, for clusters with OLM v0 and v1.
    #[default]
    All,
    /// Only ClusterCatalogs of olm.operatorframework.io/v1.
    Clustercatalog,
    /// Only CatalogSources of operators.coreos.com/v1alpha1.
    Catalogsource,
    /// CatalogSources that ask `serve --grpc` instead of a pod of their own, with a Service for
    /// each if --url names a Service.
    CatalogsourceAddress,
    /// Only the ImageDigestMirrorSet and the ImageTagMirrorSet of --images-at.
    MirrorSets,
    /// A file of --images-at for /etc/containers/registries.conf.d of podman and CRI-O.
    RegistriesConf,
    /// The hosts.toml of --images-at for each folder below /etc/containerd/certs.d.
    HostsToml,
}

impl ManifestKind {
    const fn is_of_images(self) -> bool {
        matches!(
            self,
            Self::MirrorSets | Self::RegistriesConf | Self::HostsToml
        )
    }
}

pub(crate) async fn run(args: ManifestsArgs) -> anyhow::Result<()> {
    let store = args.store.open_alone(Access::Read).await?;
    let names = published::some_names(&store, &args.names).await?;
    let mut documents = Vec::new();
    if let Some(url) = args.url.as_deref().filter(|_| !args.kind.is_of_images()) {
        documents = of_catalogs(&store, &names, url, &args).await?;
    }
    let Some(target) = args.images_at.clone() else {
        let is_served = !args.kind.is_of_images();
        anyhow::ensure!(
            is_served,
            "name the registry of the images with --images-at"
        );
        return print_text(&carry::yaml(&documents)?);
    };
    let is_of_mirror = !matches!(args.kind, ManifestKind::All) && !args.kind.is_of_images();
    anyhow::ensure!(
        args.url.is_some() || !is_of_mirror,
        "name the mirror with --url: manifests of this kind lead to it"
    );
    let target = TargetRegistry {
        max_nested_paths: args.max_nested_paths,
        ..target
    };
    if target.is_plain {
        remark(&TargetRegistry::plain_warning(&target.host));
    }
    let needs = needs::required(&store, &names).await?;
    let mirrors = ImageMirrors::new(&target, needs.images.keys().map(String::as_str), &say);
    match args.kind {
        ManifestKind::RegistriesConf => print_text(&mirrors.registries_conf()),
        ManifestKind::HostsToml => print_text(&mirrors.hosts_toml_files()),
        ManifestKind::All | ManifestKind::MirrorSets => {
            documents.extend(mirrors.manifests(&set_name(&store, &names, &args).await?));
            print_text(&carry::yaml(&documents)?)
        }
        _ => print_text(&carry::yaml(&documents)?),
    }
}

/// Returns the end of the names of the mirror sets. That of all catalogs of a store does not change
/// with them, so that its sets replace those of an earlier run.
async fn set_name(
    store: &Arc<dyn Store>,
    names: &[CatalogName],
    args: &ManifestsArgs,
) -> anyhow::Result<String> {
    if let Some(name) = &args.name {
        return Ok(name.clone());
    }
    if args.names.is_empty() {
        return Ok("operator-0".to_owned());
    }
    let mut suffixes = Vec::new();
    for name in names {
        let state = published::state(store, name).await?;
        suffixes.push(CatalogRepository::new(name, &state.current().source).suffix());
    }
    Ok(mirror_set_name(suffixes.iter().map(String::as_str)))
}

/// Returns the manifests for catalogs that a mirror serves.
async fn of_catalogs(
    store: &Arc<dyn Store>,
    names: &[CatalogName],
    url: &str,
    args: &ManifestsArgs,
) -> anyhow::Result<Vec<Value>> {
    let host = registry_host(url)?;
    // The registry API of OLM v0 has no TLS in any case.
    if url.starts_with("http://") && args.kind != ManifestKind::CatalogsourceAddress {
        remark(&TargetRegistry::plain_warning(host));
    }
    let mut targets = Vec::new();
    for name in names {
        let state = published::state(store, name).await?;
        let current = state.current();
        let names = CatalogRepository::new(name, &current.source);
        let (version, interval) = if args.pin {
            // The image index names the image for all platforms.
            let image = current.image;
            let index = image.with_context(|| {
                format!("{name} was published without an image: poll it with --force")
            })?;
            (format!("@sha256:{}", index.digest.sha256), None)
        } else {
            (format!(":{LATEST}"), Some(args.interval))
        };
        let image = format!("{host}/{name}{version}");
        targets.push(ManifestTarget::new(image, name, &names, interval)?);
    }
    check_names(&targets)?;
    let mut documents = Vec::new();
    for target in &targets {
        if args.kind == ManifestKind::CatalogsourceAddress {
            documents.extend(addressed_catalog_source(
                target,
                host,
                args.grpc_port,
                &args.namespace,
            ));
            continue;
        }
        if args.kind != ManifestKind::Catalogsource {
            documents.push(cluster_catalog(target));
        }
        if args.kind != ManifestKind::Clustercatalog {
            documents.push(catalog_source(target, &args.namespace));
        }
    }
    Ok(documents)
}

#[cfg(test)]
mod tests {
    use config::ConfigLoader;
    use model::Sha256;

    use super::*;

    fn latest(catalog: &str) -> CatalogRepository {
        CatalogRepository {
            repository: catalog.to_owned(),
            tag: LATEST.to_owned(),
            catalog_source: None,
        }
    }

    fn target(version: &str, interval: Option<Duration>) -> ManifestTarget {
        let (name, names) = ("community.v4-20", latest("community.v4-20"));
        let image = format!("mirror.example:8443/{name}{version}");
        ManifestTarget::new(image, &name.parse().unwrap(), &names, interval).unwrap()
    }

    fn polled() -> ManifestTarget {
        target(":latest", Some(Duration::from_secs(90)))
    }

    #[test]
    fn manifests_have_the_fields_that_olm_reads() {
        insta::assert_snapshot!(yaml(&[cluster_catalog(&polled()), catalog_source(&polled(), "olm")]), @r"
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
    }

    fn yaml(documents: &[Value]) -> String {
        carry::yaml(documents).unwrap()
    }

    #[test]
    fn addressed_catalog_source_names_the_catalog_in_its_host() {
        let manifests = |host| yaml(&addressed_catalog_source(&polled(), host, 50051, "olm"));
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
        let address = "address: community-v4-20.mirror.example:50051";
        assert!(
            outside.contains(address) && !outside.contains("Service"),
            "{outside}"
        );
    }

    /// The configuration checks ClusterCatalogs with the rules of the CRD.
    #[test]
    fn cluster_catalog_is_accepted_as_configuration() {
        let pinned = target(&format!("@sha256:{}", Sha256::of(b"")), None);
        for target in [polled(), pinned] {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), yaml(&[cluster_catalog(&target)])).unwrap();
            let mut loader = ConfigLoader::new(Duration::from_secs(60));
            loader.file(file.path());
            let config = loader.finish().unwrap();
            assert_eq!(
                config.catalogs[0].name.as_str(),
                "cc-community-v4-20-latest"
            );
            let source = config.catalogs[0].source.to_string();
            assert!(
                source.starts_with("mirror.example:8443/community.v4-20"),
                "{source}"
            );
        }
    }

    /// Returns the end of the names of a catalog.
    fn suffix(name: &str, reference: &str, target: Option<&str>) -> String {
        let source = model::SourceRef {
            reference: reference.to_owned(),
            target: target.map(str::to_owned),
            ..model::SourceRef::default()
        };
        CatalogRepository::new(&name.parse().unwrap(), &source).suffix()
    }

    /// Facts of oc-mirror v2 (`generateCatalogSource`): `cs-`, the last part of the repository, at
    /// most 12 characters of the tag.
    #[test]
    fn manifest_names_are_those_of_oc_mirror() {
        // In `mine` the repository is targetCatalog, whose name in the mirror has no tag. The page
        // makes the same names, and is judged by the same table.
        let cases = include_str!("../../../../tests/cases.json");
        let cases: Value = serde_json::from_str(cases).unwrap();
        for case in cases["names"].as_array().unwrap() {
            let text = |field: &str| case[field].as_str().unwrap();
            let suffix = suffix(text("catalog"), text("source"), None);
            assert_eq!(suffix, text("suffix"), "{case}");
        }
    }

    /// A catalog of an ImageSetConfiguration has the names of its targetCatalog and targetTag.
    /// Versions before this one wrote none.
    #[test]
    fn manifest_names_are_those_of_the_target() {
        for row in "\
mine compose:quay.io/redhat/index:v4.20#0 team/mine:v4.20 mine-v4-20
mine compose:quay.io/redhat/index:v4.20#0 team/own.index:V1_b own-index-v1-b
mine compose:quay.io/redhat/index:v4.20#0 broken mine-latest"
            .lines()
        {
            let [name, reference, target, expected] = row.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{row}")
            };
            assert_eq!(suffix(name, reference, Some(target)), expected);
        }
    }

    #[test]
    fn manifest_name_longer_than_63_bytes_is_refused() {
        let named = |length: usize| {
            let name = "a".repeat(length);
            let catalog = name.parse().unwrap();
            ManifestTarget::new(String::new(), &catalog, &latest(&name), None)
        };
        assert!(named(63 - "cs--latest".len()).is_ok());
        assert!(named(64 - "cs--latest".len()).is_err());
    }
}
