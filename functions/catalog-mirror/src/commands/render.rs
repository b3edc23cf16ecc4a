use std::io::{self, BufWriter};
use std::sync::Arc;

use ::render::{NoStoredShards, RenderError, RenderSettings, Renderer, Rendering, Sink};
use anyhow::Context;
use clap::Args;
use model::{Encoding, Kind};
use publish::RenderSink;
use source::{EmptyLayers, Source};
use work::{Budget, MemoryPool};

use crate::{args::RegistryArgs, wiring};

#[derive(Debug, Args)]
pub(crate) struct RenderArgs {
    /// Image reference, `https://HOST/PATH.tar.gz[#PATH]`, `git:https://HOST/PATH[#REF[:PATH]]`,
    /// `oci:DIR[:TAG]`, `dir:PATH`, or a folder.
    #[arg(value_name = "SOURCE", value_parser = Source::of_argument)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) registries: RegistryArgs,
}

/// Level at which shards are compressed that are only held until they are used.
pub(super) const SHARD_LEVEL: i32 = 1;

pub(crate) async fn run(args: RenderArgs) -> anyhow::Result<()> {
    read_source(&args.source, &args.registries, false, |sink| {
        print(&sink.finish()?)
    })
    .await
}

/// Reads all files of a source without a store, and runs `end` on a blocking thread. With
/// `positions` the sink keeps the place of each document in the files.
pub(crate) async fn read_source<T: Send + 'static>(
    source: &Source,
    registries: &RegistryArgs,
    positions: bool,
    end: impl FnOnce(RenderSink) -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    let (images, limits) = wiring::sources(&[], registries)?;
    let budget = Budget::new(limits.catalog.steps, MemoryPool::new(limits.memory_bytes));
    let digest = images.resolve(source).await?;
    let settings = RenderSettings {
        positions,
        shard_level: SHARD_LEVEL,
        limits: limits.catalog,
        budget: budget.clone(),
        ..RenderSettings::default()
    };
    let sink = RenderSink::new(
        Renderer::start(settings, Arc::new(NoStoredShards)),
        Arc::default(),
    );
    let (sink, _) = images
        .read(source, &digest, &EmptyLayers::default(), sink)
        .await?;
    work::run(budget, move || end(sink)).await?
}

/// Prints the canonical lines of a catalog.
pub(super) fn print(rendering: &Rendering) -> anyhow::Result<()> {
    let output: Sink = Box::new(BufWriter::with_capacity(1 << 20, io::stdout()));
    match rendering.write_all([(Kind::All(Encoding::Identity), output)].into()) {
        // `catalog-mirror render ... | head` is not a failure.
        Err(RenderError::Sink { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => {
            Ok(())
        }
        written => written.map(drop).context("cannot print the catalog"),
    }
}
