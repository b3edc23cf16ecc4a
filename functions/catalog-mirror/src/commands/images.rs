use carry::{ImageChecks, check_images, images_document, missing, pullable, skopeo_sync};
use clap::{Args, ValueEnum};
use inspect::{needs, published};
use model::CatalogName;
use olm::BundleSelection;
use terminal::{Exit, print_json, print_text, remark, say};

use crate::args::{Access, CatalogAccess};
use crate::wiring;

#[derive(Debug, Args)]
#[command(after_help = "\
Without --package and --channel the images of all bundles are listed. oc-mirror v2 takes only heads unless its \
configuration says `full: true`; --heads-only does the same here.

Exit codes: 0 done, 1 failed, or --check found an image missing or got no answer.")]
pub(crate) struct ImagesArgs {
    #[command(flatten)]
    access: CatalogAccess,
    /// Package whose bundles are listed. May be repeated.
    #[arg(long = "package", value_name = "PACKAGE")]
    packages: Vec<String>,
    /// Channel whose bundles are listed. May be repeated.
    #[arg(long = "channel", value_name = "CHANNEL")]
    channels: Vec<String>,
    /// List only the heads of the channels.
    #[arg(long)]
    heads_only: bool,
    /// Format of the list.
    #[arg(long, value_enum, default_value_t)]
    format: ImagesFormat,
    /// Ask the registries with HEAD requests if each image exists.
    #[arg(long)]
    check: bool,
    /// Catalogs to read. Default: all of the store.
    #[arg(value_name = "NAME")]
    names: Vec<CatalogName>,
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
    let names = published::some_names(&store, &args.names).await?;
    let found = needs::find(&store, &names, &choice).await?;
    found.check_choice(&choice)?;
    let mut checks = None;
    if args.check {
        let reader = wiring::sources(&args.access.registries)?;
        checks = Some(check_images(&reader.sources, &found.needs).await);
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
        ImagesFormat::SkopeoSync => print_text(&carry::yaml(&[skopeo_sync(images)])?)?,
        ImagesFormat::Imageset => print_text(&carry::yaml(&[found.image_set()])?)?,
    }
    let Some(checks) = checks else {
        return Ok(Exit::Success);
    };
    let missing = missing(needs, &checks);
    missing.iter().for_each(|line| say(line));
    remark(&sum(&checks));
    Ok(Exit::of_check(missing.is_empty()))
}

/// Returns the numbers of images by what their registries said.
fn sum(checks: &ImageChecks) -> String {
    let there = checks.values().filter(|check| **check == Ok(true)).count();
    let missing = checks.values().filter(|check| **check == Ok(false)).count();
    let unknown = checks.len() - there - missing;
    format!(
        "{} images: {there} there, {missing} missing, {unknown} unknown",
        checks.len()
    )
}
