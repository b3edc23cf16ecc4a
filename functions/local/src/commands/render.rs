use std::{
    io::{self, BufWriter},
    sync::Arc,
};

use ::render::{NoStoredShards, RenderError, RenderSettings, Renderer, Rendering, Sink};
use anyhow::Context;
use clap::Args;
use model::{Encoding, Kind};
use publish::{RenderSink, SourceLimits};
use source::{EmptyLayers, Source, Sources};
use work::{Budget, MemoryPool};

use crate::{args::RegistryArgs, exit::Exit, wiring};

#[derive(Debug, Args)]
pub(crate) struct RenderArgs {
    /// Image reference, `https://HOST/PATH.tar.gz[#PATH]`, `git:https://HOST/PATH[#REF[:PATH]]`, `oci:DIR[:TAG]`, `dir:PATH`, or a folder.
    #[arg(value_name = "SOURCE", value_parser = Source::of_argument)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) registries: RegistryArgs,
}

/// Level at which shards are compressed that are only held until they are used.
pub(super) const SHARD_LEVEL: i32 = 1;

pub(crate) async fn run(args: RenderArgs) -> anyhow::Result<Exit> {
    let reader = SourceReader::new(&args.registries)?;
    let sink = reader.read(&args.source, false).await?;
    work::run(reader.budget, move || print(&sink.finish()?)).await?
}

/// Renders sources without a store.
pub(crate) struct SourceReader {
    images: Sources,
    limits: SourceLimits,
    /// Bound of the work on the source.
    pub(crate) budget: Budget,
}

impl SourceReader {
    pub(crate) fn new(registries: &RegistryArgs) -> anyhow::Result<Self> {
        let (images, limits) = wiring::sources(&[], registries)?;
        let budget = Budget::new(limits.catalog.steps, MemoryPool::new(limits.memory_bytes));
        Ok(Self { images, limits, budget })
    }

    /// Reads all files of a source; with `positions`, keeps the place of each document in them.
    pub(crate) async fn read(&self, source: &Source, positions: bool) -> anyhow::Result<RenderSink> {
        let digest = self.images.resolve(source).await?;
        let settings = RenderSettings {
            positions,
            shard_level: SHARD_LEVEL,
            limits: self.limits.catalog,
            budget: self.budget.clone(),
            ..RenderSettings::default()
        };
        let sink = RenderSink::new(Renderer::start(settings, Arc::new(NoStoredShards)), Arc::default());
        let none = EmptyLayers::default();
        let (sink, _) = self.images.read(source, &digest, &none, sink).await?;
        Ok(sink)
    }
}

/// Prints the canonical lines of a catalog.
pub(super) fn print(rendering: &Rendering) -> anyhow::Result<Exit> {
    let output: Sink = Box::new(BufWriter::with_capacity(1 << 20, io::stdout()));
    match rendering.write_all([(Kind::All(Encoding::Identity), output)].into()) {
        // `catalog-mirror render ... | head` is not a failure.
        Err(RenderError::Sink { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Success),
        written => written.map(|_| Exit::Success).context("cannot print the catalog"),
    }
}
