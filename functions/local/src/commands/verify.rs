use ::sync::{Copier, Repair, SyncOptions};
use model::CatalogName;
use upkeep::Verification;

use super::sync::origin;
use crate::{
    cli::{SyncOrigin, VerifyArgs},
    exit::Exit,
    output, published,
    stores::Access,
};

type Verifications = Vec<(CatalogName, Verification)>;

pub(crate) async fn run(args: VerifyArgs) -> anyhow::Result<Exit> {
    let results = match &args.repair_from {
        Some(from) => repair(&args, from).await?,
        None => verify(&args).await?,
    };
    if args.json {
        output::verifications::json(&results)?;
    } else {
        output::verifications::table(&results)?;
    }
    let sound = results.iter().all(|(_, verification)| verification.findings.is_empty());
    Ok(if sound { Exit::Success } else { Exit::Failed })
}

async fn verify(args: &VerifyArgs) -> anyhow::Result<Verifications> {
    let store = args.store.open_alone(Access::Read).await?;
    let mut results = Vec::new();
    for name in published::names_or_all(&*store, &args.names).await? {
        let verification = upkeep::verify(&*store, &name).await?;
        results.push((name, verification));
    }
    Ok(results)
}

async fn repair(args: &VerifyArgs, from: &SyncOrigin) -> anyhow::Result<Verifications> {
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
        results.push((name, verification));
    }
    Ok(results)
}
