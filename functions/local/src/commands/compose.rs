use std::{fs, path::Path, sync::Arc};

use ::compose::{ComposeFile, Composition, CompositionInput};
use anyhow::Context;
use model::CatalogName;
use olm::Reference;
use publish::{Catalog, CatalogSource, ComposedSource, Mirror, MirrorSettings, PollError, PollMetrics};
use store::{FolderStore, Store};
use tempfile::TempDir;

use crate::{
    cli::{self, ComposeArgs},
    commands::render::{SHARD_LEVEL, print},
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
    // Nothing is published, so no store has this name.
    let name: CatalogName = "composition".parse()?;
    let folder = args.file.parent().unwrap_or(Path::new(""));
    let mut composed = ComposedSource::new(&name, composition, folder).with_context(place)?;
    let none = TempDir::new().context("cannot create a temporary folder")?;
    let store = open_store(&args, &composed.composition, &none).await?;
    follow_published(&*store, &mut composed).await?;
    let (sources, limits) = wiring::sources(&args.registries)?;
    let mut settings = MirrorSettings::with_limits(&limits);
    settings.render.shard_level = SHARD_LEVEL;
    let mirror = Mirror::new(sources.clone(), store, settings, PollMetrics::default());
    let catalog = Catalog::new(name, CatalogSource::Composed(Box::new(composed)));
    let (rendering, explanation) = match mirror.compose(&catalog).await {
        Err(PollError::Waiting { input, reason }) => anyhow::bail!("input {input}: {reason}"),
        composed => composed?,
    };
    for notice in &explanation.notices {
        eprintln!("notice: {notice}");
    }
    if let Some(target) = args.image {
        println!("{}", image::write(&sources, &target, rendering).await?);
        return Ok(Exit::Success);
    }
    if args.explain {
        output::print(&explanation.decisions, args.json)?;
        return Ok(Exit::Success);
    }
    tokio::task::spawn_blocking(move || print(&rendering)).await?
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
            let named = args.catalog.as_deref();
            let named = named.context("a FilterConfiguration names no catalog: add --catalog NAME|SOURCE")?;
            let mut input = CompositionInput {
                select: Some(selection),
                ..CompositionInput::default()
            };
            // A folder needs no `dir:` here, as for `render`.
            if cli::is_source(named) && Path::new(named).is_dir() {
                input.source = Some(format!("dir:{named}"));
            } else {
                input.catalog = Some(named.to_owned());
            }
            Ok(Composition {
                inputs: vec![input],
                ..Composition::default()
            })
        }
    }
}

/// Opens the store if an input may lie in it. `none` becomes an empty store if there is none at the default place.
async fn open_store(args: &ComposeArgs, composition: &Composition, none: &TempDir) -> anyhow::Result<Arc<dyn Store>> {
    let mut catalogs = composition.inputs.iter().filter_map(|input| input.catalog.as_deref());
    let is_needed = args.store.store.is_some() || catalogs.clone().any(|catalog| !catalog.contains('/'));
    if catalogs.next().is_some() {
        match args.store.open_alone(Access::Read).await {
            Err(error) if is_needed => return Err(error),
            Err(_) => {}
            opened => return opened,
        }
    }
    Ok(Arc::new(FolderStore::open(none.path().join("store"))?))
}

/// Takes inputs from the store that name the source of a published catalog, by its reference or by the digest that was pulled.
async fn follow_published(store: &dyn Store, composed: &mut ComposedSource) -> anyhow::Result<()> {
    let mut published = Vec::new();
    for name in wiring::names(store).await? {
        if let Some(current) = published::current(store, &name).await? {
            published.push((name, current.source));
        }
    }
    composed.share_sources(|wanted| {
        let found = published.iter().find(|(_, source)| {
            let has = Reference::new(&source.reference);
            let is_same_place = (&has.registry, &has.repository) == (&wanted.registry, &wanted.repository);
            has == *wanted || (is_same_place && wanted.is_digest && source.revision == wanted.version)
        });
        found.map(|(name, _)| name.clone())
    });
    Ok(())
}
