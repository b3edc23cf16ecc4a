use std::sync::Arc;

use ::sync::{Copier, Repair, Settings};
use config::Config;
use keep::Verification;
use layout::CatalogName;
use store::Store;

use super::sync::origin;
use crate::{
    cli::{FromPlace, Verify},
    exit::Exit,
    output, wiring,
};

type Results = Vec<(CatalogName, Verification)>;

pub(crate) async fn run(args: Verify) -> anyhow::Result<Exit> {
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
    Ok(if sound { Exit::Fine } else { Exit::Failed })
}

async fn verify(args: &Verify) -> anyhow::Result<Results> {
    let store = args.store.open_to_read(&Config::default()).await?;
    let mut results = Vec::new();
    for name in names(args, &store).await? {
        let verification = keep::verify(&*store, &name).await?;
        results.push((name, verification));
    }
    Ok(results)
}

async fn repair(args: &Verify, from: &FromPlace) -> anyhow::Result<Results> {
    let place = args.store.place(&Config::default())?;
    args.store.s3.suits([&place].into_iter().chain(from.store()))?;
    let store = place.open(&args.store.s3).await?;
    let origin = origin(from, &args.store.s3, &args.ca_file, args.header_file.as_deref()).await?;
    let copier = Copier::new(origin, store.clone(), Settings::default());
    let mut results = Vec::new();
    for name in names(args, &store).await? {
        let Repair {
            verification,
            repaired,
            failed,
        } = copier.repair(&name).await?;
        repaired.iter().for_each(|key| eprintln!("{key} was repaired"));
        for (key, why) in failed {
            eprintln!("{key} cannot be repaired: {why}");
        }
        results.push((name, verification));
    }
    Ok(results)
}

async fn names(args: &Verify, store: &Arc<dyn Store>) -> anyhow::Result<Vec<CatalogName>> {
    if args.names.is_empty() {
        Ok(wiring::names(&**store).await?.into_iter().collect())
    } else {
        Ok(args.names.clone())
    }
}
