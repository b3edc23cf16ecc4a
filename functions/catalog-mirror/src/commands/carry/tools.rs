use std::{path::Path, sync::Arc};

use ::carry::{Skopeo, TargetRegistry};
use anyhow::Context;
use offer::{CarriedSet, ImageTools, PublishedSet, RegistryAccess};
use publish::PollOptions;
use store::{DraftStore, FolderStore, Store, StorePlace};

use super::CopyArgs;
use crate::args::{Access, RegistryArgs, S3Args};
use crate::reports::print_polls;
use crate::wiring;

/// Returns access to registries. `target` is one that is written to.
pub(super) fn access(
    args: &RegistryArgs,
    target: Option<&TargetRegistry>,
) -> anyhow::Result<RegistryAccess> {
    let mut registries = args.clone();
    if let Some(target) = target.filter(|target| target.is_plain) {
        registries.plain_http.push(target.host.clone());
    }
    let reader = wiring::sources(&registries)?;
    Ok(RegistryAccess::new(reader))
}

/// Opens a store. In a dry run it stays as it is: its changes go to a folder.
pub(super) async fn open_store(
    place: &StorePlace,
    s3: &S3Args,
    dry_run: bool,
    folder: &Path,
) -> anyhow::Result<Arc<dyn Store>> {
    if !dry_run {
        return s3.open(place, Access::Create).await;
    }
    let changes = FolderStore::open(folder.join("store")).context("cannot open the store")?;
    if matches!(place, StorePlace::Folder(path) if !path.exists()) {
        return Ok(Arc::new(changes));
    }
    let base = s3.open(place, Access::Follow).await?;
    Ok(Arc::new(DraftStore::new(base, Arc::new(changes))))
}

/// Returns the tools that copy images.
pub(super) async fn image_tools(
    args: &CopyArgs,
    target: Option<&TargetRegistry>,
) -> anyhow::Result<ImageTools> {
    let access = access(&args.registries, target)?;
    let http = access.reader.sources.settings.http.clone();
    let auth_files = &args.registries.auth_file;
    let registries_conf = args.registries.rules();
    let program = args.skopeo.clone();
    Ok(ImageTools {
        skopeo: Skopeo::find(program, http, auth_files, &registries_conf).await?,
        access,
        dry_run: args.dry_run,
        rechecks: args.recheck,
    })
}

/// Composes and publishes the catalogs of an ImageSetConfiguration, and prints the reports.
pub(super) async fn publish<'a>(
    tools: &'a ImageTools,
    store: Arc<dyn Store>,
    set: &'a CarriedSet,
) -> anyhow::Result<PublishedSet<'a>> {
    let mirror = tools.access.mirror(&store);
    let progress = crate::progress::show_poll(mirror.progress(), false);
    let options = PollOptions {
        force: set.force,
        ..PollOptions::default()
    };
    let catalogs = mirror.poll_all(&set.catalogs, options).await;
    progress.finish_and_clear();
    print_polls(&catalogs, false)?;
    Ok(PublishedSet {
        tools,
        set,
        store,
        catalogs,
    })
}
