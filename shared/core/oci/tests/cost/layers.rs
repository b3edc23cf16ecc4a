//! Families of layers that are as expensive as one can make them.

use tar::{EntryType, Header};
use testkit::Layer;

/// Layers of one kind and any size: a start, parts as often as they fit, and an end.
pub(crate) struct Family {
    pub(crate) name: &'static str,
    start: &'static [u8],
    part: Part,
    end: &'static [u8],
    /// Largest peak of memory, in tenths of the layer's size, above a constant.
    pub(crate) peak: u64,
    /// The limit that a layer of 16 MiB exceeds.
    pub(crate) limit: Option<&'static str>,
}

enum Part {
    Bytes(Vec<u8>),
    /// Adds the entries of a number.
    Entries(fn(Layer, usize) -> Layer),
}

impl Family {
    /// Makes a layer of at least this many bytes.
    pub(crate) fn layer(&self, size: usize) -> Vec<u8> {
        let mut layer = Vec::with_capacity(size + (1 << 20));
        layer.extend(self.start);
        for at in 0.. {
            if layer.len() >= size {
                break;
            }
            match &self.part {
                Part::Bytes(bytes) => layer.extend(bytes),
                Part::Entries(add) => {
                    // Without the end of the archive, two blocks.
                    let tar = add(Layer::new(), at).tar();
                    layer.extend(&tar[..tar.len() - 1024]);
                }
            }
        }
        layer.extend(self.end);
        layer
    }
}

pub(crate) fn families() -> Vec<Family> {
    let named = [
        b"\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\xff",
        &[b'n'; 60_000][..],
        b"\x00",
        GZIP_END,
    ];
    let named = named.concat();
    vec![
        entries("files", 10, |layer, at| {
            layer.file(&format!("configs/{at}"), "x")
        }),
        entries("PAX paths", 5, |layer, at| {
            let record = format!(" path=configs/{at:07}\n");
            let text = format!("{}{record}", record.len() + 2);
            layer
                .pax_text(EntryType::XHeader, text.as_bytes())
                .file("x", "")
        }),
        entries("PAX records of five bytes", 0, |layer, at| {
            let layer = layer.pax_text(EntryType::XHeader, &b"5 a=\n".repeat(100_000));
            layer.file(&format!("configs/{at}"), "")
        }),
        entries("global headers", 0, |layer, _| {
            layer
                .pax_text(EntryType::XGlobalHeader, b"12 comment=\n")
                .file("etc/x", "")
        }),
        entries("GNU long names", 20, |layer, at| {
            layer.file(&format!("configs/{}/{at}", "n".repeat(4070)), "")
        }),
        entries("GNU long targets", 20, |layer, at| match at {
            0 => layer.file("configs/f", ""),
            _ => layer.symlink(&format!("configs/{at}"), &format!("{}f", "./".repeat(2000))),
        }),
        bytes("sparse maps", b"", &gnu_sparse(1500), b""),
        entries("deep folders", 10, |layer, at| {
            layer.file(
                &format!("configs/{}{}/{at}", "n".repeat(64), "/n".repeat(60)),
                "",
            )
        }),
        Family {
            limit: Some("treeBytes"),
            ..entries("folders of their own", 60, |layer, at| {
                layer.file(&format!("configs/{at}{}/f", "/n".repeat(60)), "")
            })
        },
        entries("links to one file", 10, |layer, at| match at {
            0 => layer.file("configs/f", ""),
            _ if at % 2 == 0 => layer.hardlink(&format!("configs/l{at}"), "configs/f"),
            _ => layer.symlink(&format!("configs/l{at}"), "f"),
        }),
        Family {
            limit: Some("linkSteps"),
            // Chains of 38, each to the same file.
            ..entries("chains of links", 10, |layer, at| match at % 39 {
                0 => layer.file(&format!("configs/l{at}"), ""),
                _ => layer.symlink(
                    &format!("configs/l{at}"),
                    &format!("../configs/l{}", at - 1),
                ),
            })
        },
        entries("whiteouts", 10, |layer, at| {
            layer.whiteout(&format!("configs/{at}"))
        }),
        entries("whiteouts in folders", 20, |layer, at| match at % 2 {
            0 => layer.opaque(&format!("configs/{at}")),
            _ => layer.whiteout(&format!("configs/{at}/x")),
        }),
        bytes("empty gzip members", b"", &[GZIP, GZIP_END].concat(), b""),
        bytes("names of gzip members", b"", &named, b""),
        bytes(
            "empty gzip blocks",
            GZIP,
            &b"\x00\x00\x00\xff\xff".repeat(1000),
            GZIP_END,
        ),
        bytes(
            "empty zstd frames",
            b"",
            b"\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00",
            b"",
        ),
        bytes(
            "skippable zstd frames",
            b"",
            b"\x50\x2a\x4d\x18\x00\x00\x00\x00",
            b"",
        ),
        bytes(
            "empty zstd blocks",
            b"\x28\xb5\x2f\xfd\x00\x58",
            &[0; 3000],
            b"\x01\x00\x00",
        ),
    ]
}

/// Header of a gzip member without a name.
const GZIP: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff";
/// An empty last block, and the checksum and size of nothing.
const GZIP_END: &[u8] = b"\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00";

fn entries(name: &'static str, peak: u64, add: fn(Layer, usize) -> Layer) -> Family {
    Family {
        part: Part::Entries(add),
        peak,
        ..bytes(name, b"", b"", b"")
    }
}

fn bytes(name: &'static str, start: &'static [u8], part: &[u8], end: &'static [u8]) -> Family {
    Family {
        name,
        start,
        part: Part::Bytes(part.to_vec()),
        end,
        peak: 0,
        limit: None,
    }
}

/// Returns an empty sparse file outside of the catalog, whose map has so many blocks.
fn gnu_sparse(blocks: usize) -> Vec<u8> {
    let mut header = Header::new_gnu();
    header.set_path("etc/sparse").expect("a short path");
    header.set_entry_type(EntryType::GNUSparse);
    header.set_size(0);
    header
        .as_gnu_mut()
        .expect("a header of GNU")
        .set_is_extended(true);
    header.set_cksum();
    let mut file = header.as_bytes().to_vec();
    for at in 1..=blocks {
        let mut block = [0; 512];
        block[504] = u8::from(at < blocks);
        file.extend(block);
    }
    file
}
