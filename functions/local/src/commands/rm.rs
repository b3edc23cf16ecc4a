use anyhow::Context;
use config::Config;

use crate::{cli::Rm, exit::Exit};

pub(crate) async fn run(args: Rm) -> anyhow::Result<Exit> {
    let store = args.store.open(&Config::default()).await?;
    let mut exit = Exit::Fine;
    for name in &args.names {
        let removed = keep::remove(&*store, name)
            .await
            .with_context(|| format!("cannot remove {name}"))?;
        if removed == 0 {
            eprintln!("{name}: the store has no such catalog");
            exit = Exit::Failed;
        } else {
            println!(
                "{name}: removed {removed} objects; shards, and what is being published, stay until `catalog-mirror gc`"
            );
        }
    }
    Ok(exit)
}
