//! Reads a catalog and drops it. Prints the time and the memory that this takes.
//!
//! `cargo run --release -p catalog-mirror-source --example read -- SOURCE [PLAIN_HTTP_HOST]`

use std::error::Error;
use std::fs;
use std::io::{self, Read};
use std::time::Instant;

use catalog_mirror_source::{FileSink, PlainHttp, Source, SourceSettings, Sources};

#[derive(Default)]
struct Count {
    files: u64,
    bytes: u64,
}

impl FileSink for Count {
    fn file(&mut self, _: &str, _: u64, content: &mut dyn Read) -> io::Result<()> {
        self.files += 1;
        self.bytes += io::copy(content, &mut io::sink())?;
        Ok(())
    }

    fn link(&mut self, _: &str, _: &str) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let source: Source = args.next().unwrap_or_default().parse()?;
    let mut settings = SourceSettings::default();
    settings.http.plain_http = PlainHttp::Hosts(args.collect());
    let images = Sources::new(settings)?;
    let started = Instant::now();
    let digest = images.resolve(&source).await?;
    let resolve_ms = started.elapsed().as_millis();
    let (count, pull) = images
        .read(
            &source,
            &digest,
            &catalog_mirror_source::EmptyLayers::default(),
            Count::default(),
        )
        .await?;
    let total_ms = started.elapsed().as_millis();
    println!("{digest}");
    println!("files {} bytes {}", count.files, count.bytes);
    println!("resolve_ms {resolve_ms} total_ms {total_ms} {pull:?}");
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    println!(
        "{}",
        status
            .lines()
            .find(|line| line.starts_with("VmHWM"))
            .unwrap_or_default()
    );
    Ok(())
}
