use clap::Args;
use inspect::published;
use model::{CatalogName, ChangedPackages};
use terminal::{age, cell, print_line, short};
use upkeep::{HistoryState, ROLLED_BACK};

use crate::args::{Access, StoreArgs};
use crate::reports::changes;
use crate::table::{Column, Table, print};

#[derive(Debug, Args)]
#[command(after_help = "\
CHANGED counts the packages that were added (+), removed (-) and changed (~) since the state before, and names up to three. \
`diff NAME OLD NEW` shows all. Of a ring, the states that wait come first, each with what it would change. --json has the times. A state that is not stored was removed by a collection: it can no longer be rolled back to.")]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Name of the catalog.
    #[arg(value_name = "NAME")]
    name: CatalogName,
}

pub(crate) async fn run(args: HistoryArgs) -> anyhow::Result<()> {
    let store = args.store.open_alone(Access::Read).await?;
    let state = published::state(&store, &args.name).await?;
    let current = state.current();
    let states = upkeep::history(&*store, current).await?;
    print(&states, args.json)?;
    if !args.json && current.rolled_back.is_some() {
        print_line(&format!("{}: {ROLLED_BACK}", args.name))?;
    }
    Ok(())
}

impl Table for HistoryState {
    const COLUMNS: &'static [Column<Self>] = &[
        ("SERIAL", |state| cell(state.serial)),
        ("CONTENT", |state| short(&state.content_hash)),
        ("PUBLISHED", |state| age(state.published_at)),
        ("PACKAGES", |state| cell(state.packages)),
        ("STATE", |state| {
            if let Some(waits) = state.waits {
                return waits.to_string();
            }
            let text = match (state.is_stored, state.is_published, state.is_held_back) {
                (_, true, true) => "published, rolled back",
                (_, true, false) => "published",
                (true, false, _) => "",
                (false, false, _) => "not stored",
            };
            text.to_owned()
        }),
        // Last, so that its names are wrapped below each other.
        ("CHANGED", |state| {
            cell(state.changes.as_ref().map(changed_names))
        }),
    ];
}

/// Most names of packages in the table.
const NAMES_MAX: usize = 3;

/// Returns the numbers of changed packages and the names of some of them.
fn changed_names(packages: &ChangedPackages) -> String {
    let all = [&packages.changed, &packages.added, &packages.removed];
    let mut names = all.into_iter().flatten();
    let mut text = changes(packages);
    let shown: Vec<&str> = names.by_ref().take(NAMES_MAX).map(String::as_str).collect();
    if !shown.is_empty() {
        text += &format!(": {}", shown.join(", "));
    }
    if names.next().is_some() {
        text += ", ...";
    }
    text
}
