//! Runs the suite that every store has to pass against a real bucket, each check under a prefix of
//! its own:
//! `cargo run -p store --features s3 --example conformance -- s3://BUCKET/PREFIX [path-style] [waiting] [early]`.
//! `waiting` leaves out readers that stand still, for which writers wait on some servers, and
//! `early` races of large objects, which some servers refuse before they have read them.
//! Credentials, region and endpoint come from the environment, as for every AWS tool.
#![expect(clippy::print_stdout, reason = "what it prints is its result")]

use std::env;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use store::S3Location;
use store::Store;
use store::s3::{S3Settings, S3Store, sdk_config};
use storekit::conformance::{Exceptions, conformance};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let place: S3Location = arguments
        .next()
        .ok_or("which bucket? s3://BUCKET/PREFIX")?
        .parse()?;
    let options: Vec<String> = arguments.collect();
    let has = |name| options.iter().any(|option| option == name);
    let settings = S3Settings {
        path_style: has("path-style"),
        ..S3Settings::default()
    };
    let config = sdk_config(&settings).await?;
    let number = AtomicU32::new(0);
    let make = async || {
        let number = number.fetch_add(1, Ordering::Relaxed);
        let place = format!("{place}/{number}")
            .parse()
            .expect("a place below a place");
        Arc::new(S3Store::new(&config, place, &settings)) as Arc<dyn Store>
    };
    let without = Exceptions {
        held_readers: has("waiting"),
        large_races: has("early"),
    };
    conformance(make, without).await;
    let tried = number.into_inner();
    println!("{place} keeps every promise, tried under {tried} prefixes");
    Ok(())
}
