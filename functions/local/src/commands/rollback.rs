use std::slice;

use ::poll::{Target, Terms};
use notify::{Metrics, Settings};

use crate::{cli::Rollback, exit::Exit, output, wiring};

/// A rollback is a publication, so whoever is told of those is told of this one, and not only by the next poll.
pub(crate) async fn run(args: Rollback) -> anyhow::Result<Exit> {
    let config = wiring::files_and_keys(&args.config, &args.keys)?;
    let store = args.store.open(&config).await?;
    let notifier = wiring::notifier(&config, store.clone(), Settings::default(), Metrics::default())?;
    let target = args.content_hash.map_or(Target::Previous, Target::Hash);
    notifier.adopt(slice::from_ref(&args.name)).await;
    let signer = config.keys.signer();
    let terms = Terms {
        unverified: args.unverified,
        ..Terms::default()
    };
    let reports = [::poll::rollback_on(&*store, &args.name, &target, signer.as_ref(), &terms).await];
    if args.json {
        output::reports::json(&reports)?;
    } else {
        output::reports::table(&reports)?;
    }
    notifier.after(&reports[0]).await;
    let is_done = reports[0].outcome.is_success();
    Ok(if is_done { Exit::Fine } else { Exit::Failed })
}
