use carry::{FoundImages, check_images, images_document, missing, pullable, skopeo_sync};
use clap::{Args, ValueEnum};
use model::CatalogName;
use olm::{BundleSelection, RequiredImages};
use store::Store;

use crate::args::{Access, CatalogAccess};
use crate::{published, wiring};
use terminal::Exit;
use terminal::{print_json, print_text, say};

#[derive(Debug, Args)]
#[command(after_help = "\
Without --package and --channel the images of all bundles are listed. oc-mirror v2 takes only heads unless its \
configuration says `full: true`; --heads-only does the same here.

Exit codes: 0 done, 1 failed, or --check found an image missing or got no answer.")]
pub(crate) struct ImagesArgs {
    #[command(flatten)]
    pub(crate) access: CatalogAccess,
    /// Package whose bundles are listed. May be repeated.
    #[arg(long = "package", value_name = "PACKAGE")]
    pub(crate) packages: Vec<String>,
    /// Channel whose bundles are listed. May be repeated.
    #[arg(long = "channel", value_name = "CHANNEL")]
    pub(crate) channels: Vec<String>,
    /// List only the heads of the channels.
    #[arg(long)]
    pub(crate) heads_only: bool,
    /// Format of the list.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ImagesFormat,
    /// Ask the registries with HEAD requests if each image exists.
    #[arg(long)]
    pub(crate) check: bool,
    /// Catalogs to read. Default: all of the store.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<CatalogName>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImagesFormat {
    /// One reference a line, sorted. A text of the catalog that is no reference is left out.
    #[default]
    List,
    /// Every image with the packages and bundles that need it.
    Json,
    /// A file for `skopeo sync --src yaml`.
    SkopeoSync,
    /// An ImageSetConfiguration for oc-mirror v2.
    Imageset,
}

pub(crate) async fn run(args: ImagesArgs) -> anyhow::Result<Exit> {
    let store = args.access.store.open_alone(Access::Read).await?;
    let choice = BundleSelection {
        packages: args.packages.into_iter().collect(),
        channels: args.channels.into_iter().collect(),
        heads_only: args.heads_only,
    };
    let names = published::some_names(&*store, &args.names).await?;
    let found = find(&*store, &names, &choice).await?;
    found.check_choice(&choice)?;
    let mut checks = None;
    if args.check {
        checks = Some(
            check_images(
                &wiring::sources(&[], &args.access.registries)?.0,
                &found.needs,
            )
            .await,
        );
    }
    let needs = &found.needs;
    let images = match args.format {
        // For programs that know what to do with each text.
        ImagesFormat::Json => Vec::new(),
        _ => pullable(needs, &say),
    };
    match args.format {
        ImagesFormat::List => {
            let lines = images.iter().map(|image| format!("{image}\n"));
            print_text(&lines.collect::<String>())?;
        }
        ImagesFormat::Json => print_json(&images_document(needs, checks.as_ref()))?,
        ImagesFormat::SkopeoSync => terminal::print_text(&carry::yaml(&[skopeo_sync(images)])?)?,
        ImagesFormat::Imageset => terminal::print_text(&carry::yaml(&[found.image_set()])?)?,
    }
    let missing = checks.map(|checks| missing(needs, &checks));
    let missing = missing.unwrap_or_default();
    missing.iter().for_each(|line| say(line));
    Ok(Exit::of_check(missing.is_empty()))
}

/// Returns the images that all bundles of the catalogs need.
pub(super) async fn required(
    store: &dyn Store,
    names: &[CatalogName],
) -> anyhow::Result<RequiredImages> {
    Ok(find(store, names, &BundleSelection::default()).await?.needs)
}

async fn find(
    store: &dyn Store,
    names: &[CatalogName],
    choice: &BundleSelection,
) -> anyhow::Result<FoundImages> {
    let mut found = FoundImages::default();
    for name in names {
        let (current, snapshot) = published::state(store, name).await?;
        found.add_names(snapshot.packages.iter().map(|shard| &shard.name));
        let mut parts = Vec::new();
        let mut needs = RequiredImages::default();
        for shard in snapshot
            .packages
            .iter()
            .filter(|shard| choice.takes(&shard.name))
        {
            let package = published::package(store, shard).await?;
            needs.add(name.as_str(), &shard.name, &package, choice)?;
            parts.extend(found.add_package(&shard.name, &package, choice)?);
        }
        found.add_catalog(&current.source, choice, &parts, needs);
    }
    Ok(found)
}
