use anyhow::Context;
use bundle::{BundleFolder, CatalogBundle, Contents};
use clap::{Args, Subcommand};
use source::{EmptyLayers, ImageFolder, Source, Sources};
use work::Budget;

use crate::{
    args::{RegistryArgs, StoreArgs},
    catalog,
    exit::Exit,
    output::{print_json, print_text},
    wiring,
};

#[derive(Debug, Args)]
pub(crate) struct BundleArgs {
    #[command(subcommand)]
    command: BundleCommand,
}

#[derive(Debug, Subcommand)]
enum BundleCommand {
    /// Print what a bundle installs: CustomResourceDefinitions, permissions, images, APIs and more.
    #[command(after_help = BUNDLES)]
    Show {
        #[command(flatten)]
        options: BundleOptions,
        /// CATALOG/BUNDLE, an image reference, oci:DIR[:TAG] or dir:DIR.
        #[arg(value_name = "BUNDLE")]
        bundle: String,
    },
    /// Print what an upgrade from one bundle to another one changes.
    ///
    /// Changes of CustomResourceDefinitions are unsafe by the rules for which OLM v1 stops an upgrade, those of crdify.
    #[command(after_help = BUNDLES)]
    Diff {
        #[command(flatten)]
        options: BundleOptions,
        /// Exit with 1 if a change of a CustomResourceDefinition is unsafe.
        #[arg(long)]
        check: bool,
        /// Two bundles, or CATALOG PACKAGE FROM TO with two versions.
        #[arg(value_name = "BUNDLE", num_args = 2..=4)]
        bundles: Vec<String>,
    },
}

const BUNDLES: &str = "\
A bundle is CATALOG/BUNDLE, an image reference with a tag or a digest, oci:DIR[:TAG], or dir:DIR, a folder with \
manifests/ and metadata/. CATALOG is a catalog of the store or https://MIRROR/catalogs/NAME; where it stands alone it may also be a \
source as for `render`. Of a bundle whose content the catalog does not have, the image is read, with the mirrors and credentials of \
the configuration.

Exit codes: 0 done, 1 failed, or --check found an unsafe change.";

#[derive(Debug, Args)]
struct BundleOptions {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    registries: RegistryArgs,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: BundleArgs) -> anyhow::Result<Exit> {
    match args.command {
        BundleCommand::Show { options, bundle } => {
            let report = options.read(&bundle).await?.report();
            if options.json {
                print_json(&report)?;
            } else {
                print_text(&report.to_string())?;
            }
            Ok(Exit::Success)
        }
        BundleCommand::Diff {
            options,
            check,
            bundles,
        } => {
            let [old, new] = match bundles.as_slice() {
                [old, new] => [options.read(old).await?, options.read(new).await?],
                [catalog, package, from, to] => [
                    options.read_version(catalog, package, from).await?,
                    options.read_version(catalog, package, to).await?,
                ],
                _ => anyhow::bail!("name two bundles, or CATALOG PACKAGE FROM TO"),
            };
            let difference = old.difference(&new);
            if options.json {
                print_json(&difference)?;
            } else {
                print_text(&difference.to_string())?;
            }
            Ok(Exit::of_check(!check || difference.unsafe_changes.is_empty()))
        }
    }
}

impl BundleOptions {
    async fn read(&self, text: &str) -> anyhow::Result<Contents> {
        let is_url = ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme));
        let read = async {
            // Names of catalogs and bundles contain neither.
            if text.contains([':', '@']) && !is_url {
                return self.of_image(&text.parse()?).await;
            }
            let (catalog, bundle) = text
                .rsplit_once('/')
                .context("write CATALOG/BUNDLE, an image reference with a tag or a digest, oci:DIR or dir:DIR")?;
            let catalog = catalog::open(catalog, &self.store, &self.registries).await?;
            // Most names of bundles start with that of their package.
            let (likely, others): (Vec<&str>, Vec<&str>) =
                catalog.packages().partition(|package| bundle.starts_with(package));
            for package in likely.into_iter().rev().chain(others) {
                if let Some(bundle) = CatalogBundle::find(&catalog::lines(&catalog, package).await?, bundle)? {
                    return self.of_catalog(bundle).await;
                }
            }
            anyhow::bail!("the catalog has no bundle of this name")
        };
        read.await.with_context(|| format!("cannot read the bundle {text}"))
    }

    async fn read_version(&self, catalog: &str, package: &str, version: &str) -> anyhow::Result<Contents> {
        let read = async {
            let catalog = catalog::open(catalog, &self.store, &self.registries).await?;
            let bundle = CatalogBundle::find(&catalog::lines(&catalog, package).await?, version)?;
            self.of_catalog(bundle.context("the package has no such version")?).await
        };
        read.await
            .with_context(|| format!("cannot read the bundle of {package} {version} in {catalog}"))
    }

    async fn of_catalog(&self, bundle: CatalogBundle) -> anyhow::Result<Contents> {
        let Some(files) = bundle.files else {
            let image = bundle.image;
            let read = async { self.of_image(&image.parse()?).await }.await;
            return read.with_context(|| format!("cannot read its image {image:?}"));
        };
        contents(files).await
    }

    async fn of_image(&self, source: &Source) -> anyhow::Result<Contents> {
        let images = wiring::sources_of(&self.store.config, &self.registries)?;
        // Both folders at the same time: most of it is waiting.
        let (manifests, metadata) = tokio::try_join!(
            folder(&images, source, ImageFolder::Manifests, "manifests"),
            folder(&images, source, ImageFolder::Metadata, "metadata"),
        )?;
        contents([manifests, metadata]).await
    }
}

async fn contents(files: [BundleFolder; 2]) -> anyhow::Result<Contents> {
    Ok(work::run(Budget::default(), move || Contents::read(&files)).await??)
}

/// Reads one folder of a bundle.
async fn folder(
    images: &Sources,
    source: &Source,
    folder: ImageFolder,
    name: &'static str,
) -> anyhow::Result<BundleFolder> {
    let images = images.clone().with_settings(|settings| settings.folder = folder);
    let source = match source {
        Source::Dir(path) => Source::Dir(path.join(name)),
        image @ (Source::Registry { .. } | Source::OciLayout { .. }) => image.clone(),
        Source::Archive(_) | Source::Git(_) => anyhow::bail!("a bundle is an image, oci:DIR or dir:DIR"),
    };
    let digest = images.resolve(&source).await?;
    let none = EmptyLayers::default();
    let (folder, _) = images.read(&source, &digest, &none, BundleFolder::new(name)).await?;
    Ok(folder)
}
