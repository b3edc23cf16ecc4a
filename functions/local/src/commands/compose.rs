use std::{
    fs,
    io::{self, BufWriter, Write},
    path::Path,
    sync::Arc,
};

use ::compose::{
    ComposeFile, ComposedCatalog, ComposedContent, Composition, CompositionInput, Explanation, PackageSource,
};
use ::render::{NoStoredShards, Renderer, StoredShards};
use anyhow::Context;
use model::{Current, Sha256, Snapshot};
use olm::Reference;
use publish::{InputCatalog, NamedInput, named_catalogs};
use store::Store;

use crate::{
    cli::{self, ComposeArgs},
    commands::render::SourceReader,
    exit::Exit,
    image, output, published,
    stores::Access,
    wiring,
};

pub(crate) async fn run(args: ComposeArgs) -> anyhow::Result<Exit> {
    let place = || args.file.display().to_string();
    let text = fs::read_to_string(&args.file).with_context(|| format!("cannot read {}", place()))?;
    let file = ComposeFile::parse(&text).with_context(place)?;
    let composition = chosen(file, &args).with_context(place)?;
    composition.check().with_context(place)?;
    let loader = CatalogLoader {
        store: open_store(&args, &composition).await?,
        reader: SourceReader::new(args.registries)?,
        folder: args.file.parent().unwrap_or(Path::new("")),
    };
    let (mut inputs, mut additions) = (Vec::new(), Vec::new());
    for input in &composition.inputs {
        let name = input.name().to_owned();
        let loaded = match &input.source {
            Some(source) => loader.pull(source).await,
            None => loader.find_or_pull(&name).await,
        };
        let catalog = loaded.with_context(|| format!("input {name}"))?;
        inputs.push(NamedInput { name, catalog });
    }
    for addition in &composition.add {
        let name = addition.source.clone();
        let loaded = loader.pull(&name).await;
        let catalog = loaded.with_context(|| format!("add {name}"))?;
        additions.push(NamedInput { name, catalog });
    }
    if let Some(target) = args.image {
        let stored: Arc<dyn StoredShards> = match &loader.store {
            Some(store) => publish::input_shards(store.clone(), &inputs),
            None => Arc::new(NoStoredShards),
        };
        let renderer = Renderer::start(loader.reader.settings(), stored);
        let work = move || publish::render_composition(&composition, &mut inputs, &mut additions, renderer);
        let composed = tokio::task::spawn_blocking(work).await??;
        print_notices(&composed.explanation);
        println!(
            "{}",
            image::write(loader.reader.images(), &target, composed.rendering).await?
        );
        return Ok(Exit::Success);
    }
    let (explain, json) = (args.explain, args.json);
    // Shards are read and parsed by blocking calls.
    let work = move || {
        let composed = ::compose::compose(
            &composition,
            &mut named_catalogs(&mut inputs),
            &mut named_catalogs(&mut additions),
        )?;
        print_notices(&composed.explanation);
        match (explain, json) {
            (false, _) => print(&composed, &mut inputs)?,
            (true, true) => output::compose::json(&composed.explanation.decisions)?,
            (true, false) => output::compose::table(&composed.explanation.decisions)?,
        }
        Ok(Exit::Success)
    };
    tokio::task::spawn_blocking(work).await?
}

/// Returns the one composition that the file and the arguments name.
fn chosen(file: ComposeFile, args: &ComposeArgs) -> anyhow::Result<Composition> {
    let only_for = |kind: &str, option: &str, given: bool| {
        anyhow::ensure!(!given, "--{option} is for {kind}s");
        Ok(())
    };
    if !matches!(file, ComposeFile::ImageSet(_)) {
        only_for("ImageSetConfiguration", "entry", args.entry.is_some())?;
    }
    if !matches!(file, ComposeFile::Filter(_)) {
        only_for("FilterConfiguration", "catalog", args.catalog.is_some())?;
    }
    match file {
        ComposeFile::Composition(composition) => Ok(composition),
        ComposeFile::ImageSet(image_set) => {
            if !image_set.ignored.is_empty() {
                eprintln!("notice: not used by the mirror: {}", image_set.ignored.join(", "));
            }
            Ok(image_set.entry(args.entry.as_deref())?.1)
        }
        ComposeFile::Filter(selection) => {
            let catalog = args.catalog.clone();
            let catalog = catalog.context("a FilterConfiguration names no catalog: add --catalog NAME|SOURCE")?;
            Ok(Composition {
                inputs: vec![CompositionInput {
                    catalog: Some(catalog),
                    select: Some(selection),
                    ..CompositionInput::default()
                }],
                ..Composition::default()
            })
        }
    }
}

/// Opens the store if an input may lie in it.
async fn open_store(args: &ComposeArgs, composition: &Composition) -> anyhow::Result<Option<Arc<dyn Store>>> {
    let mut catalogs = composition.inputs.iter().filter_map(|input| input.catalog.as_deref());
    let is_name = |catalog: &str| !catalog.contains('/');
    let needed = args.store.store.is_some() || catalogs.clone().any(is_name);
    if catalogs.next().is_none() {
        return Ok(None);
    }
    match args.store.open_alone(Access::Read).await {
        Ok(store) => Ok(Some(store)),
        Err(error) if needed => Err(error),
        // There is no store at the default place, so everything is pulled.
        Err(_) => Ok(None),
    }
}

struct CatalogLoader<'a> {
    store: Option<Arc<dyn Store>>,
    reader: SourceReader,
    /// Folder at which relative paths start.
    folder: &'a Path,
}

impl CatalogLoader<'_> {
    /// Returns the published catalog with this name, pin or source, or else pulls it.
    async fn find_or_pull(&self, text: &str) -> anyhow::Result<InputCatalog> {
        let (name, hash) = match text.split_once('@') {
            Some((name, hash)) => (name, Some(hash)),
            None => (text, None),
        };
        if let (Ok(name), Some(store)) = (name.parse(), &self.store) {
            let (current, newest) = published::state(&**store, &name).await?;
            let snapshot = match hash {
                None => newest,
                Some(hash) => pinned(&**store, &current, newest, hash.parse()?).await?,
            };
            return Ok(InputCatalog::published(store.clone(), Arc::new(snapshot)));
        }
        match self.find(text).await? {
            Some(found) => Ok(found),
            None => self.pull(text).await,
        }
    }

    /// Returns the first published catalog with this source.
    async fn find(&self, text: &str) -> anyhow::Result<Option<InputCatalog>> {
        let Some(store) = &self.store else {
            return Ok(None);
        };
        let wanted = Reference::new(text);
        for name in wiring::names(&**store).await? {
            let Some(current) = published::current(&**store, &name).await? else {
                continue;
            };
            let has = Reference::new(&current.source.reference);
            let same_place = (&has.registry, &has.repository) == (&wanted.registry, &wanted.repository);
            if has == wanted || (same_place && wanted.is_digest && current.source.revision == wanted.version) {
                let (_, snapshot) = published::state(&**store, &name).await?;
                return Ok(Some(InputCatalog::published(store.clone(), Arc::new(snapshot))));
            }
        }
        Ok(None)
    }

    async fn pull(&self, text: &str) -> anyhow::Result<InputCatalog> {
        let source = cli::source(text)?.relative_to(self.folder);
        let sink = self.reader.read(&source, false).await?;
        let rendering = tokio::task::spawn_blocking(move || sink.finish()).await??;
        Ok(InputCatalog::Rendered(rendering))
    }
}

/// Returns the state with this content hash.
async fn pinned(store: &dyn Store, current: &Current, newest: Snapshot, hash: Sha256) -> anyhow::Result<Snapshot> {
    if current.content_hash == hash {
        return Ok(newest);
    }
    for object in current.snapshots_of(hash) {
        if let Some(snapshot) = published::snapshot(store, &object).await? {
            return Ok(snapshot);
        }
    }
    anyhow::bail!("the store does not keep the state {hash}")
}

fn print_notices(explanation: &Explanation) {
    for notice in &explanation.notices {
        eprintln!("notice: {notice}");
    }
}

fn print(composed: &ComposedCatalog, inputs: &mut [NamedInput]) -> anyhow::Result<()> {
    let mut output = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    for package in &composed.packages {
        let written = match &package.content {
            ComposedContent::Lines(lines) => output.write_all(lines),
            ComposedContent::Shard { input } => {
                let NamedInput { name, catalog } = &mut inputs[*input];
                let lines = catalog.read(&package.name).map_err(|error| anyhow::anyhow!(error));
                let mut lines = lines.with_context(|| format!("cannot read {:?} of {name}", package.name))?;
                io::copy(&mut lines, &mut output).map(drop)
            }
        };
        match written {
            // `catalog-mirror compose ... | head` is not a failure.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            written => written.context("cannot print the catalog")?,
        }
    }
    match output.flush() {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).context("cannot print the catalog"),
        _ => Ok(()),
    }
}
