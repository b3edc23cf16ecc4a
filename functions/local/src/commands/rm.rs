use anyhow::Context;

use crate::{cli::RmArgs, exit::Exit, stores::Access};

pub(crate) async fn run(args: RmArgs) -> anyhow::Result<Exit> {
    let store = args.store.open_alone(Access::Write).await?;
    let mut exit = Exit::Success;
    for name in &args.names {
        let removed = publish::remove(&*store, name)
            .await
            .with_context(|| format!("cannot remove {name}"))?;
        if removed == 0 {
            eprintln!("{name}: the store has no such catalog");
            exit = Exit::Failed;
        } else {
            println!(
                "{name}: removed {removed} documents. Its objects stay until `catalog-mirror gc` has collected them."
            );
        }
    }
    Ok(exit)
}
