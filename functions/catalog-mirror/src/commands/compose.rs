use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::compose::{
    ComposeFile, Composition, CompositionInput, Decision, Explanation, FoldedDecisions,
};
use ::render::{ImageLayer, Rendering};
use ::sync::ReadCatalog;
use anyhow::Context;
use clap::Args;
use oci::Digest;
use publish::{
    ComposedCatalog, ComposedSource, Mirror, MirrorSettings, PollError, PollMetrics, SourceLimits,
};
use source::{Source, Sources};
use store::{FolderStore, Store};
use tempfile::TempDir;

use super::render::{SHARD_LEVEL, print};
use crate::args::{Access, CatalogAccess, StoreArgs, is_source};
use crate::table::{Column, Table};
use crate::wiring;
use terminal::cell;

#[derive(Debug, Args)]
#[command(after_help = "\
FILE is one of:
  a composition             YAML with `inputs`, `add`, `remove`, `conflicts` and `dependencies`
  an ImageSetConfiguration  mirror.openshift.io/v2alpha1 of oc-mirror v2; each entry of mirror.operators is a composition
  a FilterConfiguration     olm.operatorframework.io/filter/mirror/v1alpha1; --catalog names the catalog to filter

`catalog:` is NAME, NAME@CONTENT-HASH or an image reference. A catalog of --store with this name, state or source is read \
from there, and an image that is not published is pulled. `source:` is always pulled. An input that a poll would wait for, such \
as an Unavailable catalog, is refused. Relative paths start at the folder of FILE.

Examples:
  catalog-mirror compose --store /var/lib/catalog-mirror team.yaml > team.jsonl
  catalog-mirror compose --explain --entry redhat-operator-index-v4-20 imageset.yaml
  catalog-mirror compose --catalog quay.io/operatorhubio/catalog:latest filter.yaml | jq -r .name
  catalog-mirror compose --image registry.example/team/catalog:v1 team.yaml

Exit codes: 0 done, 1 the composition fails or breaks a channel, 2 wrong command line.")]
pub(crate) struct ComposeArgs {
    #[command(flatten)]
    pub(crate) access: CatalogAccess,
    /// Entry of an ImageSetConfiguration: its targetCatalog, else the last part of its repository
    /// and its tag.
    #[arg(long, value_name = "NAME")]
    pub(crate) entry: Option<String>,
    /// Catalog that a FilterConfiguration filters.
    #[arg(long, value_name = "NAME|SOURCE")]
    pub(crate) catalog: Option<String>,
    /// Write the catalog as an image, and print its digest instead of the lines. Nothing is pushed
    /// if the tag has that digest.
    #[arg(long, value_name = "oci:DIR[:TAG]|REGISTRY/REPO:TAG", conflicts_with = "explain", value_parser = image_target)]
    pub(crate) image: Option<Source>,
    /// Print for each bundle the reason for which it is in or out, instead of the lines.
    #[arg(long)]
    pub(crate) explain: bool,
    /// Print the reasons as JSON instead of a table.
    #[arg(long, requires = "explain")]
    pub(crate) json: bool,
    /// Composition, ImageSetConfiguration or FilterConfiguration.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// Parses the place of an image that is written.
fn image_target(text: &str) -> Result<Source, Box<dyn std::error::Error + Send + Sync>> {
    match text.parse()? {
        source if source.pinned().is_some() => {
            Err("the digest of an image follows from its content: name a tag".into())
        }
        source @ (Source::OciLayout { .. } | Source::Registry { .. }) => Ok(source),
        _ => Err("write an image to oci:DIR[:TAG] or REGISTRY/REPO:TAG".into()),
    }
}

pub(crate) async fn run(args: ComposeArgs) -> anyhow::Result<()> {
    let place = || args.file.display().to_string();
    let composition = chosen(parse(&args.file)?, &args).with_context(place)?;
    let (sources, limits) = wiring::sources(&[], &args.access.registries)?;
    let composer = Composer::open(composition, &args.file, &args.access, &sources, &limits).await?;
    if args.explain {
        let explanation = composer.explain().await?;
        print_notices(&explanation);
        let decisions = explanation.decisions.unwrap_or_default();
        return terminal::print_report(&decisions, args.json, |decisions| {
            let folded = FoldedDecisions::of(decisions.clone());
            crate::table::print_table(&folded.rows)?;
            terminal::print_text(&format!("{}\n", folded.sum))
        });
    }
    let composed = composer.compose().await?;
    print_notices(&composed.explanation);
    let rendering = composed.rendering;
    if let Some(target) = args.image {
        println!("{}", write_image(&sources, target, rendering).await?);
        return Ok(());
    }
    work::run(rendering.budget().clone(), move || print(&rendering)).await?
}

/// Reads a file of compositions.
pub(super) fn parse(path: &Path) -> anyhow::Result<ComposeFile> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    ComposeFile::parse(&text).with_context(|| path.display().to_string())
}

/// Writes the image to a layout, or pushes it, and returns its digest.
async fn write_image(
    sources: &Sources,
    target: Source,
    rendering: Rendering,
) -> anyhow::Result<Digest> {
    let budget = rendering.budget().clone();
    match target {
        Source::OciLayout { dir, tag } => {
            let write = move || {
                // Beside its place, so that it can be renamed.
                let layer = ImageLayer::new(&dir.join("blobs/sha256"), &rendering)?;
                layer.into_layout(&dir, tag.as_deref())
            };
            Ok(work::run(budget, write).await??)
        }
        Source::Registry { ref reference, .. } => {
            let layer = move || ImageLayer::new(&std::env::temp_dir(), &rendering)?.into_parts();
            let (layer, documents) = work::run(budget, layer).await??;
            let pushed = sources.push(reference, documents, layer.into()).await?;
            if pushed.was_there {
                eprintln!("{target} is this image already; nothing was pushed");
            }
            Ok(pushed.digest)
        }
        other => anyhow::bail!("{other} is no place for an image"),
    }
}

fn print_notices(explanation: &Explanation) {
    for notice in &explanation.notices {
        terminal::say(&format!("notice: {notice}"));
    }
    if explanation.more_notices > 0 {
        eprintln!("notice: {} more notices", explanation.more_notices);
    }
}

/// Composes a catalog of a file without publishing it.
struct Composer {
    mirror: Mirror,
    composed: ComposedSource,
    /// Folder of the store of the mirror, if there is no other one.
    _empty: TempDir,
}

impl Composer {
    async fn open(
        composition: Composition,
        file: &Path,
        access: &CatalogAccess,
        sources: &Sources,
        limits: &SourceLimits,
    ) -> anyhow::Result<Self> {
        let folder = file.parent().unwrap_or(Path::new(""));
        let composed = ComposedSource::new(composition, folder);
        let mut composed = composed.with_context(|| file.display().to_string())?;
        let empty = TempDir::new().context("cannot create a temporary folder")?;
        let store = open_store(&access.store, &composed.composition, &empty).await?;
        composed.share_published(&*store).await?;
        let mut settings = MirrorSettings::with_limits(limits);
        settings.render.shard_level = SHARD_LEVEL;
        let mirror = Mirror::new(sources.clone(), store, settings, PollMetrics::default());
        Ok(Self {
            mirror,
            composed,
            _empty: empty,
        })
    }

    async fn compose(&self) -> anyhow::Result<ComposedCatalog> {
        self.mirror.compose(&self.composed).await.map_err(refused)
    }

    async fn explain(&self) -> anyhow::Result<Explanation> {
        self.mirror.explain(&self.composed).await.map_err(refused)
    }
}

/// Nothing waits here for an input that cannot be used now.
fn refused(error: PollError) -> anyhow::Error {
    match error {
        PollError::Waiting { input, reason } => anyhow::anyhow!("input {input}: {reason}"),
        error => error.into(),
    }
}

/// Composes all catalogs of a file, to be read and not published. Each has the name of its first
/// input.
pub(crate) async fn catalogs(
    file: &Path,
    access: &CatalogAccess,
) -> anyhow::Result<Vec<ReadCatalog>> {
    let place = || file.display().to_string();
    let compositions = match parse(file)? {
        ComposeFile::Composition(composition) => vec![composition],
        ComposeFile::ImageSet(image_set) => image_set
            .entries
            .into_iter()
            .map(|(_, entry)| entry)
            .collect(),
        ComposeFile::Filter(_) => {
            anyhow::bail!("{}: a FilterConfiguration names no catalog", place())
        }
    };
    let (sources, limits) = wiring::sources(&[], &access.registries)?;
    let mut catalogs = Vec::new();
    for composition in compositions {
        let first = composition
            .inputs
            .first()
            .map(|input| input.name().to_owned());
        let composer = Composer::open(composition, file, access, &sources, &limits).await?;
        catalogs.push(ReadCatalog::Rendered {
            rendering: composer.compose().await?.rendering,
            source: first.unwrap_or_else(place),
        });
    }
    Ok(catalogs)
}

/// Returns the one composition that the file and the arguments name.
fn chosen(file: ComposeFile, args: &ComposeArgs) -> anyhow::Result<Composition> {
    let may_have_entry = matches!(file, ComposeFile::ImageSet(_)) || args.entry.is_none();
    anyhow::ensure!(may_have_entry, "--entry is for ImageSetConfigurations");
    let may_have_catalog = matches!(file, ComposeFile::Filter(_)) || args.catalog.is_none();
    anyhow::ensure!(may_have_catalog, "--catalog is for FilterConfigurations");
    match file {
        ComposeFile::Composition(composition) => Ok(composition),
        ComposeFile::ImageSet(image_set) => {
            if !image_set.ignored.is_empty() {
                eprintln!(
                    "notice: not used by the mirror: {}",
                    image_set.ignored.join(", ")
                );
            }
            Ok(image_set.entry(args.entry.as_deref())?.1)
        }
        ComposeFile::Filter(selection) => {
            let named = args.catalog.as_deref();
            let named = named
                .context("a FilterConfiguration names no catalog: add --catalog NAME|SOURCE")?;
            // A folder needs no scheme here, as for `render`.
            let is_folder = is_source(named) && Path::new(named).is_dir();
            let folder = is_folder.then(|| Source::of_argument(named)).transpose()?;
            let input = CompositionInput {
                catalog: (!is_folder).then(|| named.to_owned()),
                source: folder.map(|folder| folder.to_string()),
                select: Some(selection),
            };
            Ok(Composition {
                inputs: vec![input],
                ..Composition::default()
            })
        }
    }
}

/// Opens the store if an input may lie in it. `none` becomes an empty store if there is none at the
/// default place.
async fn open_store(
    store: &StoreArgs,
    composition: &Composition,
    none: &TempDir,
) -> anyhow::Result<Arc<dyn Store>> {
    let mut catalogs = composition
        .inputs
        .iter()
        .filter_map(|input| input.catalog.as_deref());
    let is_needed = store.store.is_some() || catalogs.clone().any(|catalog| !catalog.contains('/'));
    if catalogs.next().is_some() {
        let opened = store.open_alone(Access::Read).await;
        if opened.is_ok() || is_needed {
            return opened;
        }
    }
    Ok(Arc::new(FolderStore::open(none.path().join("store"))?))
}

impl Table for Decision {
    const COLUMNS: &'static [Column<Self>] = &[
        ("", |decision| {
            if decision.kept { "+" } else { "-" }.to_owned()
        }),
        ("PACKAGE", |decision| decision.package.clone()),
        ("BUNDLE", |decision| decision.bundle.clone()),
        ("VERSION", |decision| cell(decision.version.as_ref())),
        ("REASON", |decision| decision.reason.clone()),
    ];
}
