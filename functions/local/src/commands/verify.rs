use crate::{cli::Verify, exit::Exit, output, wiring};
use config::Config;

pub(crate) async fn run(args: Verify) -> anyhow::Result<Exit> {
    let store = args.store.open_to_read(&Config::default()).await?;
    let names = if args.names.is_empty() {
        wiring::names(&*store).await?.into_iter().collect()
    } else {
        args.names
    };
    let mut results = Vec::new();
    for name in names {
        let verification = keep::verify(&*store, &name).await?;
        results.push((name, verification));
    }
    if args.json {
        output::verifications::json(&results)?;
    } else {
        output::verifications::table(&results)?;
    }
    let sound = results.iter().all(|(_, verification)| verification.findings.is_empty());
    Ok(if sound { Exit::Fine } else { Exit::Failed })
}
