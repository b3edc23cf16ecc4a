mod documents;

use std::{collections::BTreeMap, time::Duration};

use anyhow::Context;
use clap::{Args, ValueEnum};
use config::poll_interval;
use model::{CatalogName, Sha256, Snapshot};
use source::Source;

use self::documents::{GrpcHost, ManifestTarget, addressed_catalog_source, catalog_source, cluster_catalog};
use crate::{
    args::{Access, StoreArgs},
    exit::Exit,
    output, published,
};

#[derive(Debug, Args)]
#[command(after_help = "\
Names are the same as those of oc-mirror v2: cc- or cs-, the repository, the tag, with dashes for dots. They do not \
change with --pin, so that subscriptions and GitOps keep pointing at them.

Exit codes: 0 done, 1 failed.")]
pub(crate) struct ManifestsArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// URL of the mirror for clusters, such as `https://mirror.example:8443`.
    #[arg(long, value_name = "URL")]
    pub(crate) url: String,
    /// Kind of the manifests: OLM v1 reads ClusterCatalog, OLM v0 reads CatalogSource.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) kind: ManifestKind,
    /// Port of `serve --grpc`, for --kind catalogsource-address.
    #[arg(long, value_name = "PORT", default_value_t = 50051)]
    pub(crate) grpc_port: u16,
    /// Name the current image by its digest: clusters do not change until the manifest does.
    #[arg(long)]
    pub(crate) pin: bool,
    /// Time between two polls by clusters, from 1s to 365d. Rounded up to minutes.
    #[arg(long, default_value = "10m", value_parser = poll_interval)]
    pub(crate) interval: Duration,
    /// Namespace of CatalogSources. Outside OpenShift it is `olm`.
    #[arg(long, default_value = "openshift-marketplace")]
    pub(crate) namespace: String,
    /// Catalogs to print manifests for. Default: all of the store.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<CatalogName>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ManifestKind {
    /// Both kinds, for clusters with OLM v0 and v1.
    #[default]
    All,
    /// Only ClusterCatalogs of olm.operatorframework.io/v1.
    Clustercatalog,
    /// Only CatalogSources of operators.coreos.com/v1alpha1.
    Catalogsource,
    /// CatalogSources that ask `serve --grpc` instead of a pod of their own, with a Service for each if --url names a Service.
    CatalogsourceAddress,
}

pub(crate) async fn run(args: ManifestsArgs) -> anyhow::Result<Exit> {
    let host = host(&args.url)?;
    let store = args.store.open_alone(Access::Read).await?;
    let mut targets = Vec::new();
    for name in published::some_names(&*store, &args.names).await? {
        let (_, snapshot) = published::state(&*store, &name).await?;
        let pinned = if args.pin {
            Some(image_digest(&name, &snapshot)?)
        } else {
            None
        };
        targets.push(ManifestTarget::new(host, &name, pinned, args.interval)?);
    }
    check_names(&targets)?;
    let mut documents = Vec::new();
    for target in &targets {
        if args.kind == ManifestKind::CatalogsourceAddress {
            let host = GrpcHost::of(host);
            documents.extend(addressed_catalog_source(target, &host, args.grpc_port, &args.namespace));
            continue;
        }
        if args.kind != ManifestKind::Catalogsource {
            documents.push(cluster_catalog(target));
        }
        if args.kind != ManifestKind::Clustercatalog {
            documents.push(catalog_source(target, &args.namespace));
        }
    }
    output::print_yaml(&documents)?;
    Ok(Exit::Success)
}

/// Returns host and port of the URL. An image reference contains nothing else of it.
fn host(url: &str) -> anyhow::Result<&str> {
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let host = host.with_context(|| format!("{url:?} is not a URL: write https://HOST[:PORT]"))?;
    let host = host.trim_end_matches('/');
    // The API of a registry is at the root of its host (OCI distribution specification, "Endpoints").
    anyhow::ensure!(
        !host.contains('/'),
        "{url:?} has a path: clusters look for a registry at the root of its host"
    );
    // The references of the manifests look like this one, so a mistake shows here and not in a cluster.
    let example: Result<Source, _> = format!("{host}/catalog:latest").parse();
    example.with_context(|| format!("{url:?} names no registry"))?;
    Ok(host)
}

/// Returns the digest of the image index, which names the image for all platforms.
fn image_digest(name: &CatalogName, snapshot: &Snapshot) -> anyhow::Result<Sha256> {
    let image = snapshot.image.as_ref();
    let image = image.with_context(|| format!("{name} was published without an image: poll it with --force"))?;
    Ok(image.index.sha256)
}

/// Refuses catalogs whose manifests have one name, because dots become dashes.
fn check_names(targets: &[ManifestTarget]) -> anyhow::Result<()> {
    let mut names: BTreeMap<String, &CatalogName> = BTreeMap::new();
    for target in targets {
        if let Some(other) = names.insert(target.suffix(), &target.catalog) {
            let name = &target.catalog;
            anyhow::bail!("the manifests of {other} and {name} would have one name; name the catalogs one by one");
        }
    }
    Ok(())
}
