use std::collections::BTreeMap;

use anyhow::Context;
use config::Config;
use image::Source;
use layout::{CatalogName, Sha256, Snapshot};

use crate::{
    cli::{ManifestKind, Manifests},
    exit::Exit,
    output::{
        self,
        manifests::{Target, catalog_source, cluster_catalog},
    },
    published,
};

pub(crate) async fn run(args: Manifests) -> anyhow::Result<Exit> {
    let host = host(&args.url)?;
    let store = args.store.open_to_read(&Config::default()).await?;
    let mut targets = Vec::new();
    for name in published::chosen(&*store, &args.names).await? {
        let (_, snapshot) = published::state(&*store, &name).await?;
        let pinned = if args.pin {
            Some(digest(&name, &snapshot)?)
        } else {
            None
        };
        targets.push(Target::new(host, &name, pinned, args.interval)?);
    }
    check(&targets)?;
    let mut documents = Vec::new();
    for target in &targets {
        if args.kind != ManifestKind::Catalogsource {
            documents.push(cluster_catalog(target));
        }
        if args.kind != ManifestKind::Clustercatalog {
            documents.push(catalog_source(target, &args.namespace));
        }
    }
    output::manifests::print(&documents)?;
    Ok(Exit::Fine)
}

/// A registry is named by host and port alone: its API is at the root (OCI distribution specification, "Endpoints").
fn host(url: &str) -> anyhow::Result<&str> {
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let host = host.with_context(|| format!("{url:?} is no URL: write https://HOST[:PORT]"))?;
    let host = host.trim_end_matches('/');
    anyhow::ensure!(
        !host.contains('/'),
        "{url:?} has a path: clusters look for a registry at the root of its host"
    );
    // What the references will be made of, so that a mistake is told here and not by a cluster.
    let example: Result<Source, _> = format!("{host}/catalog:latest").parse();
    example.with_context(|| format!("{url:?} names no registry"))?;
    Ok(host)
}

/// The digest of the image index, which names the image for all platforms.
fn digest(name: &CatalogName, snapshot: &Snapshot) -> anyhow::Result<Sha256> {
    let image = snapshot.image.as_ref();
    let image = image.with_context(|| format!("{name} was published without an image: poll it with --force"))?;
    Ok(image.index.sha256)
}

/// Dots become dashes, so two catalogs may get one name.
fn check(targets: &[Target]) -> anyhow::Result<()> {
    let mut names: BTreeMap<String, &CatalogName> = BTreeMap::new();
    for target in targets {
        if let Some(other) = names.insert(target.suffix(), &target.catalog) {
            let name = &target.catalog;
            anyhow::bail!("the manifests of {other} and {name} would have one name; name the catalogs one by one");
        }
    }
    Ok(())
}
