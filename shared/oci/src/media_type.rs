//! The media types of images (OCI image specification, "Media Types").

/// An image index.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// A manifest for one platform.
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// What a manifest configures.
pub const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// A layer. gzip, because every client reads it; zstd came with version 1.1 and many cluster runtimes lack it.
pub const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
