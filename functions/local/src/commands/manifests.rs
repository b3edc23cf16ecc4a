use std::collections::BTreeMap;

use anyhow::Context;
use model::{CatalogName, Sha256, Snapshot};
use source::Source;

use crate::{
    cli::{ManifestKind, ManifestsArgs},
    exit::Exit,
    output::{
        self,
        manifests::{GrpcHost, ManifestTarget, addressed_catalog_source, catalog_source, cluster_catalog},
    },
    published,
    stores::Access,
};

pub(crate) async fn run(args: ManifestsArgs) -> anyhow::Result<Exit> {
    let host = host(&args.url)?;
    let store = args.store.open_alone(Access::Read).await?;
    let mut targets = Vec::new();
    for name in published::some_names(&*store, &args.names).await? {
        let (_, snapshot) = published::state(&*store, &name).await?;
        let pinned = match args.pin {
            true => Some(image_digest(&name, &snapshot)?),
            false => None,
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
