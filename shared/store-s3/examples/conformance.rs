//! Runs the suite that every store has to pass against a real bucket, each check under a prefix of its own:
//! `cargo run -p store-s3 --example conformance -- s3://BUCKET/PREFIX [path-style] [single-writer] [small] [waiting]`.
//! `small` leaves out objects that go in parts: their conditions are not atomic on some servers for tests.
//! `waiting` leaves out readers that stand still, for which writers wait on some servers.
//! Credentials, region and endpoint come from the environment, as for every AWS tool.

use std::{
    env,
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use store::{
    Store,
    conformance::{conformance, held_readers, large},
};
use store_s3::{Place, S3Store, Settings, sdk_config};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let place: Place = arguments.next().ok_or("which bucket? s3://BUCKET/PREFIX")?.parse()?;
    let options: Vec<String> = arguments.collect();
    let has = |name| options.iter().any(|option| option == name);
    let settings = Settings {
        path_style: has("path-style"),
        single_writer: has("single-writer"),
        ..Settings::default()
    };
    let config = sdk_config(&settings).await?;
    let number = AtomicU32::new(0);
    let make = async || {
        let number = number.fetch_add(1, Ordering::Relaxed);
        let place = format!("{place}/{number}").parse().expect("a place below a place");
        Arc::new(S3Store::new(&config, place, &settings)) as Arc<dyn Store>
    };
    conformance(&make).await;
    if !has("waiting") {
        held_readers(&make).await;
    }
    if !has("small") {
        large(&make).await;
    }
    println!(
        "{place} keeps every promise, tried under {} prefixes",
        number.into_inner()
    );
    Ok(())
}
