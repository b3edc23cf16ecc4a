use std::slice;

use notify::{NotifierSettings, NotifyMetrics};
use publish::{RollbackOptions, RollbackTarget};

use crate::{cli::RollbackArgs, exit::Exit, output, stores::Access, wiring};

pub(crate) async fn run(args: RollbackArgs) -> anyhow::Result<Exit> {
    let config = wiring::files_and_keys(&args.store.config, &args.keys)?;
    let store = args.store.s3.open(&args.store.place(&config)?, Access::Write).await?;
    let notifier = wiring::notifier(
        &config,
        store.clone(),
        NotifierSettings::default(),
        NotifyMetrics::default(),
    );
    let target = args.content_hash.map_or(RollbackTarget::Previous, RollbackTarget::Hash);
    // A rollback is a publication, so its events are sent now and not only by the next poll.
    notifier.register_receivers(slice::from_ref(&args.name)).await;
    let options = RollbackOptions {
        unverified: args.unverified,
        signer: config.keys.signer(),
        ..RollbackOptions::new(target)
    };
    let reports = [publish::rollback(&store, &args.name, &options).await];
    output::print_polls(&reports, args.report.json)?;
    notifier.after(&reports[0]).await;
    Ok(Exit::of([reports[0].outcome], args.report.detailed_exitcode))
}
