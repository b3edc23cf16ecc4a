#![doc = include_str!("../README.md")]

mod changes;
mod channel;
mod compare;
mod differing;
mod meta;
mod needs;
mod package;
mod reader;
mod reference;

pub use changes::{
    BundleChange, BundleChanges, BundleSummary, CHANGES_VERSION, Changes, ChannelChange, ChannelChanges,
    ChannelSummary, DeprecationChange, DeprecationChanges, DeprecationSummary, EntryChanges, Heads, OtherChange,
    PackageChange, PackageChanges, PackageSummary, TextChange,
};
pub use channel::{Channel, Entry};
pub use differing::{Differing, differing};
pub use needs::{Choice, ChoiceError, Need, Needs};
pub use package::{Bundle, Deprecated, Image, Package, Unreadable};
pub use reader::Reader;
pub use reference::Reference;
