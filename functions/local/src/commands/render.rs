use std::{
    io::{self, BufWriter, Write},
    sync::Arc,
};

use ::render::{NoStoredShards, RenderError, RenderSettings, Renderer, Rendering, Sinks};
use anyhow::Context;
use publish::RenderSink;
use source::{Images, SkippableLayers, Source};

use crate::{cli::RenderArgs, exit::Exit, wiring};

pub(crate) async fn run(args: RenderArgs) -> anyhow::Result<Exit> {
    let images = Images::new(wiring::images(args.registries)?)?;
    let rendering = rendering(&images, &args.source).await?;
    tokio::task::spawn_blocking(move || print(&rendering)).await?
}

/// Reads a source and returns its catalog, without a store.
pub(super) async fn rendering(images: &Images, source: &Source) -> anyhow::Result<Rendering> {
    let digest = images.resolve(source).await?;
    let settings = RenderSettings {
        // The shards are only held until they are printed.
        shard_level: 1,
        ..RenderSettings::default()
    };
    let sink = RenderSink::new(Renderer::start(settings, Arc::new(NoStoredShards)), Arc::default());
    let (sink, _) = images.read(source, &digest, &SkippableLayers::default(), sink).await?;
    Ok(tokio::task::spawn_blocking(move || sink.finish()).await??)
}

fn print(rendering: &Rendering) -> anyhow::Result<Exit> {
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
