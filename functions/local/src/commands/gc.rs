use serde_json::json;
use upkeep::GcError;

use crate::{
    cli::{GcArgs, KeyArgs},
    exit::Exit,
    output,
    stores::Access,
    wiring,
};

pub(crate) async fn run(args: GcArgs) -> anyhow::Result<Exit> {
    let config = wiring::files_and_keys(&args.store.config, &KeyArgs::default())?;
    let access = if args.dry_run { Access::Read } else { Access::Write };
    let store = args.store.s3.open(&args.store.place(&config)?, access).await?;
    let options = args.options(&config.retention.unwrap_or_default());
    let report = match upkeep::gc(&*store, &options).await {
        Err(error @ GcError::Unreadable(_)) if args.json => {
            let text = model::text::error_line(&error);
            output::print_json(&json!({"error": text, "unreadable": error.unreadable()}))?;
            return Ok(Exit::Failed);
        }
        collected => collected?,
    };
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print_collection(&report)?;
    }
    Ok(Exit::Success)
}
