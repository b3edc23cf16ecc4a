use ::poll::Target;
use config::Config;

use crate::{cli::Rollback, exit::Exit, output};

pub(crate) async fn run(args: Rollback) -> anyhow::Result<Exit> {
    let store = args.store.open(&Config::default()).await?;
    let target = args.content_hash.map_or(Target::Previous, Target::Hash);
    let reports = [::poll::rollback(&*store, &args.name, &target).await];
    if args.json {
        output::reports::json(&reports)?;
    } else {
        output::reports::table(&reports)?;
    }
    let is_done = reports[0].outcome.is_success();
    Ok(if is_done { Exit::Fine } else { Exit::Failed })
}
