use std::path::PathBuf;

use ::sync::{Copier, SyncOptions, SyncOrigin};
use clap::Args;
use inspect::published;
use model::CatalogName;
use upkeep::Verification;

use crate::args::{Access, StoreArgs};
use crate::table::{Column, Table, print};
use crate::wiring;
use terminal::Exit;
use terminal::{bytes, print_text, remark, say};

const REPAIR: &str = "Repair";

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Fetch missing and damaged objects from this mirror: its URL, or a store.
    #[arg(long, help_heading = REPAIR, value_name = "FROM")]
    repair_from: Option<SyncOrigin>,
    /// PEM bundle of certificates to trust in addition to the system's. May be repeated.
    #[arg(long, help_heading = REPAIR, value_name = "FILE", requires = "repair_from")]
    ca_file: Vec<PathBuf>,
    /// File of header fields to send to FROM, one a line, such as `Authorization: Bearer ...`.
    #[arg(long, help_heading = REPAIR, value_name = "FILE", requires = "repair_from")]
    header_file: Option<PathBuf>,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Catalogs to verify. Default: all of the store.
    #[arg(value_name = "NAME")]
    names: Vec<CatalogName>,
}

pub(crate) async fn run(args: VerifyArgs) -> anyhow::Result<Exit> {
    let (store, copier) = match &args.repair_from {
        None => (args.store.open_alone(Access::Read).await?, None),
        Some(from) => {
            let place = args.store.place_alone(from.store())?;
            let store = args.store.s3.open(&place, Access::Write).await?;
            let origin = wiring::origin(
                from,
                &args.store.s3,
                &args.ca_file,
                args.header_file.as_deref(),
            )
            .await?;
            // No keys: every fetched object is checked against the hashes of the present state.
            let copier = Copier::new(origin, store.clone(), SyncOptions::default());
            (store, Some(copier))
        }
    };
    let mut results = Vec::new();
    for catalog in published::names_or_all(&store, &args.names).await? {
        results.push(match &copier {
            None => upkeep::verify(&*store, &catalog).await?,
            Some(copier) => repair(copier, &catalog).await?,
        });
    }
    print(&results, args.json)?;
    let findings: Vec<_> = results
        .iter()
        .flat_map(|catalog| &catalog.findings)
        .collect();
    for finding in findings.iter().filter(|_| !args.json) {
        print_text(&format!("{} {}\n", finding.key, finding.problem))?;
    }
    Ok(Exit::of_check(findings.is_empty()))
}

/// Fetches missing and damaged objects of a catalog. Returns what is left to find.
async fn repair(copier: &Copier, catalog: &CatalogName) -> anyhow::Result<Verification> {
    let repair = copier.repair(catalog).await?;
    for key in &repair.repaired {
        remark(&format!("{key} was repaired"));
    }
    for (key, error) in repair.failed {
        say(&format!("{key} cannot be repaired: {error}"));
    }
    Ok(repair.verification)
}

impl Table for Verification {
    const COLUMNS: &'static [Column<Self>] = &[
        ("NAME", |verified| verified.catalog.to_string()),
        ("SNAPSHOTS", |verified| verified.snapshots.to_string()),
        ("OBJECTS", |verified| verified.objects.to_string()),
        ("SIZE", |verified| bytes(verified.bytes)),
        ("FINDINGS", |verified| verified.findings.len().to_string()),
    ];

    const IS_FAILED: fn(&Self) -> bool = |verified| !verified.findings.is_empty();
}
