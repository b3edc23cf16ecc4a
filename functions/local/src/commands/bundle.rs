use anyhow::Context;
use bundle::{CatalogBundle, Contents};
use clap::{Args, ValueEnum};

use crate::{
    args::CatalogAccess,
    catalog,
    exit::Exit,
    output::{print_json, print_text},
    wiring,
};

#[derive(Debug, Args)]
#[command(after_help = "\
A bundle is CATALOG/BUNDLE, an image reference with a tag or a digest, oci:DIR[:TAG], or dir:DIR, a folder with manifests/ and \
metadata/. CATALOG is a catalog of the store or https://MIRROR/catalogs/NAME, and before a PACKAGE also a source as for `render`. \
If the catalog lacks the content of a bundle, its image is read, with the mirrors and credentials of the configuration.

Changes of CustomResourceDefinitions are unsafe by the rules for which OLM v1 stops an upgrade, those of crdify.

Exit codes: 0 done, 1 failed, or --check found an unsafe change.")]
pub(crate) struct BundleArgs {
    #[command(flatten)]
    access: CatalogAccess,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
    /// Exit with 1 if a change of a CustomResourceDefinition is unsafe.
    #[arg(long)]
    check: bool,
    #[arg(value_enum)]
    action: BundleAction,
    /// One bundle for `show`. Two for `diff`, or CATALOG PACKAGE FROM TO with two versions.
    #[arg(value_name = "BUNDLE", required = true, num_args = 1..=4)]
    bundles: Vec<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum BundleAction {
    /// Print what a bundle installs: CustomResourceDefinitions, permissions, images, APIs and more.
    Show,
    /// Print what an upgrade from one bundle to another one changes.
    Diff,
}

pub(crate) async fn run(args: BundleArgs) -> anyhow::Result<Exit> {
    let texts: Vec<&str> = args.bundles.iter().map(String::as_str).collect();
    let [old, new] = match (args.action, texts.as_slice()) {
        (BundleAction::Show, [bundle]) => {
            return args.print(&args.bundle(bundle).await?).map(|()| Exit::Success);
        }
        (BundleAction::Diff, [old, new]) => [args.bundle(old).await?, args.bundle(new).await?],
        (BundleAction::Diff, [catalog, package, from, to]) => [
            args.version(catalog, package, from).await?,
            args.version(catalog, package, to).await?,
        ],
        _ => anyhow::bail!("name one bundle for `show`; two for `diff`, or CATALOG PACKAGE FROM TO"),
    };
    let difference = old.difference(&new);
    args.print(&difference)?;
    Ok(Exit::of_check(!args.check || difference.unsafe_changes.is_empty()))
}

impl BundleArgs {
    fn print(&self, report: &(impl serde::Serialize + ToString)) -> anyhow::Result<()> {
        if self.json {
            print_json(report)
        } else {
            print_text(&report.to_string())
        }
    }

    async fn bundle(&self, text: &str) -> anyhow::Result<Contents> {
        let read = async {
            // Names of catalogs and bundles contain neither.
            if text.contains([':', '@']) && !text.starts_with("http") {
                return self.image(text).await;
            }
            let names = text.rsplit_once('/');
            let (catalog, bundle) =
                names.context("write CATALOG/BUNDLE, an image reference with a tag or a digest, oci:DIR or dir:DIR")?;
            let catalog = catalog::open(catalog, &self.access).await?;
            let mut packages: Vec<&str> = catalog.packages().collect();
            // Most names of bundles start with that of their package.
            packages.sort_by_key(|package| !bundle.starts_with(package));
            for package in packages {
                if let Some(bundle) = CatalogBundle::find(&catalog::lines(&catalog, package).await?, bundle)? {
                    return self.catalog_bundle(bundle).await;
                }
            }
            anyhow::bail!("the catalog has no bundle of this name")
        };
        read.await.with_context(|| format!("cannot read the bundle {text}"))
    }

    async fn version(&self, catalog: &str, package: &str, version: &str) -> anyhow::Result<Contents> {
        let read = async {
            let catalog = catalog::open(catalog, &self.access).await?;
            let bundle = CatalogBundle::find(&catalog::lines(&catalog, package).await?, version)?;
            self.catalog_bundle(bundle.context("the package has no such version")?)
                .await
        };
        let read = read.await;
        read.with_context(|| format!("cannot read the bundle of {package} {version} in {catalog}"))
    }

    async fn catalog_bundle(&self, CatalogBundle { image, files }: CatalogBundle) -> anyhow::Result<Contents> {
        match files {
            Some(files) => Ok(Contents::read(&files)?),
            None => self
                .image(&image)
                .await
                .with_context(|| format!("cannot read its image {image:?}")),
        }
    }

    async fn image(&self, source: &str) -> anyhow::Result<Contents> {
        let images = wiring::sources_of(&self.access.store.config, &self.access.registries)?;
        Ok(Contents::read(&carry::read_bundle(&images, &source.parse()?).await?)?)
    }
}
