#![doc = include_str!("../README.md")]

mod digest;
mod documents;
mod folder;
mod layer;
mod manifest;
pub mod media_type;
mod path;
mod unpack;

pub use digest::{BlobRef, Digest, DigestError, DigestHasher};
pub use documents::{ARCHITECTURES, Documents, LABEL, digest};
pub use folder::ROOT;
pub use layer::Layer;
pub use manifest::{
    ImageContent, ImageDescriptor, ImageDocument, ImageError, ImageIndex, ImageManifest, REF_NAME, SignatureDescriptor,
    SignatureManifest, TargetPlatform, choose_platform, content_root, parse_document, parse_manifest,
};
pub use path::{clean_path, shown};
pub use unpack::{
    ContentReader, Depth, FileSink, ImageLimits, LayerError, LayerScan, LimitExceeded, LinkError, NamedLimit,
    OverlayState, Root, RootState, UnpackBudget, UnpackError, decompress,
};
