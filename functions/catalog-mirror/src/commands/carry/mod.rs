//! From an ImageSetConfiguration to a registry that clusters reach, over a folder that a person
//! carries or at once.

mod image_set;
mod prune;
mod push;
mod tools;

use std::fs;
use std::path::PathBuf;

use ::carry::{CarriedFolder, images_folder, lock_folder, remove_partial};
use ::sync::{Archive, Importer, SyncOptions, SyncReport};
use anyhow::Context;
use clap::{Args, Subcommand};
use config::poll_interval;
use offer::{CarryReport, CarrySite, ImportedFolder, OfferPlace};
use publish::Report;
use serde::Serialize;
use store::StorePlace;

use self::image_set::ImageSetArgs;
use self::prune::CarryPruneArgs;
use self::push::CarryPushArgs;
use crate::args::{AllowArgs, RegistryArgs, ReportArgs, S3Args, StoreArgs, TargetArgs};
use crate::reports::print_copies;
use crate::wiring;
use terminal::{Exit, Output, limit_output, print_json};

#[derive(Debug, Args)]
#[command(after_help = "\
The program skopeo copies the images, with all their platforms and with the signatures that are attached to them. Each \
command is printed. What is there already is not copied again, so a run that failed or was killed is just repeated. An \
image that fails is named, the others are copied, bundles that need it are left out of the catalog that is pushed, and the exit \
code is 1.

Credentials: --auth-file, else the files of podman and docker. TLS: --ca-file and --plain-http.

Examples:
  catalog-mirror carry out imageset.yaml /media/disk
  catalog-mirror carry in /media/disk registry.example/olm
  catalog-mirror carry across imageset.yaml registry.example/olm
  catalog-mirror carry push redhat-operator-index-v4-20@af009c7f7561 registry.example/olm
  catalog-mirror carry prune registry.example/olm")]
pub(crate) struct CarryArgs {
    /// Print a report in JSON at the end instead of lines. Commands, notices and what failed go to
    /// standard error.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    step: CarryStep,
}

#[derive(Debug, Subcommand)]
enum CarryStep {
    /// Collect the catalogs of an ImageSetConfiguration and all their images in a folder.
    Out(CarryOutArgs),
    /// Push what a folder holds to a registry, and write the manifests for clusters.
    In(CarryInArgs),
    /// Do both at once, where the registries of the images and the own one are reachable.
    Across(CarryAcrossArgs),
    /// Push a state of the store under the tag that clusters follow, such as an earlier one.
    Push(CarryPushArgs),
    /// List what `carry` made in a registry and no state of the store needs, and delete it.
    Prune(CarryPruneArgs),
}

/// Options of a step that copies images.
#[derive(Debug, Args)]
struct CopyArgs {
    #[command(flatten)]
    registries: RegistryArgs,
    /// The program skopeo, 1.9 or newer.
    #[arg(long, value_name = "PATH", default_value = "skopeo")]
    skopeo: PathBuf,
    /// Print what would be done and copied, with the bytes, beside what is there. Nothing is written but
    /// the manifests that --manifests asks for.
    #[arg(long)]
    dry_run: bool,
    /// Hash each file of the images in the folder. Default: their sizes are compared.
    #[arg(long)]
    recheck: bool,
    /// Fail, and push no catalog, if an image is missing. Default: the bundles that need it are
    /// left out.
    #[arg(long)]
    require_all: bool,
}

/// Options of a step that ends at clusters.
#[derive(Debug, Args)]
struct ClusterArgs {
    /// Folder for the manifests. Its files are replaced. Default: manifests, and none in a dry run.
    #[arg(long, value_name = "DIR")]
    manifests: Option<PathBuf>,
    /// Time between two polls of the catalogs by clusters, from 1s to 365d. Rounded up to minutes.
    #[arg(long, default_value = "10m", value_parser = poll_interval)]
    interval: std::time::Duration,
    /// Namespace of CatalogSources. Outside OpenShift it is `olm`.
    #[arg(long, default_value = "openshift-marketplace")]
    namespace: String,
    /// End of the names of the mirror sets. Default: from the names of the catalogs, so that the
    /// sets of other catalogs stay.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    target: TargetArgs,
}

impl ClusterArgs {
    /// Returns the registry and the manifests of an offer.
    fn place(&self, dry_run: bool) -> OfferPlace {
        let mut manifests = self.manifests.clone();
        if !dry_run {
            manifests = Some(manifests.unwrap_or_else(|| "manifests".into()));
        }
        OfferPlace {
            registry: self.target.registry(),
            manifests,
            interval: self.interval,
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }
}

#[derive(Debug, Args)]
struct CarryOutArgs {
    #[command(flatten)]
    copy: CopyArgs,
    #[command(flatten)]
    image_set: ImageSetArgs,
    /// Folder to fill.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

#[derive(Debug, Args)]
struct CarryInArgs {
    #[command(flatten)]
    copy: CopyArgs,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    allow: AllowArgs,
    /// Folder that `carry out` has filled.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Debug, Args)]
struct CarryAcrossArgs {
    #[command(flatten)]
    copy: CopyArgs,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    image_set: ImageSetArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) async fn run(args: CarryArgs) -> anyhow::Result<Exit> {
    let json = args.json;
    if json {
        // Standard output has the report alone.
        limit_output(Output::Remarks);
    }
    match args.step {
        CarryStep::Out(args) => {
            let report = carry_out(args).await?;
            end(&report, report.error(), report.complete, json)
        }
        CarryStep::In(args) => {
            let report = carry_in(args).await?;
            end(&report, report.error(), report.complete, json)
        }
        CarryStep::Across(args) => {
            let report = carry_across(args).await?;
            end(&report, report.error(), report.complete, json)
        }
        CarryStep::Push(args) => {
            let report = push::run(args).await?;
            end(&report, report.error.as_deref(), report.complete, json)
        }
        CarryStep::Prune(args) => prune::run(args, json).await,
    }
}

/// Prints a report for programs. People were told each part when it was done.
fn end(
    report: &impl Serialize,
    error: Option<&str>,
    is_complete: bool,
    json: bool,
) -> anyhow::Result<Exit> {
    if json {
        print_json(report)?;
    }
    match error {
        Some(error) => anyhow::bail!("{error}"),
        None => Ok(Exit::of_check(is_complete)),
    }
}

async fn carry_out(args: CarryOutArgs) -> anyhow::Result<CarryReport<Report>> {
    let set = args.image_set.read()?;
    let tools = tools::image_tools(&args.copy, None).await?;
    let folder = &args.folder;
    let none = tempfile::tempdir().context("cannot create a temporary folder")?;
    // A dry run reads the catalogs too: they decide which images are needed.
    let place = StorePlace::Folder(folder.join("store"));
    let dry_run = args.copy.dry_run;
    let mut lock = None;
    if !dry_run {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        lock = Some(lock_folder(folder)?);
        remove_partial(&images_folder(folder));
    }
    let s3 = S3Args::default();
    let store = tools::open_store(&place, &s3, dry_run, none.path()).await?;
    let published = tools::publish(&tools, store, &set).await?;
    let report = published.fill(folder, args.copy.require_all).await;
    drop(lock);
    report
}

async fn carry_in(args: CarryInArgs) -> anyhow::Result<CarryReport<SyncReport>> {
    let folder = &args.folder;
    let dry_run = args.copy.dry_run;
    let offer_place = args.cluster.place(dry_run);
    let carried = CarriedFolder::read(folder)?;
    let tools = tools::image_tools(&args.copy, Some(&offer_place.registry)).await?;
    let path = folder.join(&carried.archive);
    let archive = Archive::open(vec![wiring::open_volume(&path)?]).await?;
    let none = tempfile::tempdir().context("cannot create a temporary folder")?;
    let place = args.store.place_alone(None)?;
    let store = tools::open_store(&place, &args.store.s3, dry_run, none.path()).await?;
    let options = SyncOptions {
        // Each folder may begin a history of its own.
        later: true,
        ..args.allow.options(format!("archive {}", path.display()))
    };
    let known = publish::catalog_names(&*store).await?;
    let catalogs = Importer::new(archive, store.clone(), options).run().await?;
    print_copies(&catalogs, ReportArgs::default())?;
    let site = CarrySite {
        tools: &tools,
        store,
        store_place: &place,
        known,
        place: &offer_place,
        require_all: args.copy.require_all,
    };
    let imported = ImportedFolder {
        path: folder,
        carried,
        catalogs,
    };
    site.take(imported).await
}

async fn carry_across(args: CarryAcrossArgs) -> anyhow::Result<CarryReport<Report>> {
    let set = args.image_set.read()?;
    let dry_run = args.copy.dry_run;
    let offer_place = args.cluster.place(dry_run);
    let target = &offer_place.registry;
    let tools = tools::image_tools(&args.copy, Some(target)).await?;
    let none = tempfile::tempdir().context("cannot create a temporary folder")?;
    let place = args.store.place_alone(None)?;
    if !dry_run {
        let first = &set.first_repository;
        let checked = tools.access.check_target(target, first, set.is_sparse());
        checked.await?;
    }
    let store = tools::open_store(&place, &args.store.s3, dry_run, none.path()).await?;
    let known = publish::catalog_names(&*store).await?;
    let published = tools::publish(&tools, store.clone(), &set).await?;
    let site = CarrySite {
        tools: &tools,
        store,
        store_place: &place,
        known,
        place: &offer_place,
        require_all: args.copy.require_all,
    };
    published.offer(&site).await
}
