#![doc = include_str!("../README.md")]

mod again;
mod answer;
mod args;
mod client;
mod journeys;
mod lines;
mod promise;
mod report;
mod rude;
mod run;
mod tally;
#[cfg(test)]
mod tests;
mod visitor;
mod watch;
mod world;
mod wrong;

use std::process::ExitCode;

use clap::Parser;

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let args = args::Args::parse();
    let report = run::run(&args).await?;
    report.print();
    if let Some(file) = &args.json {
        std::fs::write(file, serde_json::to_vec_pretty(&report)?)?;
    }
    Ok(ExitCode::from(u8::from(!report.is_fine())))
}
