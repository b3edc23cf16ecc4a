mod model;

use arbitrary::{Arbitrary, Unstructured};
use source::{Error, LayerError};
use testkit::{ImageBuilder, Layer};

use crate::images::read;
use model::Tree;

/// Maximum number of layers: more find no further faults.
const LAYERS: usize = 5;
/// Maximum number of entries in a layer.
const ENTRIES: usize = 16;

/// Components of the paths of entries.
const PARTS: [&str; 5] = ["a", "b", "configs", "x.yaml", "y.json"];

/// Root folders of the catalog, at several depths.
const ROOTS: [&str; 3] = ["configs", "a/configs", ""];

/// Entry of a layer. Paths have no leading slash.
#[derive(Debug)]
pub(crate) enum Entry {
    File(String, Vec<u8>),
    Dir(String),
    Symlink(String, String),
    Hardlink(String, String),
    Whiteout(String),
    Opaque(String),
}

/// Reads layers of files, folders, links and whiteouts: the result equals the files on a disk to which the layers were
/// unpacked one after another.
///
/// # Panics
/// If it does not.
pub fn overlay(input: &[u8]) {
    let Ok((root, layers)) = layers(&mut Unstructured::new(input)) else {
        return;
    };
    let mut image = ImageBuilder::catalog(&format!("/{root}"));
    let mut tree = Tree::default();
    for entries in &layers {
        image = image.layer(layer(entries));
        tree.unpack(entries);
    }
    let expected = tree.files(root);
    match read(&image.build()) {
        // A path that occurs twice in a layer is refused, unless the layer is hidden; on a disk, either entry may win.
        Ok(_)
        | Err(Error::Layer {
            source: LayerError::Duplicate(_),
            ..
        }) if tree.is_contradictory() => {}
        Ok(seen) => assert_eq!(seen.contents(), expected, "{root:?} of {layers:?}"),
        // Documented refusals: a link without a target, an image without a catalog.
        Err(Error::Link { .. }) if tree.has_links() => {}
        Err(Error::Image(_)) if expected.is_empty() || tree.is_contradictory() => {}
        Err(error) => panic!("{error:?} for {root:?} of {layers:?}"),
    }
}

fn layers(input: &mut Unstructured<'_>) -> arbitrary::Result<(&'static str, Vec<Vec<Entry>>)> {
    let root = *input.choose(&ROOTS)?;
    let mut layers = Vec::new();
    while layers.len() < LAYERS && bool::arbitrary(input)? {
        let mut entries = Vec::new();
        while entries.len() < ENTRIES && !input.is_empty() && input.ratio(7, 8)? {
            let content = vec![b'0' + layers.len() as u8, b'0' + entries.len() as u8];
            entries.push(entry(input, root, content)?);
        }
        layers.push(entries);
    }
    Ok((root, layers))
}

fn entry(input: &mut Unstructured<'_>, root: &str, content: Vec<u8>) -> arbitrary::Result<Entry> {
    let kind = input.int_in_range(0..=8)?;
    let path = path(input, root)?;
    Ok(match kind {
        0..=3 => Entry::File(path, content),
        4 => Entry::Dir(path),
        5 => Entry::Symlink(path, target(input, root)?),
        6 => Entry::Hardlink(path, self::path(input, root)?),
        7 => Entry::Whiteout(path),
        _ => Entry::Opaque(path),
    })
}

/// Returns a path, mostly below the root.
fn path(input: &mut Unstructured<'_>, root: &str) -> arbitrary::Result<String> {
    let mut parts = Vec::new();
    if input.ratio(7, 8)? && !root.is_empty() {
        parts.push(root);
    }
    for _ in 0..input.int_in_range(1..=3)? {
        parts.push(*input.choose(&PARTS)?);
    }
    Ok(parts.join("/"))
}

fn target(input: &mut Unstructured<'_>, root: &str) -> arbitrary::Result<String> {
    Ok(match input.int_in_range(0..=3)? {
        0 => format!("/{}", path(input, root)?),
        1 => path(input, "")?,
        2 => format!("../{}", path(input, "")?),
        _ => format!("../../{}", path(input, root)?),
    })
}

fn layer(entries: &[Entry]) -> Layer {
    entries.iter().fold(Layer::new().plain(), |layer, entry| match entry {
        Entry::File(path, content) => layer.file(path, content),
        Entry::Dir(path) => layer.dir(path),
        Entry::Symlink(path, target) => layer.symlink(path, target),
        Entry::Hardlink(path, target) => layer.hardlink(path, target),
        Entry::Whiteout(path) => layer.whiteout(path),
        Entry::Opaque(path) => layer.opaque(path),
    })
}
