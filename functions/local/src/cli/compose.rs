//! Arguments of `compose`.

use std::path::PathBuf;

use clap::Args;
use source::Source;

use super::{RegistryArgs, StoreArgs};

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
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) registries: RegistryArgs,
    /// Entry of an ImageSetConfiguration: its targetCatalog, else the last part of its repository and its tag.
    #[arg(long, value_name = "NAME")]
    pub(crate) entry: Option<String>,
    /// Catalog that a FilterConfiguration filters.
    #[arg(long, value_name = "NAME|SOURCE")]
    pub(crate) catalog: Option<String>,
    /// Write the catalog as an image, and print its digest instead of the lines. Nothing is pushed if the tag has that digest.
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
