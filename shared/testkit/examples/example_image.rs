//! Writes the OCI layout of the example catalog that the binary carries, from the FBC in
//! `tests/catalogs`.
//!
//! ```sh
//! cargo run -p testkit --example example_image
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use testkit::{ImageBuilder, Layer};

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let layout = root.join("functions/catalog-mirror/example");
    if layout.exists() {
        fs::remove_dir_all(&layout).expect("the old layout can be removed");
    }
    for version in ["v1", "v2"] {
        let fbc = root.join("tests/catalogs").join(version);
        let image = ImageBuilder::catalog("/configs").layer(files(&fbc)).build();
        image.write_layout(&layout, Some(version));
    }
}

fn files(folder: &Path) -> Layer {
    let mut paths = list(folder);
    paths.sort();
    paths
        .iter()
        .fold(Layer::new().dir("configs"), |layer, path| {
            let name = path
                .strip_prefix(folder)
                .expect("listed below the folder")
                .display();
            let content = fs::read(path).expect("a listed file can be read");
            layer.file(&format!("configs/{name}"), content)
        })
}

/// Lists the files below a folder.
fn list(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the example catalog is part of the source");
    let mut files = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(list(&path));
        } else {
            files.push(path);
        }
    }
    files
}
