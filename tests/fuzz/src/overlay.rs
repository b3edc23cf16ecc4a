mod model;
#[cfg(test)]
mod umoci;

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
pub(crate) struct Entry {
    path: String,
    kind: EntryKind,
}

#[derive(Debug, PartialEq)]
pub(crate) enum EntryKind {
    File(Vec<u8>),
    Dir,
    Symlink(String),
    Hardlink(String),
    Whiteout,
    Opaque,
}

impl Entry {
    fn is_link(&self) -> bool {
        matches!(self.kind, EntryKind::Symlink(_) | EntryKind::Hardlink(_))
    }
}

/// Reads layers of files, folders, links and whiteouts: the result equals the files on a disk to
/// which the layers were unpacked one after another.
///
/// # Panics
/// If it does not.
pub(crate) fn overlay(input: &[u8]) {
    let Ok((root, layers)) = layers(&mut Unstructured::new(input)) else {
        return;
    };
    let mut tree = Tree::default();
    layers.iter().for_each(|entries| tree.unpack(entries));
    let about = format!("{root:?} of {layers:?}");
    if !tree.is_contradictory() {
        check(root, &layers, &tree, &about);
        return;
    }
    // A path that occurs twice in a layer is refused, unless the layer is hidden; on a disk, either
    // entry may win.
    match read(&image(root, &layers)) {
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
        Err(error) => panic!("{error:?} for {about}"),
    }
}

/// Checks that the reader finds the files of the tree, or refuses the image for a documented
/// reason: a link without a target, an image without a catalog.
fn check(root: &str, layers: &[Vec<Entry>], tree: &Tree, about: &str) {
    let expected = tree.files(root);
    match read(&image(root, layers)) {
        Ok(seen) => assert_eq!(seen.contents(), expected, "{about}"),
        Err(Error::Unpack(UnpackError::Link { .. }))
            if layers.iter().flatten().any(Entry::is_link) => {}
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
    let kind = match kind {
        0..=3 => EntryKind::File(content),
        4 => EntryKind::Dir,
        5 => EntryKind::Symlink(target(input, root)?),
        6 => EntryKind::Hardlink(self::path(input, root)?),
        7 => EntryKind::Whiteout,
        _ => EntryKind::Opaque,
    };
    Ok(Entry { path, kind })
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
    let layer = Layer::new().plain();
    entries
        .iter()
        .fold(layer, |layer, Entry { path, kind }| match kind {
            EntryKind::File(content) => layer.file(path, content),
            EntryKind::Dir => layer.dir(path),
            EntryKind::Symlink(target) => layer.symlink(path, target),
            EntryKind::Hardlink(target) => layer.hardlink(path, target),
            EntryKind::Whiteout => layer.whiteout(path),
            EntryKind::Opaque => layer.opaque(path),
        })
}
