//! Media types of images (OCI image specification, "Media Types").

/// Media type of an image index.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Media type of the manifest for one platform.
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Media type of an image config.
pub const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// Media type of a layer. gzip, because every client reads it; many cluster runtimes lack zstd, which came with version 1.1.
pub const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
