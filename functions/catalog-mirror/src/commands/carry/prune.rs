//! Manifests that `carry` made at a registry and no state of the store needs.

use clap::Args;
use inspect::published;
use offer::{PrunePlan, Pruning};
use serde::Serialize;
use terminal::{Exit, print_done, print_json, print_line};

use super::tools;
use crate::args::{Access, RegistryArgs, StoreArgs, TargetArgs};

#[derive(Debug, Args)]
#[command(after_help = "\
Images of catalogs that `carry` copied have tags of it: `carried-DIGEST`, and beside the own tag of an image a mark. An image \
without one, or with a tag of someone else beside it, stays. So do additional images, and all that the catalogs need which the registry has now.

Each store knows its own states only: name the one that this registry is filled from.")]
pub(super) struct CarryPruneArgs {
    #[command(flatten)]
    registries: RegistryArgs,
    #[command(flatten)]
    store: StoreArgs,
    /// Delete what is listed. Default: nothing is deleted.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    target: TargetArgs,
}

/// Report for programs.
#[derive(Serialize)]
struct PruneReport {
    #[serde(flatten)]
    plan: PrunePlan,
    /// Number of manifests that were deleted.
    deleted: usize,
}

pub(super) async fn run(args: CarryPruneArgs, json: bool) -> anyhow::Result<Exit> {
    let registry = &args.target.registry();
    let access = tools::access(&args.registries, Some(registry))?;
    let store = args.store.open_alone(Access::Read).await?;
    let mut states = Vec::new();
    for name in published::some_names(&store, &[]).await? {
        states.push(published::state(&store, &name).await?);
    }
    let pruning = Pruning {
        access: &access,
        store: &store,
        registry,
    };
    let plan = pruning.plan(states).await?;
    if !json {
        print_plan(&plan)?;
    }
    let manifests = plan.manifests.values();
    let count: usize = manifests.map(Vec::len).sum();
    let mut left = 0;
    let mut deleted = 0;
    if args.yes && count > 0 {
        left = pruning.remove(&plan).await?;
        deleted = count - left;
        print_done(&format!(
            "{deleted} manifests are deleted; the registry frees their bytes with its next garbage collection"
        ))?;
    } else if count > 0 {
        print_done("nothing is deleted: repeat the command with --yes")?;
    }
    if json {
        print_json(&PruneReport { plan, deleted })?;
    }
    Ok(Exit::of_check(left == 0))
}

/// Prints a line for each manifest that is not needed, then their number.
fn print_plan(plan: &PrunePlan) -> anyhow::Result<()> {
    let mut count = 0;
    for (repository, manifests) in &plan.manifests {
        for manifest in manifests {
            count += 1;
            let tags = manifest.tags.join(" ");
            print_line(&format!("{repository}@{} {tags}", manifest.digest))?;
        }
    }
    print_done(&format!(
        "{count} manifests in {} repositories are not needed by the {} states of the store, which need {} images",
        plan.repositories, plan.states, plan.needed
    ))
}
