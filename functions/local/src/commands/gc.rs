use crate::{cli::Gc, exit::Exit, output, wiring};

pub(crate) async fn run(args: Gc) -> anyhow::Result<Exit> {
    let config = wiring::files(&args.config)?;
    let store = if args.dry_run {
        args.store.open_to_read(&config).await?
    } else {
        args.store.open(&config).await?
    };
    let settings = args.settings(&config.retention.unwrap_or_default());
    let report = keep::gc(&*store, &settings).await?;
    if args.json {
        output::gc::json(&report)?;
    } else {
        output::gc::table(&report)?;
    }
    Ok(Exit::Fine)
}
