// The generator of the archives that are compared with Go's answers.
#[path = "../../../shared/core/oci/src/unpack/tar/tests/differential/archives.rs"]
mod archives;

use testkit::{ImageBuilder, Layer};

use crate::images::read;

/// Reads a layer, compressed or not, as a catalog and as one with a root folder: every path is
/// clean. The entries are those of Go's `archive/tar`: the differential test compares them.
///
/// # Panics
/// If a path is not clean.
pub(crate) fn tar(input: &[u8]) {
    for root in ["/", "/configs"] {
        let below = Layer::new()
            .file("configs/below.yaml", "below")
            .dir("configs");
        let image = ImageBuilder::catalog(root)
            .layer(below.plain())
            .layer(Layer::new().raw(input.to_vec()))
            .build();
        let Ok(seen) = read(&image) else { continue };
        for path in seen.files.keys().chain(seen.links.keys()) {
            assert!(
                path.split('/').all(|part| !matches!(part, "" | "." | "..")),
                "{path:?}"
            );
        }
    }
}

/// Returns archives with every odd field.
pub(crate) fn seeds() -> impl Iterator<Item = Vec<u8>> {
    (0..100).map(archives::archive)
}
