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
pub(crate) const RING_DELAY: Duration = Duration::from_secs(24 * 3600);

/// Time after which held content of the second catalog is published all the same: an era is longer.
/// Content of the first one is held until a person lets it through.
const HOLD_TIME: Duration = Duration::from_secs(30 * 3600);

/// Part of the images of a vendor.
const VENDOR: &str = "registry.example/vendor/";

/// Part of the images of another vendor, whose content comes by accident.
const OTHER_VENDOR: &str = "registry.example/other/";

/// Packages of each version with their content. Neighbours share most of them. At most a quarter
/// goes at a time, because a poll refuses a larger loss. The last two have the images of another
/// vendor: over one of the others they are an accident, and the others over them.
const VERSIONS: [&[(&str, &str)]; 6] = [
    &[("ant", "1"), ("bee", "1"), ("cow", "1"), ("dog", "1")],
    &[("ant", "1"), ("bee", "2"), ("cow", "1"), ("dog", "1")],
    &[("ant", "1"), ("bee", "2"), ("cow", "2"), ("eel", "1")],
    &[("ant", "2"), ("bee", "1"), ("cow", "1"), ("eel", "1")],
    &[("ant", "2"), ("bee", "1"), ("cow", "1"), ("eel", "1")],
    &[("ant", "2"), ("bee", "2"), ("cow", "1"), ("eel", "1")],
];

/// Number of versions of a source without the accidents.
pub(crate) const MOST: u64 = 4;

/// Number of versions of a source.
pub(crate) const ALL: u64 = VERSIONS.len() as u64;

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
                let vendor = if is_accident(version) {
                    OTHER_VENDOR
                } else {
                    VENDOR
                };
                let text = format!(
                    "schema: olm.package\nname: {package}\n---\nschema: olm.bundle\nname: {package}.v{content}\npackage: {package}\n---\nschema: olm.bundle\nname: {package}.v0\npackage: {package}\nimage: {vendor}{package}\n"
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

/// Returns a catalog whose source has one of the versions.
pub(crate) fn catalog(catalog: usize, version: usize) -> Catalog {
    let path: PathBuf = source_files().dir.path().join(version.to_string());
    let mut catalog = Catalog::new(name(catalog), Source::Dir(path));
    catalog.hold.time = hold_time(&catalog.name);
    catalog
}

/// Returns the time for which content of a catalog is held; `None` if only a person decides.
pub(crate) fn hold_time(catalog: &CatalogName) -> Option<Duration> {
    (*catalog != name(0)).then_some(HOLD_TIME)
}

/// Returns true for a version with the images of another vendor.
pub(crate) const fn is_accident(version: usize) -> bool {
    version as u64 >= MOST
}

/// Returns another version of the same vendor.
pub(crate) fn other_version(version: usize) -> usize {
    let good = MOST as usize;
    if is_accident(version) {
        good + (version + 1 - good) % (VERSIONS.len() - good)
    } else {
        (version + 1) % good
    }
}

/// Returns true if the lines of a catalog have the images of another vendor.
pub(crate) fn is_of_other_vendor(lines: &[u8]) -> bool {
    String::from_utf8_lossy(lines).contains(OTHER_VENDOR)
}
