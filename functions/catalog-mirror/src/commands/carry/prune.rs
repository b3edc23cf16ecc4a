//! Manifests that `carry` made at a registry and no state of the store needs.

use clap::Args;
use inspect::published;
use offer::Pruning;
use terminal::{Exit, print_line};

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

pub(super) async fn run(args: CarryPruneArgs) -> anyhow::Result<Exit> {
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
    let mut count = 0;
    for (repository, manifests) in &plan.manifests {
        for manifest in manifests {
            count += 1;
            let tags = manifest.tags.join(" ");
            print_line(&format!("{repository}@{} {tags}", manifest.digest))?;
        }
    }
    let repositories = plan.repositories;
    print_line(&format!(
        "{count} manifests in {repositories} repositories are not needed by the {} states of the store, which need {} images",
        plan.states, plan.needed
    ))?;
    if count == 0 {
        return Ok(Exit::Success);
    }
    if !args.yes {
        print_line("nothing is deleted: repeat the command with --yes")?;
        return Ok(Exit::Success);
    }
    let left = pruning.remove(&plan).await?;
    print_line(&format!(
        "{} manifests are deleted; the registry frees their bytes with its next garbage collection",
        count - left
    ))?;
    Ok(Exit::of_check(left == 0))
}
