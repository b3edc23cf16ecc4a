use std::collections::BTreeSet;
use std::sync::Arc;

use ::upgrade::bundle::{CatalogBundle, Contents};
use anyhow::Context;
use clap::{Args, ValueEnum};
use inspect::{bundle_contents, bundle_difference, named_bundles};
use model::text::{did_you_mean, value_without_secrets};
use sync::ReadCatalog;

use crate::args::CatalogAccess;
use crate::{catalog, wiring};
use terminal::Exit;
use terminal::{print_report, print_text};

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
    let old;
    let new;
    match (args.action, texts.as_slice()) {
        (BundleAction::Show, [bundle]) => {
            let contents = args.bundle(bundle).await?;
            print_report(&contents, args.json, print_words)?;
            return Ok(Exit::Success);
        }
        (BundleAction::Diff, [from, to]) => {
            old = args.bundle(from).await?;
            new = args.bundle(to).await?;
        }
        (BundleAction::Diff, [catalog, package, from, to]) => {
            let catalog = catalog::open(catalog, &args.access).await?;
            old = args.of_catalog(&catalog, &[package], from).await?;
            new = args.of_catalog(&catalog, &[package], to).await?;
        }
        _ => {
            anyhow::bail!("name one bundle for `show`; two for `diff`, or CATALOG PACKAGE FROM TO")
        }
    }
    let difference = bundle_difference(Arc::new(old), Arc::new(new)).await?;
    print_report(&difference, args.json, print_words)?;
    Ok(Exit::of_check(
        !args.check || difference.unsafe_changes.is_empty(),
    ))
}

fn print_words(report: &impl ToString) -> anyhow::Result<()> {
    print_text(&report.to_string())
}

impl BundleArgs {
    async fn bundle(&self, text: &str) -> anyhow::Result<Contents> {
        let read = async {
            // Names of catalogs and bundles contain neither.
            if text.contains([':', '@']) && !text.starts_with("http") {
                let reader = wiring::bundle_reader(&self.access)?;
                return Ok(reader.of_image(text).await?);
            }
            let names = text.rsplit_once('/');
            let (catalog, bundle) =
                names.context("write CATALOG/BUNDLE, an image reference with a tag or a digest, oci:DIR or dir:DIR")?;
            let catalog = catalog::open(catalog, &self.access).await?;
            let mut packages: Vec<&str> = catalog.packages().collect();
            // Most names of bundles start with that of their package.
            packages.sort_by_key(|package| !bundle.starts_with(package));
            self.of_catalog(&catalog, &packages, bundle).await
        };
        read.await.with_context(|| {
            let shown = value_without_secrets(text);
            format!("cannot read the bundle {shown}")
        })
    }

    /// Reads the bundle of a name or a version in one of the packages.
    async fn of_catalog(
        &self,
        catalog: &ReadCatalog,
        packages: &[&str],
        wanted: &str,
    ) -> anyhow::Result<Contents> {
        let mut known: BTreeSet<String> = BTreeSet::new();
        for package in packages {
            let lines = catalog::lines(catalog, package).await?;
            let bundles = named_bundles(lines).await?;
            let contents = match bundles.find(wanted)? {
                None => {
                    known.extend(bundles.names().map(str::to_owned));
                    continue;
                }
                Some(CatalogBundle::Files(files)) => bundle_contents(files).await?,
                Some(image) => {
                    let reader = wiring::bundle_reader(&self.access)?;
                    reader.of_catalog(image).await?
                }
            };
            return Ok(contents);
        }
        let similar = did_you_mean(wanted, known.iter().map(String::as_str));
        match packages {
            [package] => {
                anyhow::bail!("package {package} has no version and no bundle {wanted:?}{similar}")
            }
            _ => anyhow::bail!("the catalog has no bundle {wanted:?}{similar}"),
        }
    }
}
