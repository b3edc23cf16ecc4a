use std::time::Duration;

use clap::Args;
use serde_json::json;
use upkeep::{GcError, GcOptions, GcReport, GcStep, NextStep};

use crate::args::{Access, KeyArgs, StoreArgs, files_and_keys};
use terminal::{
    Exit, Output, bytes, cell, is_shown, print_done, print_line, print_rows, printable,
};

#[derive(Debug, Args)]
#[command(
    after_help = "Options that are absent have the value of `retention` in the configuration, else the default."
)]
pub(crate) struct GcArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Earlier publications of each catalog to keep, from 0 to 16. Default: 16.
    #[arg(long, value_name = "N", value_parser = config::generations)]
    keep_generations: Option<usize>,
    /// Days to keep an earlier publication after it was replaced, from 0 to 36500. Default: 30.
    #[arg(long, value_name = "D", value_parser = config::days)]
    keep_days: Option<u64>,
    /// Time for which a replaced state is kept in any case. Default: 24h.
    #[arg(long, value_name = "TIME", value_parser = config::duration)]
    grace: Option<Duration>,
    /// Take all steps at once, without the waits of two hours. Only for a store that nothing else
    /// writes or serves.
    #[arg(long, conflicts_with = "dry_run")]
    offline: bool,
    /// Change nothing and print how much would be condemned.
    #[arg(long)]
    dry_run: bool,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: GcArgs) -> anyhow::Result<Exit> {
    let config = files_and_keys(&args.store.config, &KeyArgs::default())?;
    let access = if args.dry_run {
        Access::Read
    } else {
        Access::Write
    };
    let store = args
        .store
        .s3
        .open(&args.store.place(&config, None)?, access)
        .await?;
    let configured = config.retention.unwrap_or_default();
    let options = GcOptions {
        retention: configured.with(args.keep_generations, args.keep_days, args.grace),
        offline: args.offline,
        dry_run: args.dry_run,
        ..GcOptions::default()
    };
    let report = match upkeep::gc(&*store, &options).await {
        Err(error @ GcError::Unreadable(_)) if args.json => {
            let text = model::text::error_line(&error);
            terminal::print_json(&json!({"error": text, "unreadable": error.unreadable()}))?;
            return Ok(Exit::Failed);
        }
        collected => collected?,
    };
    terminal::print_report(&report, args.json, print_collection)?;
    Ok(Exit::Success)
}

/// Prints the step that was taken, the next one, and the numbers of objects.
fn print_collection(report: &GcReport) -> anyhow::Result<()> {
    let mut step = report.step.as_str();
    let mut condemned = "condemned";
    if report.dry_run {
        step = "changed nothing";
        condemned = "would be condemned";
    }
    let next = report.next.map(next).unwrap_or_default();
    print_done(&format!("gc {step}; the state is {}{next}", report.state))?;
    let is_marked = report.snapshots > 0 || report.kept.objects > 0;
    let rows = [
        ("kept", is_marked.then_some(report.snapshots), report.kept),
        (condemned, None, report.condemned),
        ("deleted", None, report.deleted),
        ("left", None, report.left),
    ];
    let rows = rows.map(|(state, snapshots, objects)| {
        vec![
            state.to_owned(),
            cell(snapshots),
            objects.objects.to_string(),
            bytes(objects.bytes),
        ]
    });
    if is_shown(Output::Reports) {
        print_rows(&["", "SNAPSHOTS", "OBJECTS", "SIZE"], &rows)?;
    }
    for state in &report.unreadable {
        print_line(&format!(
            "{}: an earlier snapshot is damaged and keeps nothing: {}",
            state.catalog,
            printable(&state.error)
        ))?;
    }
    Ok(())
}

fn next(
    NextStep {
        step,
        due_in_seconds,
    }: NextStep,
) -> String {
    let what = match step {
        GcStep::Condemn => "condemn what nothing names",
        GcStep::Delete => "delete what is condemned",
        GcStep::Finish => "end the round",
        GcStep::Wait | GcStep::Clean | GcStep::LostRace => "look again",
    };
    let due = match due_in_seconds {
        0 => "now".to_owned(),
        seconds => format!(
            "in {}",
            humantime::format_duration(Duration::from_secs(seconds))
        ),
    };
    format!("; next: {what}, due {due}")
}
