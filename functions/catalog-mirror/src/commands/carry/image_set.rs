use std::path::PathBuf;

use ::compose::ComposeFile;
use clap::Args;
use offer::CarriedSet;

use crate::compositions;

/// Options of a step that reads an ImageSetConfiguration.
#[derive(Debug, Args)]
pub(super) struct ImageSetArgs {
    /// Publish catalogs even if many of their packages are gone.
    #[arg(long)]
    pub(super) force: bool,
    /// Write an ImageSetConfiguration with the sections that are left to oc-mirror v2: platform
    /// and helm.
    #[arg(long, value_name = "FILE")]
    pub(super) rest: Option<PathBuf>,
    /// ImageSetConfiguration of oc-mirror v2.
    #[arg(value_name = "ISC")]
    pub(super) file: PathBuf,
}

impl ImageSetArgs {
    /// Reads the file, and plans what is carried of it.
    pub(super) fn read(&self) -> anyhow::Result<CarriedSet> {
        let ComposeFile::ImageSet(image_set) = compositions::read(&self.file)? else {
            anyhow::bail!("{} is no ImageSetConfiguration", self.file.display());
        };
        CarriedSet::new(image_set, &self.file, self.rest.clone(), self.force)
    }
}
