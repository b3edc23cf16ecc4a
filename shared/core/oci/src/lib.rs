#![doc = include_str!("../README.md")]

mod digest;
mod documents;
mod folder;
mod layer;
mod manifest;
mod path;
mod unpack;

pub use digest::{BlobRef, Digest, DigestError, DigestHasher};
pub use documents::{ARCHITECTURES, Documents, LABEL, digest};
pub use folder::ROOT;
pub use layer::Layer;
pub use manifest::{
    ImageContent, ImageDescriptor, ImageDocument, ImageError, ImageIndex, ImageManifest, REF_NAME,
    SignatureManifest, TargetPlatform, choose_platform, content_root, parse_document,
    parse_manifest,
};
pub use path::{clean_path, shown};
pub use unpack::{
    Depth, FileSink, ImageLimits, LayerError, LayerScan, LimitExceeded, LinkError, NamedLimit,
    OverlayState, Root, UnpackBudget, UnpackError, decompress, pass_file, pass_link,
};

/// Media types of images (OCI image specification, "Media Types").
pub mod media_type {
    /// Media type of an image index.
    pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
    /// Media type of the manifest for one platform.
    pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
    /// Media type of an image config.
    pub const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
    /// Media type of a layer. gzip, because every client reads it; many cluster runtimes lack zstd,
    /// which came with version 1.1.
    pub const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
}
