use std::path::{Path, PathBuf};

use ::compose::{
    ComposeFile, Composition, CompositionInput, Decision, Explanation, FoldedDecisions,
};
use anyhow::Context;
use clap::Args;
use inspect::write_image;
use source::Source;
use terminal::{cell, print_line, print_report, print_text, remark};

use crate::args::{CatalogAccess, is_source};
use crate::table::{Column, Table, print_table};
use crate::{compositions, wiring};

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
    access: CatalogAccess,
    /// Entry of an ImageSetConfiguration: its targetCatalog, else the last part of its repository
    /// and its tag.
    #[arg(long, value_name = "NAME")]
    entry: Option<String>,
    /// Catalog that a FilterConfiguration filters.
    #[arg(long, value_name = "NAME|SOURCE")]
    catalog: Option<String>,
    /// Write the catalog as an image, and print its digest instead of the lines. Nothing is pushed
    /// if the tag has that digest.
    #[arg(long, value_name = "oci:DIR[:TAG]|REGISTRY/REPO:TAG", conflicts_with = "explain", value_parser = image_target)]
    image: Option<Source>,
    /// Print for each bundle the reason for which it is in or out, instead of the lines.
    #[arg(long)]
    explain: bool,
    /// Print the reasons as JSON instead of a table.
    #[arg(long, requires = "explain")]
    json: bool,
    /// Composition, ImageSetConfiguration or FilterConfiguration.
    #[arg(value_name = "FILE")]
    file: PathBuf,
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
    let composition = chosen(compositions::read(&args.file)?, &args)
        .with_context(|| args.file.display().to_string())?;
    let reader = wiring::sources(&args.access.registries)?;
    let composer = compositions::open(composition, &args.file, &args.access, &reader).await?;
    if args.explain {
        let explanation = composer.explain().await?;
        print_notices(&explanation);
        let decisions = explanation.decisions.unwrap_or_default();
        return print_report(&decisions, args.json, |decisions| {
            let folded = FoldedDecisions::of(decisions.clone());
            print_table(&folded.rows)?;
            print_text(&format!("{}\n", folded.sum))
        });
    }
    let composed = composer.compose().await?;
    print_notices(&composed.explanation);
    let Some(target) = args.image else {
        return compositions::print_lines(composed.rendering).await;
    };
    let written = write_image(&reader.sources, &target, composed.rendering).await?;
    if written.was_there {
        remark(&format!(
            "{target} is this image already; nothing was pushed"
        ));
    }
    print_line(written.digest.as_str())
}

fn print_notices(explanation: &Explanation) {
    for notice in &explanation.notices {
        remark(&format!("notice: {notice}"));
    }
    if explanation.more_notices > 0 {
        remark(&format!(
            "notice: {} more notices",
            explanation.more_notices
        ));
    }
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
            let mut unused = image_set.unused();
            // Lines of catalogs hold no images.
            if !image_set.additional.is_empty() {
                unused.push("additionalImages");
            }
            if !image_set.blocked.is_empty() {
                unused.push("blockedImages");
            }
            if !unused.is_empty() {
                remark(&format!(
                    "notice: not used by the mirror: {}",
                    unused.join(", ")
                ));
            }
            Ok(image_set.entry(args.entry.as_deref())?.composition)
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
