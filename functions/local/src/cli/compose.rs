//! Arguments of `compose`.

use std::path::PathBuf;

use clap::Args;

use super::{RegistryArgs, StoreArgs};

#[derive(Debug, Args)]
#[command(after_help = "\
FILE is one of:
  a composition             YAML with `inputs`, `add`, `remove`, `conflicts` and `dependencies`
  an ImageSetConfiguration  mirror.openshift.io/v2alpha1 of oc-mirror v2; each entry of mirror.operators is a composition
  a FilterConfiguration     olm.operatorframework.io/filter/mirror/v1alpha1; --catalog names the catalog to filter

`catalog:` is NAME, NAME@CONTENT-HASH or an image reference. A catalog of --store with this name, state or source is read \
from there, and an image that is not published is pulled. `source:` is always pulled. Relative paths start at the folder of \
FILE.

Examples:
  catalog-mirror compose --store /var/lib/catalog-mirror team.yaml > team.jsonl
  catalog-mirror compose --explain --entry redhat-operator-index-v4-20 imageset.yaml
  catalog-mirror compose --catalog quay.io/operatorhubio/catalog:latest filter.yaml | jq -r .name

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
