//! Compression: bombs, streams of several parts, streams that break off, and what follows them.

use catalog_mirror_publish::SourceLimits;
use source::LayerError;
use testkit::{Layer, gzip, zstd};

use super::row::{Row, good, in_layer, over, reads, refused};

pub(crate) fn rows() -> Vec<Row> {
    [bombs(), parts(), broken(), kinds()].into_iter().flatten().collect()
}

fn raw(bytes: impl Into<Vec<u8>>) -> Layer {
    Layer::new().raw(bytes.into())
}

/// Returns a layer of 4 MB of zeros outside of the catalog's folder, followed by the catalog.
fn zeros() -> Layer {
    Layer::new()
        .file("etc/zeros", vec![0; 4 << 20])
        .bytes(&good().open().tar())
}

fn small(limits: &mut SourceLimits) {
    limits.image.decompressed_bytes = 1 << 20;
}

/// The bombs are packed in a hurry, to half of what they could be.
fn dense(limits: &mut SourceLimits) {
    limits.image.ratio = 50;
    limits.image.ratio_floor_bytes = 1 << 20;
}

fn bombs() -> Vec<Row> {
    let after_end = [good().tar(), zeros().tar()].concat();
    let in_catalog = || Layer::new().file("configs/zeros", vec![b' '; 4 << 20]);
    vec![
        refused("gzip, too much", zeros(), over!("decompressedBytes")).with(small),
        refused("zstd, too much", zeros().zstd(), over!("decompressedBytes")).with(small),
        refused("gzip, too dense", zeros(), over!("ratio")).with(dense),
        refused("zstd, too dense", zeros().zstd(), over!("ratio")).with(dense),
        refused(
            "not packed at all, too much",
            zeros().plain(),
            over!("decompressedBytes"),
        )
        .with(small),
        refused("a file of the catalog", in_catalog(), over!("ratio")).with(dense),
        refused("a large file of the catalog", in_catalog(), over!("fileBytes"))
            .with(|limits| limits.image.file_bytes = 1 << 20),
        reads("many members, each small", raw(members(&zeros().tar())), "good").with(|limits| {
            limits.image.ratio_floor_bytes = 8 << 20;
        }),
        refused(
            "many members, each small, in all too dense",
            raw(members(&zeros().tar())),
            over!("ratio"),
        )
        .with(dense),
        reads("after the end of the archive", raw(gzip(&after_end)), "good").with(small),
        refused("a window of 2 GiB", raw(window(31)), in_layer!(LayerError::Format(_))),
    ]
}

fn members(tar: &[u8]) -> Vec<u8> {
    tar.chunks(1 << 20).flat_map(gzip).collect()
}

/// A zstd frame that asks for a window of so many bits; RFC 8878, section 3.1.1.
fn window(bits: u8) -> Vec<u8> {
    let descriptor = (bits - 10) << 3;
    [&[0x28, 0xb5, 0x2f, 0xfd, 0, descriptor][..], &[1, 0, 0]].concat()
}

fn parts() -> Vec<Row> {
    let tar = good().tar();
    let (head, tail) = tar.split_at(700);
    let skippable = [0x5e, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    vec![
        reads("two gzip members", raw([gzip(head), gzip(tail)].concat()), "good"),
        reads(
            "an empty member between",
            raw([gzip(head), gzip(b""), gzip(tail)].concat()),
            "good",
        ),
        reads("two zstd frames", raw([zstd(head), zstd(tail)].concat()), "good"),
        reads(
            "skippable zstd frames",
            raw([&skippable, &zstd(head)[..], &skippable, &zstd(tail)].concat()),
            "good",
        ),
        refused(
            "gzip, then zstd",
            raw([gzip(head), zstd(tail)].concat()),
            in_layer!(LayerError::Format(_) | LayerError::Content { .. }),
        ),
        refused(
            "gzip in gzip",
            raw(gzip(&gzip(&tar))),
            in_layer!(LayerError::Tar { .. }),
        ),
        refused(
            "zstd in gzip",
            raw(gzip(&zstd(&tar))),
            in_layer!(LayerError::Tar { .. }),
        ),
    ]
}

fn broken() -> Vec<Row> {
    let cut = |mut bytes: Vec<u8>, left: usize| {
        bytes.truncate(left);
        raw(bytes)
    };
    let flipped = |mut bytes: Vec<u8>, at: usize| {
        bytes[at] ^= 0xff;
        raw(bytes)
    };
    // Of different bytes, so that it is not packed into nothing.
    let noise: Vec<u8> = (0u32..5000)
        .flat_map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    let large = || {
        Layer::new()
            .file("configs/good.yaml", "")
            .file("etc/noise", &noise)
            .tar()
    };
    let wrong_checksum = |tar: Vec<u8>| {
        let bytes = gzip(&tar);
        let at = bytes.len() - 8;
        flipped(bytes, at)
    };
    let with = |bytes: Vec<u8>, more: &[u8]| raw([bytes, more.to_vec()].concat());
    vec![
        refused(
            "gzip cut in its header",
            cut(gzip(&large()), 5),
            in_layer!(LayerError::Format(_)),
        ),
        refused(
            "gzip cut in the middle",
            cut(gzip(&large()), 9000),
            in_layer!(LayerError::Format(_)),
        ),
        refused(
            "zstd cut in its header",
            cut(zstd(&large()), 5),
            in_layer!(LayerError::Format(_)),
        ),
        refused(
            "zstd cut in the middle",
            cut(zstd(&large()), 9000),
            in_layer!(LayerError::Format(_)),
        ),
        refused(
            "gzip with flipped bits",
            flipped(gzip(&large()), 20),
            in_layer!(LayerError::Format(_) | LayerError::Tar { .. } | LayerError::Content { .. }),
        ),
        refused(
            "zstd with flipped bits",
            flipped(zstd(&large()), 20),
            in_layer!(LayerError::Format(_) | LayerError::Tar { .. } | LayerError::Content { .. }),
        ),
        // catalogd reads such a layer too. The digest covers every stored byte, so the checksum proves nothing more.
        reads(
            "gzip with a wrong checksum, after the end",
            wrong_checksum(good().tar()),
            "good",
        ),
        refused(
            "gzip with a wrong checksum, in the archive",
            wrong_checksum(good().open().tar()),
            in_layer!(LayerError::Format(_)),
        ),
        reads("garbage after gzip", with(gzip(&good().tar()), b"garbage"), "good"),
        reads("garbage after zstd", with(zstd(&good().tar()), b"garbage"), "good"),
        refused(
            "garbage after gzip, in the archive",
            with(gzip(&good().open().tar()), b"garbage"),
            in_layer!(LayerError::Format(_)),
        ),
        refused(
            "garbage after zstd, in the archive",
            with(zstd(&good().open().tar()), b"garbage"),
            in_layer!(LayerError::Format(_)),
        ),
    ]
}

fn kinds() -> Vec<Row> {
    let compression = in_layer!(LayerError::Compression(_));
    vec![
        refused("xz", raw(*b"\xfd7zXZ\0rest"), compression),
        refused("bzip2", raw(*b"BZh91AY"), compression),
        refused("text", raw(vec![b'x'; 600]), in_layer!(LayerError::Tar { .. })),
        refused("one byte", raw(*b"x"), in_layer!(LayerError::Tar { .. })),
        reads(
            "another type than declared",
            good().zstd().media_type("application/vnd.oci.image.layer.v1.tar+gzip"),
            "good",
        ),
    ]
}
