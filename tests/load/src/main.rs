#![doc = include_str!("../README.md")]

mod answer;
mod args;
mod client;
mod connection;
mod expectation;
mod history;
mod lines;
mod monitor;
mod recheck;
mod report;
mod run;
mod scenarios;
mod slow_client;
mod statistics;
#[cfg(test)]
mod tests;
mod violation;

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
    Ok(ExitCode::from(u8::from(!report.fine)))
}
