use std::{
    collections::BTreeMap,
    io::{self, Read},
};

use ::tar::{Archive, EntryType};
use testkit::{ImageBuilder, Layer};

use crate::images::read;

/// Reads a layer, compressed or not: the result equals that of another tar reader.
///
/// # Panics
/// If it does not.
pub(crate) fn tar(input: &[u8]) {
    let below = Layer::new().file("configs/below.yaml", "below").dir("configs");
    let above = Layer::new().raw(input.to_vec());
    let image = ImageBuilder::catalog("/configs")
        .layer(below.plain())
        .layer(above)
        .build();
    let Ok(seen) = read(&image) else { return };
    for path in seen.files.keys().chain(seen.links.keys()) {
        assert!(path.split('/').all(|part| !matches!(part, "" | "." | "..")), "{path:?}");
    }
    // Go ignores an empty long name, and the `tar` crate takes it for the name of the file.
    if has_empty_long_name(input) {
        return;
    }
    let found = match files(input) {
        Ok(found) => found,
        Err(_) if has_odd_header(input) => return,
        Err(error) => panic!("what was read can be read again: {error}"),
    };
    for (path, content) in &seen.files {
        let there = found.get(path).is_some_and(|there| there == content);
        assert!(there || (path == "below.yaml" && content == b"below"), "{path:?}");
    }
}

/// Returns the files below the root by their clean paths, read with the `tar` crate.
fn files(layer: &[u8]) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    // Some archives lack the padding of their last block.
    let padding = io::repeat(0).take(1024);
    let mut archive = Archive::new(decoded(layer)?.chain(padding));
    for entry in archive.entries()? {
        let mut entry = entry?;
        let kind = entry.header().entry_type();
        let path = entry.path_bytes();
        // The `tar` crate removes one NUL from the end of a long name, Go everything after the first.
        let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
        let path = clean(&String::from_utf8_lossy(path));
        let is_file = matches!(kind, EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse);
        if let (true, Some(path)) = (is_file, path.strip_prefix("configs/")) {
            let mut content = Vec::new();
            entry.read_to_end(&mut content)?;
            files.insert(path.to_owned(), content);
        }
    }
    Ok(files)
}

/// Returns true if a header is valid for Go's archive/tar but not for the `tar` crate: its checksum treats bytes as signed,
/// as some old programs did, or a number starts with padding or is only padding.
fn has_odd_header(layer: &[u8]) -> bool {
    let mut blocks = Vec::new();
    let read = decoded(layer).and_then(|mut layer| layer.read_to_end(&mut blocks));
    read.is_ok() && blocks.chunks_exact(512).any(is_odd_header)
}

fn has_empty_long_name(layer: &[u8]) -> bool {
    let mut bytes = Vec::new();
    let read = decoded(layer).and_then(|mut layer| layer.read_to_end(&mut bytes));
    let (blocks, _) = bytes.as_chunks::<512>();
    let is_empty = |size: &[u8]| !size.iter().any(|byte| matches!(byte, b'1'..=b'7' | 0x80..));
    let is_long_name = |block: &[u8; 512]| matches!(block[156], b'L' | b'K');
    let mut pairs = blocks.windows(2);
    read.is_ok() && pairs.any(|pair| is_long_name(&pair[0]) && (is_empty(&pair[0][124..136]) || pair[1][0] == 0))
}

fn is_odd_header(block: &[u8]) -> bool {
    let (size, sum) = (&block[124..136], &block[148..156]);
    let others = block[..148].iter().chain(&[b' '; 8]).chain(&block[156..]);
    let signed: i64 = others.clone().map(|byte| i64::from(byte.cast_signed())).sum();
    let unsigned: i64 = others.map(|byte| i64::from(*byte)).sum();
    let stored = i64::from_str_radix(String::from_utf8_lossy(sum).trim_matches(['\0', ' ']), 8);
    let is_padded = |number: &[u8]| {
        number
            .split(|byte| *byte == 0)
            .next()
            .is_none_or(|text| text.trim_ascii().is_empty())
    };
    stored.is_ok_and(|stored| {
        stored == signed && stored != unsigned || stored == unsigned && [size, sum].into_iter().any(is_padded)
    })
}

fn decoded(layer: &[u8]) -> io::Result<Box<dyn Read + '_>> {
    match layer {
        [0x1f, 0x8b, ..] => Ok(Box::new(flate2::read::MultiGzDecoder::new(layer))),
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [_, 0x2a, 0x4d, 0x18, ..] => Ok(Box::new(zstd::Decoder::new(layer)?)),
        _ => Ok(Box::new(layer)),
    }
}

/// Returns the path without empty and `.` components.
fn clean(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}
