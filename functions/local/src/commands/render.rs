use std::{
    io::{self, BufWriter, Write},
    sync::Arc,
};

use ::render::{MemoryBudget, NoStoredShards, RenderError, RenderSettings, Renderer, Sinks};
use anyhow::Context;
use publish::RenderSink;
use source::{Images, SkippableLayers};

use crate::{cli::RenderArgs, exit::Exit, wiring};

pub(crate) async fn run(args: RenderArgs) -> anyhow::Result<Exit> {
    let (images, limits) = wiring::images(args.registries)?;
    let images = Images::new(images)?;
    let digest = images.resolve(&args.source).await?;
    let settings = RenderSettings {
        // The shards are only held until they are printed.
        shard_level: 1,
        limits: limits.catalog,
        documents: MemoryBudget::new(limits.memory_bytes),
        ..RenderSettings::default()
    };
    let sink = RenderSink::new(Renderer::start(settings, Arc::new(NoStoredShards)), Arc::default());
    let (sink, _) = images
        .read(&args.source, &digest, &SkippableLayers::default(), sink)
        .await?;
    tokio::task::spawn_blocking(move || print(sink)).await?
}

fn print(sink: RenderSink) -> anyhow::Result<Exit> {
    let rendering = sink.finish()?;
    let output: Box<dyn Write + Send> = Box::new(BufWriter::with_capacity(1 << 20, io::stdout()));
    match rendering.write_all(Sinks {
        identity: Some(output),
        ..Sinks::default()
    }) {
        // `catalog-mirror render ... | head` is not a failure.
        Err(RenderError::Sink { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Success),
        written => written.map(|_| Exit::Success).context("cannot print the catalog"),
    }
}
