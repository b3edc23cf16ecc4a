use std::{
    fs,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use image::{Images, Source};
use layout::{Availability, CatalogName};
use tempfile::TempDir;

/// The catalogs of every run.
pub(crate) const NAMES: [&str; 2] = ["a", "b"];

/// Packages of each version and what they hold. Neighbours share most; at most a quarter goes at a time, as more would
/// be refused.
const VERSIONS: [&[(&str, &str)]; 4] = [
    &[("ant", "1"), ("bee", "1"), ("cow", "1"), ("dog", "1")],
    &[("ant", "1"), ("bee", "2"), ("cow", "1"), ("dog", "1")],
    &[("ant", "1"), ("bee", "2"), ("cow", "2"), ("eel", "1")],
    &[("ant", "2"), ("bee", "1"), ("cow", "1"), ("eel", "1")],
];

/// How many versions there are.
pub(crate) const MOST: u64 = VERSIONS.len() as u64;

/// The packages that every version has.
pub(crate) const PACKAGES: [&str; 3] = ["ant", "bee", "cow"];

/// Their files, written once for all runs of a process.
struct Shelf {
    dir: TempDir,
    images: Images,
}

fn shelf() -> &'static Shelf {
    static SHELF: OnceLock<Shelf> = OnceLock::new();
    SHELF.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a temporary folder can be made");
        for (version, packages) in VERSIONS.iter().enumerate() {
            for (package, content) in *packages {
                let folder = dir.path().join(version.to_string()).join(package);
                fs::create_dir_all(&folder).expect("a folder can be made");
                let text = format!(
                    "schema: olm.package\nname: {package}\n---\nschema: olm.bundle\nname: {package}.v{content}\npackage: {package}\n"
                );
                fs::write(folder.join("catalog.yaml"), text).expect("a file can be written");
            }
        }
        let images = Images::new(image::Settings::default()).expect("nothing is fetched");
        Shelf { dir, images }
    })
}

pub(crate) fn images() -> Images {
    shelf().images.clone()
}

pub(crate) fn name(catalog: usize) -> CatalogName {
    NAMES[catalog].parse().expect("it is a name")
}

/// A catalog whose source is at one of the versions.
pub(crate) fn catalog(catalog: usize, version: usize) -> Arc<poll::Catalog> {
    let path: PathBuf = shelf().dir.path().join(version.to_string());
    Arc::new(poll::Catalog {
        name: name(catalog),
        source: Source::Dir(path),
        availability: Availability::Available,
        interval: None,
        policy: None,
        lookaside: None,
    })
}
