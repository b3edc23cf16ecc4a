#![doc = include_str!("../README.md")]

mod archive;
mod blob_source;
mod dir;
mod download;
mod error;
mod git;
mod image;
mod index;
mod layers;
mod location;
mod referrer_list;
mod registries_conf;
mod registry;
mod rules;
mod server;
mod settings;
mod signatures;
mod source;
mod sources;
mod space;
mod stream;
mod tree;
mod verify;

pub use crate::download::Download;
pub use crate::error::{Error, ServerFailure, ServerFault, ServerPlace, TreeFault};
pub use crate::image::Pull;
pub use crate::index::IndexedImage;
pub use crate::location::{ArchiveLocation, GitLocation};
pub use crate::registries_conf::{RegistriesConf, RegistriesConfError};
pub use crate::registry::{Deletion, ManifestLinks, Pushed};
pub use crate::rules::{RegistryMirror, RegistryRule, RegistryRules};
pub use crate::settings::{PullProgress, SourceSettings};
pub use crate::signatures::{Lookaside, LookasideError};
pub use crate::source::{Source, SourceError};
pub use crate::sources::Sources;
pub use crate::space::DownloadSpace;
// Parts of this crate's interface that other crates define.
pub use fetch::{
    CredentialsError, FetchError, FetchSettings, FetchSettingsError, HeaderFileError, HeaderFiles,
    Logins, MinThroughput, Proxy, RedirectRefusal, RetrySchedule, Traffic, proxy_of_environment,
    read_header_file,
};
pub use model::{EmptyLayers, ImageSignatures};
pub use oci::{
    Digest, DigestError, FileSink, ImageContent, ImageError, ImageLimits, LayerError,
    LimitExceeded, LinkError, REF_NAME, TargetPlatform, UnpackError,
};
pub use oci_client::Reference;

#[cfg(test)]
mod tests {
    mod cost;
}
