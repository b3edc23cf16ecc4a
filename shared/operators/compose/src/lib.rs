#![doc = include_str!("../README.md")]

mod candidate;
mod compose;
mod composition;
mod dependencies;
mod edit;
mod error;
mod explain;
mod file;
mod include;
mod kept_channel;
mod lines;
mod merge;
mod outline;
mod rewrite;
mod select;
mod selection;
mod template;
mod version_constraint;

pub use compose::compose;
pub use composition::{
    Addition, Composition, CompositionInput, ConflictRule, DependencyRule, Removal,
};
pub use edit::check_removal;
pub use error::{ComposeError, ReadError};
pub use explain::{Decision, Explanation, FoldedDecisions};
pub use file::{AdditionalImage, BlockedImages, ComposeFile, ImageSet, ImageSetEntry};
pub use lines::{ComposedContent, PackageSink, PackageSource, ReadSeek};
pub use selection::{ChannelSelection, PackageSelection, SelectedBundle, Selection};
pub use version_constraint::VersionConstraint;
