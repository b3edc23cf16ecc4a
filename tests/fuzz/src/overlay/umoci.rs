//! Comparison of generated images with what umoci unpacks.
#![expect(clippy::print_stdout, reason = "`--nocapture` shows what was measured")]

use std::{collections::BTreeSet, env, process::Command};

use arbitrary::Unstructured;
use tempfile::TempDir;

use super::{Entry, EntryKind, check, image, layers, model::Tree};
use crate::{images::in_memory, seeds::noise};

/// Compares `IMAGES` images (default 100) with what umoci makes of them, from `FIRST_SEED` (default
/// 0) on.
#[test]
#[ignore = "needs umoci: run scripts/long-checks differential"]
fn reader_agrees_with_umoci() {
    let number =
        |name: &str, default: usize| env::var(name).map_or(default, |text| text.parse().unwrap());
    let (first, wanted) = (number("FIRST_SEED", 0) as u64, number("IMAGES", 100));
    let (mut compared, mut refused) = (0, 0);
    for seed in first.. {
        if compared == wanted {
            break;
        }
        let Ok((root, mut layers)) = layers(&mut Unstructured::new(&noise(seed))) else {
            continue;
        };
        layers.truncate(3);
        if layers.len() < 2 || differs_on_purpose(&layers) {
            continue;
        }
        let dir = TempDir::new_in(in_memory()).unwrap();
        image(root, &layers).write_layout(&dir.path().join("layout"), Some("one"));
        let mut umoci = Command::new("umoci");
        let umoci = umoci.current_dir(dir.path());
        let umoci = umoci.args([
            "raw",
            "unpack",
            "--rootless",
            "--image",
            "layout:one",
            "rootfs",
        ]);
        // It refuses a hard link to a file that does not exist yet, and a file in a folder that is
        // a file below.
        if !umoci.output().unwrap().status.success() {
            refused += 1;
            continue;
        }
        let disk = Tree::of_disk(&dir.path().join("rootfs")).unwrap();
        check(
            root,
            &layers,
            &disk,
            &format!("seed {seed}: {root:?} of {layers:?}"),
        );
        compared += 1;
    }
    println!("{compared} images are read as umoci reads them; it refuses {refused} more");
    assert!(
        refused < 2 * wanted,
        "umoci refuses {refused} of {}",
        refused + wanted
    );
}

/// Returns true if the order of entries in a layer matters to umoci, or if umoci and overlayfs
/// differ: umoci follows a link where an entry needs a folder, and ignores a whiteout where its
/// folder is a file in a lower layer. overlayfs replaces both.
fn differs_on_purpose(layers: &[Vec<Entry>]) -> bool {
    let mut tree = Tree::default();
    layers.iter().for_each(|entries| tree.unpack(entries));
    let all = || layers.iter().flatten();
    let paths = |fits: fn(&Entry) -> bool| -> BTreeSet<&str> {
        all()
            .filter(|entry| fits(entry))
            .map(|entry| &*entry.path)
            .collect()
    };
    let (links, files) = (
        paths(Entry::is_link),
        paths(|entry| matches!(entry.kind, EntryKind::File(_))),
    );
    let is_below = |path: &str, others: &BTreeSet<&str>| {
        let mut folders = path.match_indices('/').map(|(end, _)| &path[..end]);
        folders.any(|folder| others.contains(folder))
    };
    let differs = |Entry { path, kind }: &Entry| match kind {
        EntryKind::Whiteout => is_below(path, &links) || is_below(path, &files),
        EntryKind::Opaque => {
            let marker = format!("{path}/");
            is_below(&marker, &links) || is_below(&marker, &files)
        }
        _ => is_below(path, &links),
    };
    tree.is_contradictory() || all().any(differs)
}
