use clap::Args;
use source::Source;

use crate::args::RegistryArgs;
use crate::{compositions, wiring};

#[derive(Debug, Args)]
pub(crate) struct RenderArgs {
    /// Image reference, `https://HOST/PATH.tar.gz[#PATH]`, `git:https://HOST/PATH[#REF[:PATH]]`,
    /// `oci:DIR[:TAG]`, `dir:PATH`, or a folder.
    #[arg(value_name = "SOURCE", value_parser = Source::of_argument)]
    source: Source,
    #[command(flatten)]
    registries: RegistryArgs,
}

pub(crate) async fn run(args: RenderArgs) -> anyhow::Result<()> {
    let reader = wiring::sources(&args.registries)?;
    compositions::print_lines(reader.render(&args.source).await?).await
}
