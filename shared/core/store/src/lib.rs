#![doc = include_str!("../README.md")]

#[cfg(not(target_arch = "wasm32"))]
mod bridge;
#[cfg(not(target_arch = "wasm32"))]
mod draft;
mod error;
mod ext;
#[cfg(not(target_arch = "wasm32"))]
mod folder;
mod integrity;
mod location;
#[cfg(feature = "s3")]
pub mod s3;
mod store;
mod unservable;

#[cfg(not(target_arch = "wasm32"))]
pub use bridge::{PieceSender, StagedWriter, Staging, bridge};
#[cfg(not(target_arch = "wasm32"))]
pub use draft::DraftStore;
pub use error::{Operation, StoreError};
pub use ext::{DOCUMENT_MAX, ReadError, StoreExt, collect, optional};
#[cfg(not(target_arch = "wasm32"))]
pub use folder::{FolderStore, file_chunks};
pub use integrity::{
    ObjectState, check_object, find_stored, put_object, read_object, read_stored, read_usable,
};
pub use location::{S3Location, StorePlace, StorePlaceError};
pub use store::{
    Body, Condition, Fetched, Get, Listed, Object, ObjectInfo, ReadStore, Staged, Stat, Store,
    Version,
};
pub use unservable::find_unservable;
