#![doc = include_str!("../README.md")]

mod compose;
mod composition;
mod dependencies;
mod edit;
mod error;
mod explain;
mod file;
mod include;
mod input;
mod kept_channel;
mod lines;
mod requirements;
mod rewrite;
mod select;
mod selection;

pub use compose::{ComposeError, ComposedContent, ComposedPackage, PackageSink, compose};
pub use composition::{Addition, Composition, CompositionInput, ConflictRule, DependencyRule, Removal};
pub use error::{ChannelFault, RewriteError, SelectError};
pub use explain::{Decision, Explanation, Notice};
pub use file::{ComposeFile, ComposeFileError, ImageSet};
pub use input::{PackageSource, ReadError};
pub use lines::{PackageLines, ReadSeek};
pub use select::{Kept, SelectedPackage};
pub use selection::{ChannelSelection, PackageSelection, SelectedBundle, Selection};
