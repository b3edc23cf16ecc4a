use std::slice;

use clap::Args;
use inspect::published;
use model::CatalogName;
use terminal::{Exit, print_done, print_failure, printable};

use crate::args::{Access, StoreArgs};

#[derive(Debug, Args)]
#[command(after_help = "\
Look at it before: `catalog-mirror diff --held NAME`. If the source has another revision by the next poll, that one is judged \
anew.")]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Name of the catalog.
    #[arg(value_name = "NAME")]
    name: CatalogName,
}

pub(crate) async fn run(args: ReleaseArgs) -> anyhow::Result<Exit> {
    let store = args.store.open_alone(Access::Write).await?;
    published::names_or_all(&store, slice::from_ref(&args.name)).await?;
    let name = &args.name;
    match publish::release(&*store, name).await? {
        Some(held) => {
            let revision = printable(&held.inputs.revision);
            print_done(&format!("{name}: the next poll publishes {revision}"))?;
            Ok(Exit::Success)
        }
        None => {
            let problem = format!("nothing of {name} is held back; see `catalog-mirror ls`");
            print_failure("error", &problem);
            Ok(Exit::Failed)
        }
    }
}
