//! From an ImageSetConfiguration to a registry that clusters reach, over a folder that a person
//! carries or at once.

mod tools;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use ::carry::{CarriedFolder, ImagePlace, TargetRegistry, lock_folder, remove_partial};
use ::compose::ComposeFile;
use ::sync::{Archive, Importer};
use anyhow::Context;
use clap::{Args, Subcommand};
use config::poll_interval;
use model::CatalogName;
use publish::{Catalog, CatalogSource, ComposedSource};
use store::{FolderStore, Store};

use self::tools::{Collected, Tools};
use crate::args::{Access, AllowArgs, RegistryArgs, ReportArgs, StoreArgs};
use crate::reports::print_copies;
use crate::{compositions, wiring};
use terminal::{Exit, join, print_line, say};

#[derive(Debug, Args)]
#[command(after_help = "\
The program skopeo copies the images, with all their platforms and with the signatures that are attached to them. Each \
command is printed. What is there already is not copied again, so a run that failed or was killed is just repeated. An \
image that fails is named, the others are copied, and the exit code is 1.

Credentials: --auth-file, else the files of podman and docker. TLS: --ca-file and --plain-http.

Examples:
  catalog-mirror carry out imageset.yaml /media/disk
  catalog-mirror carry in /media/disk registry.example/olm
  catalog-mirror carry across imageset.yaml registry.example/olm")]
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
}

/// Options of a step that copies images.
#[derive(Debug, Args)]
struct CopyArgs {
    #[command(flatten)]
    registries: RegistryArgs,
    /// The program skopeo, 1.9 or newer.
    #[arg(long, value_name = "PATH", default_value = "skopeo")]
    skopeo: PathBuf,
    /// Print what would be done and copied. Nothing is written.
    #[arg(long)]
    dry_run: bool,
}

/// Options of a step that ends at clusters.
#[derive(Debug, Args)]
struct ClusterArgs {
    /// Folder for the manifests. Its files are replaced.
    #[arg(long, value_name = "DIR", default_value = "manifests")]
    manifests: PathBuf,
    /// Time between two polls of the catalogs by clusters, from 1s to 365d. Rounded up to minutes.
    #[arg(long, default_value = "10m", value_parser = poll_interval)]
    interval: std::time::Duration,
    /// Namespace of CatalogSources. Outside OpenShift it is `olm`.
    #[arg(long, default_value = "openshift-marketplace")]
    namespace: String,
    /// Registry for images and catalogs. An image lies below the name of its registry:
    /// REGISTRY/quay.io/team/app.
    #[arg(value_name = "REGISTRY")]
    registry: TargetRegistry,
}

#[derive(Debug, Args)]
struct CarryOutArgs {
    #[command(flatten)]
    copy: CopyArgs,
    /// ImageSetConfiguration of oc-mirror v2.
    #[arg(value_name = "ISC")]
    file: PathBuf,
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
    /// ImageSetConfiguration of oc-mirror v2.
    #[arg(value_name = "ISC")]
    file: PathBuf,
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
    }
}

async fn carry_out(args: CarryOutArgs) -> anyhow::Result<Exit> {
    let catalogs = image_set(&args.file)?;
    let tools = Tools::new(&args.copy, None).await?;
    let folder = &args.folder;
    let none = tempfile::tempdir().context("cannot create a temporary folder")?;
    // A dry run reads the catalogs too: they decide which images are needed.
    let work = if args.copy.dry_run {
        none.path()
    } else {
        folder
    };
    fs::create_dir_all(work).with_context(|| format!("cannot create {}", work.display()))?;
    let _lock = lock_folder(work)?;
    let images_folder = folder.join(IMAGES);
    if !args.copy.dry_run {
        remove_partial(&images_folder);
    }
    let store: Arc<dyn Store> =
        Arc::new(FolderStore::open(work.join("store")).context("cannot open the store")?);
    let to = ImagePlace::Folder(&images_folder);
    let Collected {
        names,
        images,
        failed,
    } = tools.collect(&store, &catalogs, to).await?;
    if !args.copy.dry_run {
        remove_partial(&images_folder);
        let before = CarriedFolder::read(folder).ok();
        let archive = ::sync::archive_into(store, &names, folder, SystemTime::now()).await?;
        let carried = CarriedFolder::new(archive, images);
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
    Ok(Exit::of_check(failed == 0))
}

async fn carry_in(args: CarryInArgs) -> anyhow::Result<Exit> {
    let (folder, target) = (&args.folder, &args.cluster.registry);
    let carried = CarriedFolder::read(folder)?;
    let tools = Tools::new(&args.copy, Some(target)).await?;
    let path = folder.join(&carried.archive);
    let archive = Archive::open(vec![wiring::open_volume(&path)?]).await?;
    let packed = archive.manifest().catalogs.iter();
    let names: Vec<CatalogName> = packed.map(|packed| packed.name.clone()).collect();
    let images_folder = folder.join(IMAGES);
    let (from, to) = (Some(images_folder.as_path()), ImagePlace::Target(target));
    if args.copy.dry_run {
        let failed = tools.copy(&carried.images, from, to).await?;
        print_line(&format!(
            "would import {} and push {}",
            path.display(),
            join(&names)
        ))?;
        return Ok(Exit::of_check(failed == 0));
    }
    let store = args.store.open_alone(Access::Create).await?;
    let options = args.allow.options(format!("archive {}", path.display()));
    let reports = Importer::new(archive, store.clone(), options).run().await?;
    let imported = print_copies(&reports, ReportArgs::default())?;
    let images = &carried.images;
    let mut failed = tools.copy(images, from, to).await?;
    failed += tools.finish(&store, &names, images, &args.cluster).await?;
    Ok(Exit::of_check(imported == Exit::Success && failed == 0))
}

async fn carry_across(args: CarryAcrossArgs) -> anyhow::Result<Exit> {
    let catalogs = image_set(&args.file)?;
    let target = &args.cluster.registry;
    let tools = Tools::new(&args.copy, Some(target)).await?;
    let none = tempfile::tempdir().context("cannot create a temporary folder")?;
    let store: Arc<dyn Store> = if args.copy.dry_run {
        Arc::new(FolderStore::open(none.path().join("store")).context("cannot open the store")?)
    } else {
        args.store.open_alone(Access::Create).await?
    };
    let mut found = tools
        .collect(&store, &catalogs, ImagePlace::Target(target))
        .await?;
    if args.copy.dry_run {
        print_line(&format!("would push {}", join(&found.names)))?;
    } else {
        let finished = tools.finish(&store, &found.names, &found.images, &args.cluster);
        found.failed += finished.await?;
    }
    Ok(Exit::of_check(found.failed == 0))
}

/// Returns the compositions of an ImageSetConfiguration.
fn image_set(path: &Path) -> anyhow::Result<Vec<Catalog>> {
    let place = || path.display().to_string();
    let ComposeFile::ImageSet(image_set) = compositions::read(path)? else {
        anyhow::bail!("{} is no ImageSetConfiguration", place());
    };
    if !image_set.ignored.is_empty() {
        say(&format!(
            "notice: not carried: {}",
            image_set.ignored.join(", ")
        ));
    }
    let has_entries = !image_set.entries.is_empty();
    anyhow::ensure!(has_entries, "{}: mirror.operators has no entry", place());
    let folder = path.parent().unwrap_or(Path::new(""));
    let catalogs = image_set.entries.into_iter().map(|(name, composition)| {
        let composed = ComposedSource::new(composition, folder).with_context(place)?;
        Ok(Catalog::new(
            name,
            CatalogSource::Composed(Box::new(composed)),
        ))
    });
    catalogs.collect()
}
