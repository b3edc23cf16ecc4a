#![doc = include_str!("../README.md")]

mod auth;
mod digest;
mod dir;
mod error;
mod grammar;
mod images;
mod layers;
mod layout;
mod limits;
mod lookaside;
mod manifest;
mod overlay;
mod path;
mod place;
mod registry;
mod settings;
mod signatures;
mod sink;
mod source;

pub use crate::auth::{CredentialsError, Logins};
pub use crate::digest::{Digest, DigestError};
pub use crate::error::{Error, ImageError, LayerError, Limit};
pub use crate::images::{EmptyLayers, Images, Pull};
pub use crate::limits::Limits;
pub use crate::lookaside::{Lookaside, LookasideError};
pub use crate::overlay::LinkError;
pub use crate::registry::{Fault, Refusal, RegistryError};
pub use crate::settings::{Pace, Platform, Proxy, Retry, Settings, SettingsError};
pub use crate::signatures::{Attached, Signatures};
pub use crate::sink::FileSink;
pub use crate::source::{Source, SourceError};
