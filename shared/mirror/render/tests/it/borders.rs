//! Content that is chosen so that its deflated bytes look like the end of a segment, in catalogs
//! that change again and again. Each object of each state is decoded by other programs.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use model::{Encoding, Kind, Sha256, decode_zstd};
use render::{NoStoredShards, RenderSettings, StoredShards};
use testkit::{BorderLines, Random};

use crate::kit::{GZIP, Store, gunzip, noise, try_render, written};

/// End of a segment, which may also be other bytes of it.
const BORDER: [u8; 4] = [0, 0, 0xff, 0xff];

/// Packages by their names, in the order of the catalog.
type Packages = BTreeMap<String, String>;

/// Objects of a state that are compared: all but the index.
const MADE: [Kind; 3] = [Kind::All(Encoding::Zstd), GZIP, Kind::Blob];

/// Decodes a gzip member by libdeflate; [`gunzip`] uses zlib.
fn gunzip_with_libdeflate(bytes: &[u8], size: usize) -> Vec<u8> {
    let mut decoded = vec![0; size];
    let mut decompressor = libdeflater::Decompressor::new();
    let size = decompressor.gzip_decompress(bytes, &mut decoded).unwrap();
    decoded.truncate(size);
    decoded
}

fn zstd_of(bytes: &[u8], size: usize) -> Vec<u8> {
    decode_zstd(bytes, size as u64).unwrap()
}

/// Returns the lines of all files in a tar archive.
fn lines_in_tar(tar: &[u8]) -> Vec<u8> {
    let mut lines = Vec::new();
    for entry in tar::Archive::new(tar).entries().unwrap() {
        entry.unwrap().read_to_end(&mut lines).unwrap();
    }
    lines
}

/// Renders a state after another one, and decodes what is made. It must be what is made of nothing.
fn publish(packages: &Packages, stored: Arc<dyn StoredShards>, name: &str) -> Store {
    let file = |(name, text): (&String, &String)| (format!("{name}.json"), text.clone());
    let files: Vec<_> = packages.iter().map(file).collect();
    let settings = RenderSettings {
        workers: 1,
        ..RenderSettings::default()
    };
    let rendering = try_render(&files, stored, settings.clone()).unwrap();
    let (made, facts) = written(&rendering, MADE).unwrap();
    let [zstd, gzip, layer] = &made;
    let lines: String = packages.values().map(String::as_str).collect();
    let lines = lines.as_bytes();
    assert!(gunzip(gzip) == lines, "{name}");
    assert!(gunzip_with_libdeflate(gzip, lines.len()) == lines, "{name}");
    assert!(zstd_of(zstd, lines.len()) == lines, "{name}");
    let tar = gunzip(layer);
    assert!(gunzip_with_libdeflate(layer, tar.len()) == tar, "{name}");
    assert!(lines_in_tar(&tar) == lines, "{name}");
    assert_eq!(facts.content_hash, Sha256::of(lines), "{name}");
    assert_eq!(facts.diff_id, Some(Sha256::of(&tar)), "{name}");
    let anew = try_render(&files, Arc::new(NoStoredShards), settings).unwrap();
    assert!(written(&anew, MADE).unwrap().0 == made, "{name}");
    Store::published(&rendering)
}

/// Returns a package that another one of its name replaces at each version.
fn package(name: &str, version: usize, random: &mut Random) -> String {
    let head = format!("{{\"name\":\"{name}.v{version}\",\"package\":\"{name}\",\"schema\":\"x\"");
    match random.below(4) {
        // Fixed codes.
        0 => format!("{head}}}\n"),
        // Stored blocks, and several segments.
        1 => format!("{head},\"text\":\"{}\"}}\n", noise()),
        // A border at each bit.
        2 => format!("{head},\"text\":\"{}\"}}\n", "é".repeat(random.below(64))),
        // Dynamic codes.
        _ => format!("{head}}}\n").repeat(1 + random.below(3_000)),
    }
}

/// Changes a package of the state, adds one, or removes one: before and after the crafted one too.
fn change(packages: &mut Packages, version: usize, random: &mut Random) {
    let name = random.pick(&["a", "c", "evil", "evil-b", "f", "z"]);
    match random.below(4) {
        0 => drop(packages.remove(name)),
        _ if name == "evil" => {}
        _ => drop(packages.insert(name.to_owned(), package(name, version, random))),
    }
}

/// Returns lines like those of the attack, with one choice changed.
fn crafted(seed: u64, random: &mut Random) -> Option<String> {
    let mut lines = BorderLines::new(seed);
    match random.below(3) {
        0 => {}
        1 => lines.filled -= random.below(9_000),
        _ => {
            lines.zeros = 12_289 + random.below(12_288);
            lines.ones = 16_385 + random.below(8_192);
        }
    }
    let lines = lines.lines("evil")?;
    Some(String::from_utf8(lines).unwrap())
}

/// True if a segment of a package alone has the bytes of a border before its end.
fn looks_like_border(lines: &str) -> bool {
    let packages = Packages::from([("evil".to_owned(), lines.to_owned())]);
    let files = [("evil.json", &packages["evil"])];
    let rendering = try_render(&files, Arc::new(NoStoredShards), RenderSettings::default());
    let ([gzip], _) = written(&rendering.unwrap(), [GZIP]).unwrap();
    let borders = gzip.windows(BORDER.len()).filter(|bytes| *bytes == BORDER);
    borders.count() > 1
}

/// `CATALOG_MIRROR_BORDERS` is the number of seeds to try. Default: those up to the first two that
/// look like a border.
#[test]
fn crafted_borders_break_no_object_of_any_state() {
    let seeds = std::env::var("CATALOG_MIRROR_BORDERS").map(|seeds| seeds.parse().unwrap());
    let mut found = 0;
    for seed in 0..seeds.clone().unwrap_or(200_u64) {
        let mut random = Random::new(seed);
        let Some(lines) = crafted(seed, &mut random) else {
            continue;
        };
        let looks_like_border = looks_like_border(&lines);
        found += usize::from(looks_like_border);
        if !looks_like_border && seeds.is_err() {
            continue;
        }
        let mut packages = Packages::new();
        for name in ["a", "evil-b", "z"] {
            packages.insert(name.to_owned(), package(name, 0, &mut random));
        }
        packages.insert("evil".to_owned(), lines.clone());
        let mut store = publish(&packages, Arc::new(NoStoredShards), "first");
        for version in 1..8 {
            // It comes back if it was removed.
            let crafted = packages.entry("evil".to_owned());
            crafted.or_insert_with(|| lines.clone());
            change(&mut packages, version, &mut random);
            let name = format!("seed {seed}, version {version}");
            store = publish(&packages, Arc::new(store), &name);
        }
        if found == 2 && seeds.is_err() {
            return;
        }
    }
    assert!(found >= 2, "{found} crafted segments look like a border");
}
