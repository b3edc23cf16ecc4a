mod model;
#[cfg(test)]
mod umoci;

use std::collections::BTreeMap;

use arbitrary::{Arbitrary, Unstructured};
use source::{Error, LayerError, UnpackError};
use testkit::{Image, ImageBuilder, Layer};

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
pub(crate) fn overlay(input: &[u8]) {
    let Ok((root, layers)) = layers(&mut Unstructured::new(input)) else {
        return;
    };
    let mut tree = Tree::default();
    layers.iter().for_each(|entries| tree.unpack(entries));
    let image = image(root, &layers);
    if tree.is_contradictory() {
        // A path that occurs twice in a layer is refused, unless the layer is hidden; on a disk, either entry may win.
        match read(&image) {
            Ok(_)
            | Err(
                Error::Image(_)
                | Error::Unpack(
                    UnpackError::Link { .. }
                    | UnpackError::Layer {
                        source: LayerError::Duplicate(_),
                        ..
                    },
                ),
            ) => {}
            Err(error) => panic!("{error:?} for {root:?} of {layers:?}"),
        }
    } else {
        check(
            &image,
            &tree.files(root),
            tree.has_links(),
            &format!("{root:?} of {layers:?}"),
        );
    }
}

/// Checks that the reader finds these files, or refuses the image for a documented reason: a link without a target, an image
/// without a catalog.
fn check(image: &Image, expected: &BTreeMap<String, Vec<u8>>, has_links: bool, about: &str) {
    match read(image) {
        Ok(seen) => assert_eq!(seen.contents(), *expected, "{about}"),
        Err(Error::Unpack(UnpackError::Link { .. })) if has_links => {}
        Err(Error::Image(_)) if expected.is_empty() => {}
        Err(error) => panic!("{error:?} for {about}"),
    }
}

fn image(root: &str, layers: &[Vec<Entry>]) -> Image {
    let image = ImageBuilder::catalog(&format!("/{root}"));
    layers
        .iter()
        .fold(image, |image, entries| image.layer(layer(entries)))
        .build()
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
