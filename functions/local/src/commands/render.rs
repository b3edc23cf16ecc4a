use std::{
    io::{self, BufWriter, Write},
    sync::Arc,
};

use ::poll::RenderSink;
use ::render::{Nothing, RenderError, Renderer, Settings, Sinks};
use anyhow::Context;
use image::{EmptyLayers, Images};

use crate::{cli::Render, exit::Exit, wiring};

pub(crate) async fn run(args: Render) -> anyhow::Result<Exit> {
    let images = Images::new(wiring::images(args.registries)?)?;
    let digest = images.resolve(&args.source).await?;
    let sink = RenderSink::new(Renderer::start(quick(), Arc::new(Nothing)), Arc::default());
    let (sink, _) = images
        .read(&args.source, &digest, &EmptyLayers::default(), sink)
        .await?;
    tokio::task::spawn_blocking(move || print(sink)).await?
}

/// The shards are only passed through, so they are not compressed well.
fn quick() -> Settings {
    Settings {
        shard_level: 1,
        ..Settings::default()
    }
}

fn print(sink: RenderSink) -> anyhow::Result<Exit> {
    let rendering = sink.finish()?;
    let output: Box<dyn Write + Send> = Box::new(BufWriter::with_capacity(1 << 20, io::stdout()));
    match rendering.write_all(Sinks {
        identity: Some(output),
        ..Sinks::default()
    }) {
        // `catalog-mirror render ... | head` is no failure.
        Err(RenderError::Sink { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Fine),
        written => written.map(|_| Exit::Fine).context("cannot print the catalog"),
    }
}
