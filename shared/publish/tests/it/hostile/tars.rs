//! Archives that readers could take for different things, or that break off.

use source::LayerError;
use tar::EntryType;
use testkit::{Layer, TarEntry, gzip};

use super::row::{Row, Then, fbc, good, image, in_layer, layer, over, reads, refused};

pub(crate) fn rows() -> Vec<Row> {
    [smuggled(), pax(), extended(), sparse(), numbers(), ends()]
        .into_iter()
        .flatten()
        .collect()
}

/// An entry for the catalog as it stands in an archive.
fn entry(path: &str) -> Vec<u8> {
    layer(path, "evil").open().tar()
}

/// A layer where the size of an entry decides whether its content is taken for another entry.
fn sized(kind: EntryType, pax: &[u8], size: Option<usize>) -> Layer {
    let inner = entry("configs/evil.yaml");
    let layer = Layer::new().pax_text(EntryType::XHeader, pax);
    let entry = TarEntry {
        target: b"y",
        ..TarEntry::new(kind, b"etc/x")
    };
    let outer = layer.changed(&entry, |block| {
        if let Some(size) = size {
            block[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
        }
    });
    outer.bytes(&inner).file("configs/good.yaml", fbc("good"))
}

/// Every engine must agree on where an entry ends.
fn smuggled() -> Vec<Row> {
    let hidden = b"17 comment=a\nb=c\n13 size=1024\n";
    let rows = [
        (
            "size in a PAX record",
            sized(EntryType::Regular, b"13 size=1024\n", None),
            "good",
        ),
        (
            "size after a record with a line feed",
            sized(EntryType::Regular, hidden, None),
            "good",
        ),
        (
            "the last size counts",
            sized(EntryType::Regular, b"9 size=0\n13 size=1024\n", None),
            "good",
        ),
        (
            "the size of the header",
            sized(EntryType::Regular, b"13 comment=a\n", Some(1024)),
            "good",
        ),
        (
            "a symlink has no content",
            sized(EntryType::Symlink, b"13 comment=a\n", Some(1024)),
            "evil good",
        ),
        (
            "a hard link has no content",
            sized(EntryType::Link, b"13 size=1024\n", Some(1024)),
            "evil good",
        ),
        (
            "a folder has no content",
            sized(EntryType::Directory, b"13 comment=a\n", Some(1024)),
            "evil good",
        ),
        (
            "a device has no content",
            sized(EntryType::Char, b"13 comment=a\n", Some(1024)),
            "evil good",
        ),
        (
            "an unknown type has one",
            sized(EntryType::new(b'Z'), b"13 comment=a\n", Some(1024)),
            "good",
        ),
    ];
    rows.map(|(trick, layer, packages)| reads(trick, layer, packages))
        .into()
}

fn pax() -> Vec<Row> {
    let tar = in_layer!(LayerError::Tar { .. });
    let with = |text: &[u8]| good().pax_text(EntryType::XHeader, text).file("etc/x", fbc("evil"));
    vec![
        reads("path", with(b"26 path=configs/evil.yaml\n"), "evil good"),
        reads(
            "the last path counts",
            with(b"26 path=configs/evil.yaml\n14 path=etc/x\n"),
            "good",
        ),
        reads("an empty path changes nothing", with(b"8 path=\n"), "good"),
        reads(
            "a path in the value of another record",
            with(b"46 comment=a\n26 path=configs/evil.yaml\nb=cdef\n"),
            "good",
        ),
        refused(
            "a path with a line feed",
            good().pax(&[("path", b"configs/\n")]).file("etc/x", ""),
            in_layer!(LayerError::Unprintable(_)),
        ),
        refused("a length that is too small", with(b"5 path=configs/evil.yaml\n"), tar),
        refused("a length that is too large", with(b"99 path=configs/evil.yaml\n"), tar),
        refused("a length of nothing", with(b"0 path=x\n"), tar),
        refused("a length beyond all", with(b"99999999999999999999999 path=x\n"), tar),
        refused("no length", with(b"path=x\n"), tar),
        refused("no key", with(b"6 =x1\n"), tar),
        refused("no value", with(b"8 patha\n"), tar),
        refused("no line feed", with(b"10 path=abc"), tar),
        refused("a negative size", with(b"11 size=-1\n"), tar),
        refused("a size that is no number", with(b"11 size=1k\n"), tar),
        refused("a size beyond all", with(b"28 size=9223372036854775808\n"), tar),
        refused("not text", with(b"\xff\xfe\x00"), tar),
    ]
}

fn extended() -> Vec<Row> {
    let tar = in_layer!(LayerError::Tar { .. });
    let long = |kind, text: &[u8]| good().entry(kind, b"././@LongLink", b"", text);
    let global = |text: &[u8]| {
        good()
            .pax_text(EntryType::XGlobalHeader, text)
            .file("etc/x", fbc("evil"))
    };
    let gnu_prefix = good().changed(&TarEntry::new(EntryType::Regular, b"evil.yaml"), |block| {
        block[257..265].copy_from_slice(b"ustar  \0");
        block[345..352].copy_from_slice(b"configs");
    });
    let huge = good().changed(&TarEntry::new(EntryType::XHeader, b"x"), |block| {
        block[124..136].copy_from_slice(b"77777777777\0");
    });
    vec![
        reads("global comment", global(b"13 comment=a\n"), "good"),
        refused("global path", global(b"26 path=configs/evil.yaml\n"), tar),
        refused("global size", global(b"9 size=9\n"), tar),
        refused(
            "records twice",
            good().pax(&[("path", b"a")]).pax(&[("path", b"b")]).file("x", ""),
            tar,
        ),
        refused(
            "a long name twice",
            long(EntryType::GNULongName, b"a")
                .entry(EntryType::GNULongName, b"", b"", b"b")
                .file("x", ""),
            tar,
        ),
        refused("records of nothing", good().pax(&[("path", b"configs/x")]), tar),
        refused(
            "a long name of nothing",
            long(EntryType::GNULongName, b"configs/x"),
            tar,
        ),
        reads(
            "a long name with a zero byte",
            long(EntryType::GNULongName, b"configs/evil.yaml\0/../x").file("x", fbc("evil")),
            "evil good",
        ),
        reads(
            "a long name over a PAX path",
            long(EntryType::GNULongName, b"etc/x")
                .pax(&[("path", b"configs/x")])
                .file("x", fbc("evil")),
            "good",
        ),
        reads(
            "an empty long name",
            long(EntryType::GNULongName, b"").file("configs/evil.yaml", fbc("evil")),
            "evil good",
        ),
        refused(
            "records before a global comment",
            good()
                .pax(&[("path", b"etc/x")])
                .pax_text(EntryType::XGlobalHeader, b"13 comment=a\n")
                .file("configs/evil.yaml", fbc("evil")),
            tar,
        ),
        refused("a prefix where GNU has times", gnu_prefix, tar),
        refused("records without end", huge, over!("headerBytes")),
        refused(
            "many global headers",
            (0..2000)
                .fold(Layer::new(), |layer, _| {
                    layer.pax_text(EntryType::XGlobalHeader, b"13 comment=a\n")
                })
                .file("x", ""),
            over!("headerBytes"),
        ),
    ]
}

fn sparse() -> Vec<Row> {
    let sparse = in_layer!(LayerError::Sparse(_));
    let gnu = |path: &[u8], more: bool| {
        let layer = Layer::new().changed(&TarEntry::new(EntryType::GNUSparse, path), |block| {
            block[386..398].copy_from_slice(b"00000000000\0");
            block[398..410].copy_from_slice(b"00000000000\0");
            block[482] = u8::from(more);
            block[483..495].copy_from_slice(b"77777777777\0");
        });
        // A map that goes on is no header, even if it looks like one.
        let map = entry("configs/evil.yaml");
        let map = if more { &map[..512] } else { &[] };
        layer.bytes(map).file("configs/good.yaml", fbc("good"))
    };
    let pax = |path: &str, name: &[u8]| {
        let records: &[(&str, &[u8])] = &[("GNU.sparse.major", b"1"), ("GNU.sparse.name", name)];
        good().pax(records).file(path, "0\n")
    };
    vec![
        refused("GNU", gnu(b"configs/holes", false), sparse),
        reads("GNU, elsewhere", gnu(b"etc/holes", false), "good"),
        reads("GNU with a long map, elsewhere", gnu(b"etc/holes", true), "good"),
        refused("PAX", pax("configs/GNUSparseFile.1/x", b"configs/x"), sparse),
        refused(
            "PAX, by its other name",
            pax("etc/GNUSparseFile.1/x", b"configs/x"),
            sparse,
        ),
        reads("PAX, elsewhere", pax("etc/GNUSparseFile.1/x", b"etc/x"), "good"),
    ]
}

/// A file whose header says something odd at this place.
fn odd(path: &[u8], at: usize, bytes: &'static [u8]) -> Layer {
    good().changed(&TarEntry::new(EntryType::Regular, path), |block| {
        block[at..at + bytes.len()].copy_from_slice(bytes);
    })
}

fn numbers() -> Vec<Row> {
    const SIZE: usize = 124;
    let tar = in_layer!(LayerError::Tar { .. });
    let checksum = || {
        let mut wrong = entry("configs/evil.yaml");
        wrong[0] ^= 1;
        good().bytes(&wrong)
    };
    vec![
        refused("a negative size", odd(b"x", SIZE, &[0xff; 12]), tar),
        refused(
            "a size beyond 64 bits",
            odd(b"x", SIZE, &[0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]),
            tar,
        ),
        refused(
            "a size beyond 63 bits",
            odd(b"x", SIZE, &[0x80, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0]),
            tar,
        ),
        refused("a size beyond the archive", odd(b"x", SIZE, b"77777777777\0"), tar),
        refused(
            "a size beyond the archive, in the catalog",
            odd(b"configs/x", SIZE, b"00000077777\0"),
            in_layer!(LayerError::Content { .. }),
        ),
        refused(
            "a size of 8 GiB, in the catalog",
            odd(b"configs/x", SIZE, b"77777777777\0"),
            over!("fileBytes"),
        ),
        refused(
            "a size that is no number",
            odd(b"x", SIZE, b"12345678\x0091"),
            in_layer!(LayerError::Tar { .. }),
        ),
        refused("a size with a sign", odd(b"x", SIZE, b"-0000000001\0"), tar),
        reads("no size", odd(b"x", SIZE, &[0; 12]), "good"),
        reads("a size of spaces", odd(b"x", SIZE, b"            "), "good"),
        reads("other numbers", odd(b"x", 100, &[0xff; 24]), "good"),
        refused("a malformed owner", odd(b"x", 108, b"x"), tar),
        refused("a wrong checksum", checksum(), tar),
        refused("no header at all", good().bytes(&[b'x'; 1024]), tar),
    ]
}

fn ends() -> Vec<Row> {
    let tar = in_layer!(LayerError::Tar { .. });
    let content = in_layer!(LayerError::Content { .. });
    let evil = || entry("configs/evil.yaml");
    let cut = |tar: Vec<u8>, at: usize| Layer::new().raw(gzip(&tar[..at]));
    let two = || good().file("etc/x", vec![b'x'; 2000]).open().tar();
    vec![
        reads("entries after the end", good().bytes(&[0; 1024]).bytes(&evil()), "good"),
        refused("entries after half an end", good().bytes(&[0; 512]).bytes(&evil()), tar),
        reads(
            "garbage after the end",
            good().bytes(&[0; 1024]).bytes(b"garbage"),
            "good",
        ),
        reads("no end", good().open(), "good"),
        reads("half an end", good().bytes(&[0; 512]).open(), "good"),
        reads("no padding", cut(good().tar(), 512 + fbc("good").len()), "good"),
        refused("cut inside a header", cut(two(), 1024 + 300), tar),
        refused("cut inside an entry", cut(two(), 2048), tar),
        refused("cut inside a file of the catalog", cut(good().tar(), 512 + 5), content),
        refused(
            "cut inside a long name",
            cut(good().file(&"n".repeat(600), "").tar(), 1024 + 600),
            tar,
        ),
        Row::new(
            "an empty layer",
            image([good(), Layer::new().raw(gzip(b""))]),
            Then::Reads("good"),
        ),
        Row::new(
            "a layer of no bytes",
            image([good(), Layer::new().raw(Vec::new())]),
            Then::Reads("good"),
        ),
        reads(
            "a folder of an old tar",
            good().changed(&TarEntry::new(EntryType::new(0), b"configs/d/"), |_| {}),
            "good",
        ),
    ]
}
