//! From an ImageSetConfiguration to a registry that clusters reach, over a folder that a person
//! carries or at once.

mod image_set;
mod prune;
mod push;
mod tools;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use ::carry::{
    CarriedFolder, CarriedImage, ClusterImages, ImagePlace, ImageSupply, lock_folder,
    remove_partial,
};
use ::sync::{Archive, Importer, SyncOptions};
use anyhow::Context;
use clap::{Args, Subcommand};
use config::poll_interval;
use offer::{CatalogState, OfferPlace, Offering};
use store::{Store, StorePlace};

use self::image_set::ImageSetArgs;
use self::prune::CarryPruneArgs;
use self::push::CarryPushArgs;
use self::tools::Collected;
use crate::args::{Access, AllowArgs, RegistryArgs, ReportArgs, S3Args, StoreArgs, TargetArgs};
use crate::reports::print_copies;
use crate::wiring;
use inspect::published;
use model::CatalogName;
use terminal::{Exit, print_line, say};

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

/// Folder of the images in the folder that is carried.
const IMAGES: &str = "images";

pub(crate) async fn run(args: CarryArgs) -> anyhow::Result<Exit> {
    match args.step {
        CarryStep::Out(args) => carry_out(args).await,
        CarryStep::In(args) => carry_in(args).await,
        CarryStep::Across(args) => carry_across(args).await,
        CarryStep::Push(args) => push::run(args).await,
        CarryStep::Prune(args) => prune::run(args).await,
    }
}

async fn carry_out(args: CarryOutArgs) -> anyhow::Result<Exit> {
    let set = args.image_set.read()?;
    let tools = tools::image_tools(&args.copy, None).await?;
    let folder = &args.folder;
    let none = tempfile::tempdir().context("cannot create a temporary folder")?;
    // A dry run reads the catalogs too: they decide which images are needed.
    let images_folder = folder.join(IMAGES);
    let place = StorePlace::Folder(folder.join("store"));
    let mut lock = None;
    let store = if args.copy.dry_run {
        tools::draft(&place, &S3Args::default(), none.path()).await?
    } else {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        lock = Some(lock_folder(folder)?);
        remove_partial(&images_folder);
        S3Args::default().open(&place, Access::Create).await?
    };
    let to = ImagePlace::Folder(&images_folder);
    let Collected {
        names,
        mut images,
        missing,
        failed,
    } = tools::collect(&tools, &store, &set, to).await?;
    let is_whole = failed == 0 && missing.is_empty();
    let is_refused = args.copy.require_all && !is_whole;
    anyhow::ensure!(
        !is_refused,
        "carry.json is not written: not all is there, and --require-all is set"
    );
    if !args.copy.dry_run {
        remove_partial(&images_folder);
        for missing in &missing {
            images.retain(|image| !missing.is(image));
        }
        let before = CarriedFolder::read(folder).ok();
        let archive = ::sync::archive_into(store, &names, folder, SystemTime::now()).await?;
        let carried = CarriedFolder::new(archive, images, missing);
        carried.write(folder)?;
        if let Some(before) = before.filter(|before| before.archive != carried.archive) {
            // An archive that is not removed is of no harm: carry.json names the one that is read.
            fs::remove_file(folder.join(&before.archive)).ok();
        }
        let folder = folder.display();
        print_line(&format!(
            "carry {folder} to the other side: catalog-mirror carry in DIR REGISTRY"
        ))?;
    }
    set.end()?;
    drop(lock);
    Ok(Exit::of_check(is_whole))
}

async fn carry_in(args: CarryInArgs) -> anyhow::Result<Exit> {
    let folder = &args.folder;
    let target = &args.cluster.target.registry();
    let carried = CarriedFolder::read(folder)?;
    let tools = tools::image_tools(&args.copy, Some(target)).await?;
    let path = folder.join(&carried.archive);
    let archive = Archive::open(vec![wiring::open_volume(&path)?]).await?;
    let packed = archive.manifest().catalogs.iter();
    let names: Vec<CatalogName> = packed.map(|packed| packed.name.clone()).collect();
    let images_folder = folder.join(IMAGES);
    let from = Some(images_folder.as_path());
    let to = ImagePlace::Target(target);
    let mut missing = carried.missing;
    for missing in &missing {
        let folder = folder.display();
        say(&format!("missing in {folder}: {}", missing.line()));
    }
    let place = args.store.place_alone(None)?;
    let none = tempfile::tempdir().context("cannot create a temporary folder")?;
    let dry_run = args.copy.dry_run;
    let store = if dry_run {
        tools::draft(&place, &args.store.s3, none.path()).await?
    } else {
        args.store.open_alone(Access::Create).await?
    };
    let options = SyncOptions {
        // Each folder may begin a history of its own.
        later: true,
        ..args.allow.options(format!("archive {}", path.display()))
    };
    let known = publish::catalog_names(&*store).await?;
    let reports = Importer::new(archive, store.clone(), options).run().await?;
    let imported = print_copies(&reports, ReportArgs::default())?;
    print_line(&format!("the store of the site is {}", place.shown()))?;
    let states = states(&store, &names).await?;
    let access = &tools.access;
    access
        .note_other_store(target, &states, &known, &place)
        .await?;
    if let Some(first) = states.first().filter(|_| !dry_run) {
        let repository = first.repository();
        tools.access.check_push(target, &repository).await?;
        if carried.images.iter().any(CarriedImage::is_sparse) {
            tools.access.check_sparse(target, &repository).await?;
        }
    }
    let images = &carried.images;
    missing.extend(tools.copy(images, from, to).await?);
    missing.extend(tools.list_referrers(images, &missing, target).await);
    let offering = Offering {
        access: &tools.access,
        store: &store,
        supply: ImageSupply::new(images, &missing),
        require_all: args.copy.require_all,
        dry_run,
        place: &args.cluster.place(dry_run),
    };
    let failed = offering.run(&states, ClusterImages::new(images)).await?;
    let is_whole = missing.is_empty() && failed == 0;
    Ok(Exit::of_check(imported == Exit::Success && is_whole))
}

async fn carry_across(args: CarryAcrossArgs) -> anyhow::Result<Exit> {
    let set = args.image_set.read()?;
    let target = &args.cluster.target.registry();
    let tools = tools::image_tools(&args.copy, Some(target)).await?;
    let none = tempfile::tempdir().context("cannot create a temporary folder")?;
    let dry_run = args.copy.dry_run;
    let place = args.store.place_alone(None)?;
    let store = if dry_run {
        tools::draft(&place, &args.store.s3, none.path()).await?
    } else {
        tools
            .access
            .check_push(target, &set.first_repository)
            .await?;
        if set.is_sparse() {
            let repository = &set.first_repository;
            tools.access.check_sparse(target, repository).await?;
        }
        args.store.open_alone(Access::Create).await?
    };
    let known = publish::catalog_names(&*store).await?;
    let to = ImagePlace::Target(target);
    let mut found = tools::collect(&tools, &store, &set, to).await?;
    print_line(&format!("the store of the site is {}", place.shown()))?;
    let unlisted = tools
        .list_referrers(&found.images, &found.missing, target)
        .await;
    found.missing.extend(unlisted);
    let mut failed = found.failed + found.missing.len();
    let images = &found.images;
    let offering = Offering {
        access: &tools.access,
        store: &store,
        supply: ImageSupply::new(images, &found.missing),
        require_all: args.copy.require_all,
        dry_run,
        place: &args.cluster.place(dry_run),
    };
    let states = states(&store, &found.names).await?;
    let access = &tools.access;
    access
        .note_other_store(target, &states, &known, &place)
        .await?;
    failed += offering.run(&states, ClusterImages::new(images)).await?;
    set.end()?;
    Ok(Exit::of_check(failed == 0))
}

/// Returns the published states of catalogs.
async fn states(
    store: &Arc<dyn Store>,
    names: &[CatalogName],
) -> anyhow::Result<Vec<CatalogState>> {
    let mut states = Vec::new();
    for name in names {
        states.push(CatalogState::of(published::state(store, name).await?));
    }
    Ok(states)
}
