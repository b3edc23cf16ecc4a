//! One state of a store in the registry of a site: a way back.

use std::sync::Arc;

use ::carry::{ClusterImages, target_images};
use anyhow::Context;
use clap::Args;
use offer::{CatalogState, OfferReport, Offering};
use store::Store;

use super::ClusterArgs;
use super::tools;
use crate::args::{Access, RegistryArgs, StoreArgs};
use inspect::published;

#[derive(Debug, Args)]
pub(super) struct CarryPushArgs {
    #[command(flatten)]
    registries: RegistryArgs,
    #[command(flatten)]
    store: StoreArgs,
    /// Fail, and push nothing, if an image is missing. Default: the bundles that need it are left
    /// out.
    #[arg(long)]
    require_all: bool,
    /// Catalog of the store, or a state of it by the first digits of its content hash, as `history`
    /// shows them.
    #[arg(value_name = "NAME[@HASH]")]
    state: String,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(super) async fn run(args: CarryPushArgs) -> anyhow::Result<OfferReport> {
    let target = &args.cluster.target.registry();
    let access = tools::access(&args.registries, Some(target))?;
    let store = args.store.open_alone(Access::Read).await?;
    let state = state(&store, &args.state).await?;
    let repository = state.repository();
    access.check_target(target, &repository, false).await?;
    let needs = state.images(&store).await?;
    let images = target_images(&access.target.sources, target, &needs).await;
    let mut cluster = ClusterImages::default();
    for reference in needs.images.keys() {
        if images.lack(reference).is_none() {
            cluster.pulled.insert(reference.clone());
        }
    }
    let offering = Offering {
        access: &access,
        store: &store,
        supply: images,
        require_all: args.require_all,
        dry_run: false,
        place: &args.cluster.place(false),
    };
    offering.run(&[state], cluster).await
}

/// Finds the state that an argument names.
async fn state(store: &Arc<dyn Store>, text: &str) -> anyhow::Result<CatalogState> {
    let (name, digits) = match text.split_once('@') {
        Some((name, digits)) => (name, Some(digits)),
        None => (text, None),
    };
    let name = name.parse().with_context(|| format!("{text:?}"))?;
    let mut state = CatalogState::of(published::state(store, &name).await?);
    if let Some(digits) = digits {
        let hash = published::content_hash(store, &[name], digits).await?;
        state.content_hash = Some(hash);
    }
    Ok(state)
}
