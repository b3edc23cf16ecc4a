use ::sync::{Copier, Repair, SyncOptions};

use super::sync::origin;
use crate::{
    cli::{SyncOrigin, VerifyArgs},
    exit::Exit,
    output::store::{VerifiedCatalog, print_verified},
    published,
    stores::Access,
};

pub(crate) async fn run(args: VerifyArgs) -> anyhow::Result<Exit> {
    let results = match &args.repair_from {
        Some(from) => repair(&args, from).await?,
        None => verify(&args).await?,
    };
    print_verified(&results, args.json)?;
    let sound = results.iter().all(|catalog| catalog.found.findings.is_empty());
    Ok(if sound { Exit::Success } else { Exit::Failed })
}

async fn verify(args: &VerifyArgs) -> anyhow::Result<Vec<VerifiedCatalog>> {
    let store = args.store.open_alone(Access::Read).await?;
    let mut results = Vec::new();
    for name in published::names_or_all(&*store, &args.names).await? {
        let found = upkeep::verify(&*store, &name).await?;
        results.push(VerifiedCatalog { catalog: name, found });
    }
    Ok(results)
}

async fn repair(args: &VerifyArgs, from: &SyncOrigin) -> anyhow::Result<Vec<VerifiedCatalog>> {
    let place = args.store.place_alone(from.store())?;
    let store = args.store.s3.open(&place, Access::Write).await?;
    let origin = origin(from, &args.store.s3, &args.ca_file, args.header_file.as_deref()).await?;
    // No keys: every fetched object is checked against the hashes of the present state.
    let copier = Copier::new(origin, store.clone(), SyncOptions::default());
    let mut results = Vec::new();
    for name in published::names_or_all(&*store, &args.names).await? {
        let Repair {
            verification,
            repaired,
            failed,
        } = copier.repair(&name).await?;
        repaired.iter().for_each(|key| eprintln!("{key} was repaired"));
        for failure in failed {
            eprintln!("{} cannot be repaired: {}", failure.key, failure.error);
        }
        results.push(VerifiedCatalog {
            catalog: name,
            found: verification,
        });
    }
    Ok(results)
}
