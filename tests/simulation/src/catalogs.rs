use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use model::CatalogName;
use publish::{Catalog, CatalogSource, RingRule, RingSource};
use source::{Source, Sources};
use tempfile::TempDir;

/// Names of the catalogs of every run.
pub(crate) const NAMES: [&str; 2] = ["a", "b"];

/// Number of the ring that follows the first catalog.
pub(crate) const RING: usize = NAMES.len();

/// Delay of the ring: an era is longer, so each state is old enough in the next one.
const RING_DELAY: Duration = Duration::from_secs(24 * 3600);

/// Packages of each version with their content. Neighbours share most of them. At most a quarter
/// goes at a time, because a poll refuses a larger loss.
const VERSIONS: [&[(&str, &str)]; 4] = [
    &[("ant", "1"), ("bee", "1"), ("cow", "1"), ("dog", "1")],
    &[("ant", "1"), ("bee", "2"), ("cow", "1"), ("dog", "1")],
    &[("ant", "1"), ("bee", "2"), ("cow", "2"), ("eel", "1")],
    &[("ant", "2"), ("bee", "1"), ("cow", "1"), ("eel", "1")],
];

/// Number of versions of a source.
pub(crate) const MOST: u64 = VERSIONS.len() as u64;

/// Packages that every version has.
pub(crate) const PACKAGES: [&str; 3] = ["ant", "bee", "cow"];

/// Files of all versions, written once for all runs of a process.
struct SourceFiles {
    dir: TempDir,
    images: Sources,
}

fn source_files() -> &'static SourceFiles {
    static FILES: OnceLock<SourceFiles> = OnceLock::new();
    FILES.get_or_init(|| {
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
        let images = Sources::new(source::SourceSettings::default()).expect("nothing is fetched");
        SourceFiles { dir, images }
    })
}

pub(crate) fn images() -> Sources {
    source_files().images.clone()
}

pub(crate) fn name(catalog: usize) -> CatalogName {
    let name = if catalog == RING {
        "ring"
    } else {
        NAMES[catalog]
    };
    name.parse().expect("it is a name")
}

/// Returns the ring that follows the first catalog.
pub(crate) fn ring() -> Catalog {
    let source = RingSource {
        of: name(0),
        rule: RingRule {
            after: Some(RING_DELAY),
            is_manual: false,
        },
        now: Vec::new(),
    };
    Catalog::new(name(RING), CatalogSource::Ring(Box::new(source)))
}

/// Returns a catalog whose source holds one of the versions.
pub(crate) fn catalog(catalog: usize, version: usize) -> Catalog {
    let path: PathBuf = source_files().dir.path().join(version.to_string());
    Catalog::new(name(catalog), Source::Dir(path))
}
