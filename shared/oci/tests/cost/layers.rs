//! Families of layers that are as expensive as one can make them.

use std::io::Write as _;

/// Layers of one kind and any size.
pub(crate) struct Family {
    pub(crate) name: &'static str,
    /// Adds the part of a number to the layer.
    part: fn(&mut Vec<u8>, usize),
    /// Largest peak of memory, in tenths of the layer's size, above a constant.
    pub(crate) peak: u64,
    /// The limit that a layer of 16 MiB exceeds.
    pub(crate) limit: Option<&'static str>,
}

impl Family {
    /// Makes a layer of at least this many bytes.
    pub(crate) fn layer(&self, size: usize) -> Vec<u8> {
        let mut layer = Vec::with_capacity(size + (1 << 20));
        for at in 0.. {
            if layer.len() >= size {
                break;
            }
            (self.part)(&mut layer, at);
        }
        layer
    }
}

pub(crate) const FAMILIES: &[Family] = &[
    family("files", 10, |layer, at| {
        entry(layer, b'0', &format!("configs/{at}"), "", b"x");
    }),
    family("PAX paths", 5, |layer, at| {
        let record = format!(" path=configs/{at:07}\n");
        extension(layer, b'x', format!("{}{record}", record.len() + 2).as_bytes());
        entry(layer, b'0', "x", "", b"");
    }),
    family("PAX records of five bytes", 0, |layer, at| {
        extension(layer, b'x', &b"5 a=\n".repeat(100_000));
        entry(layer, b'0', &format!("configs/{at}"), "", b"");
    }),
    family("global headers", 0, |layer, _| {
        extension(layer, b'g', b"12 comment=\n");
        entry(layer, b'0', "etc/x", "", b"");
    }),
    family("GNU long names", 20, |layer, at| {
        extension(layer, b'L', format!("configs/{}/{at}", "n".repeat(4070)).as_bytes());
        entry(layer, b'0', "x", "", b"");
    }),
    family("GNU long targets", 20, |layer, at| {
        extension(layer, b'K', format!("{}f", "./".repeat(2000)).as_bytes());
        entry(layer, b'2', &format!("configs/{at}"), "", b"");
        if at == 0 {
            entry(layer, b'0', "configs/f", "", b"");
        }
    }),
    family("sparse maps", 0, |layer, _| {
        gnu_sparse(layer, 1500);
    }),
    family("deep folders", 10, |layer, at| {
        extension(
            layer,
            b'L',
            format!("configs/{}/{at}", "n".repeat(64) + &"/n".repeat(60)).as_bytes(),
        );
        entry(layer, b'0', "x", "", b"");
    }),
    limited("folders of their own", 60, "treeBytes", |layer, at| {
        extension(layer, b'L', format!("configs/{at}{}/f", "/n".repeat(60)).as_bytes());
        entry(layer, b'0', "x", "", b"");
    }),
    family("links to one file", 10, |layer, at| {
        let (kind, target) = if at % 2 == 0 { (b'1', "configs/f") } else { (b'2', "f") };
        entry(layer, kind, &format!("configs/l{at}"), target, b"");
        if at == 0 {
            entry(layer, b'0', "configs/f", "", b"");
        }
    }),
    limited("chains of links", 10, "linkSteps", |layer, at| {
        // Chains of 38, each to the same file.
        match at % 39 {
            0 => entry(layer, b'0', &format!("configs/l{at}"), "", b""),
            _ => entry(
                layer,
                b'2',
                &format!("configs/l{at}"),
                &format!("../configs/l{}", at - 1),
                b"",
            ),
        }
    }),
    family("whiteouts", 10, |layer, at| {
        entry(layer, b'0', &format!("configs/.wh.{at}"), "", b"");
    }),
    family("whiteouts in folders", 20, |layer, at| {
        let name = if at % 2 == 0 { ".wh..wh..opq" } else { ".wh.x" };
        entry(layer, b'0', &format!("configs/{at}/{name}"), "", b"");
    }),
    family("empty gzip members", 0, |layer, _| {
        layer.extend(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00");
    }),
    family("names of gzip members", 0, |layer, _| {
        layer.extend(b"\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\xff");
        layer.extend([b'n'; 60_000]);
        layer.extend(b"\x00\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00");
    }),
    family("empty gzip blocks", 0, |layer, at| {
        if at == 0 {
            layer.extend(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff");
        }
        layer.extend(b"\x00\x00\x00\xff\xff".repeat(1000));
        if layer.len() >= layer.capacity() - (1 << 20) {
            layer.extend(b"\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00");
        }
    }),
    family("empty zstd frames", 0, |layer, _| {
        layer.extend(b"\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00");
    }),
    family("skippable zstd frames", 0, |layer, _| {
        layer.extend(b"\x50\x2a\x4d\x18\x00\x00\x00\x00");
    }),
    family("empty zstd blocks", 0, |layer, at| {
        if at == 0 {
            layer.extend(b"\x28\xb5\x2f\xfd\x00\x58");
        }
        layer.extend(b"\x00\x00\x00".repeat(1000));
        if layer.len() >= layer.capacity() - (1 << 20) {
            layer.extend(b"\x01\x00\x00");
        }
    }),
];

const fn family(name: &'static str, peak: u64, part: fn(&mut Vec<u8>, usize)) -> Family {
    Family {
        name,
        part,
        peak,
        limit: None,
    }
}

const fn limited(name: &'static str, peak: u64, limit: &'static str, part: fn(&mut Vec<u8>, usize)) -> Family {
    Family {
        limit: Some(limit),
        ..family(name, peak, part)
    }
}

fn entry(layer: &mut Vec<u8>, kind: u8, name: &str, target: &str, content: &[u8]) {
    write(layer, kind, name, target, content.len(), |_| {});
    layer.extend(content);
    layer.resize(layer.len().next_multiple_of(512), 0);
}

fn extension(layer: &mut Vec<u8>, kind: u8, text: &[u8]) {
    entry(layer, kind, "extension", "", text);
}

/// Writes an empty sparse file outside of the catalog, whose map has so many blocks.
fn gnu_sparse(layer: &mut Vec<u8>, blocks: usize) {
    write(layer, b'S', "etc/sparse", "", 0, |block| block[482] = 1);
    for at in 1..=blocks {
        let mut block = [0; 512];
        block[504] = u8::from(at < blocks);
        layer.extend(block);
    }
}

fn write(layer: &mut Vec<u8>, kind: u8, name: &str, target: &str, size: usize, change: fn(&mut [u8; 512])) {
    let mut block = [0; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    write!(&mut block[124..], "{size:011o}").expect("the field has space for it");
    block[156] = kind;
    block[157..157 + target.len()].copy_from_slice(target.as_bytes());
    block[257..265].copy_from_slice(b"ustar  \0");
    change(&mut block);
    block[148..156].fill(b' ');
    let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
    write!(&mut block[148..], "{sum:06o}\0").expect("the field has space for it");
    layer.extend(block);
}
