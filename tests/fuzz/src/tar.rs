use std::{
    collections::BTreeMap,
    io::{self, Read},
};

use ::tar::{Archive, EntryType};
use testkit::{ImageBuilder, Layer};

use crate::images::read;

/// A layer as it is stored, compressed or not: what is read of it is what a plain reader of archives finds there.
///
/// # Panics
/// If it is otherwise.
pub fn tar(input: &[u8]) {
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

/// The files below the root, by their cleaned paths.
fn files(layer: &[u8]) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    // Some archives lack the padding of their last block.
    let padding = io::repeat(0).take(1024);
    let mut archive = Archive::new(decoded(layer)?.chain(padding));
    for entry in archive.entries()? {
        let mut entry = entry?;
        let kind = entry.header().entry_type();
        let path = entry.path_bytes();
        // The plain reader takes one NUL from the end of a long name, Go all after the first.
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

/// Whether there is a header that Go's archive/tar reads and the plain reader does not: its checksum is only right if bytes
/// are signed, as some programs once took them, or its numbers start with padding or are nothing else.
fn has_odd_header(layer: &[u8]) -> bool {
    let mut blocks = Vec::new();
    let read = decoded(layer).and_then(|mut layer| layer.read_to_end(&mut blocks));
    read.is_ok() && blocks.chunks_exact(512).any(is_odd_header)
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

/// The path without what leads nowhere.
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
