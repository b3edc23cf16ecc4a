mod differential;

use super::{TarError, TarReader, kind};

/// A header block with its checksum.
fn header(kind: u8, name: &str, size: usize, change: impl FnOnce(&mut [u8; 512])) -> Vec<u8> {
    let mut block = [0; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    block[156] = kind;
    block[257..265].copy_from_slice(b"ustar\x0000");
    change(&mut block);
    block[148..156].fill(b' ');
    let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block.to_vec()
}

/// Lists the entries of an archive, and the error at its end if there is one.
fn list(archive: &[u8]) -> Vec<String> {
    let mut archive = TarReader::new(archive, 1 << 20);
    let mut found = Vec::new();
    loop {
        match archive.next() {
            Ok(Some(member)) => {
                let (path, target) = (
                    String::from_utf8_lossy(&member.path),
                    String::from_utf8_lossy(&member.target),
                );
                found.push(format!("{}{path}>{target}:{}", char::from(member.kind), member.size));
            }
            Ok(None) => return found,
            Err(TarError::Malformed(what)) => {
                found.push(what.to_owned());
                return found;
            }
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[test]
fn path_uses_prefix_of_posix_headers_only() {
    let prefix = |block: &mut [u8; 512]| block[345..348].copy_from_slice(b"a/b");
    let old = |block: &mut [u8; 512]| {
        prefix(block);
        block[257..265].fill(0);
    };
    let gnu = |block: &mut [u8; 512]| {
        prefix(block);
        block[257..265].copy_from_slice(b"ustar  \0");
    };
    let star = |block: &mut [u8; 512]| {
        block[345..476].fill(b'p');
        block[476..488].copy_from_slice(b"00000000000\0");
        block[508..512].copy_from_slice(b"tar\0");
    };
    assert_eq!(list(&header(b'0', "x", 0, prefix)), ["0a/b/x>:0"]);
    assert_eq!(list(&header(b'0', "x", 0, old)), ["0x>:0"]);
    // Readers disagree about such a path.
    assert_eq!(
        list(&header(b'0', "x", 0, gnu)),
        ["the times of a GNU header are malformed"]
    );
    let times = |block: &mut [u8; 512]| {
        gnu(block);
        block[345..369].copy_from_slice(&b"00000000000\0".repeat(2));
    };
    assert_eq!(list(&header(b'0', "x", 0, times)), ["0x>:0"]);
    assert_eq!(
        list(&header(b'0', "x", 0, star)),
        [format!("0{}/x>:0", "p".repeat(131))]
    );
    assert_eq!(
        list(&header(b'0', &"n".repeat(100), 0, |_| {})),
        [format!("0{}>:0", "n".repeat(100))]
    );
}

#[test]
fn number_is_octal_or_binary() {
    let size = |field: &[u8; 12]| {
        let field = *field;
        list(&header(b'0', "x", 0, move |block| {
            block[124..136].copy_from_slice(&field);
        }))
        .remove(0)
    };
    for field in [
        b"00000000012\0",
        b" 12         ",
        b"12\0\0\0\0\0\0\0\0\0\0",
        b"\0\0 \x000000012\0",
        b"12\x00007\0\0\0\0\0\0",
    ] {
        assert_eq!(size(field), "0x>:10", "{field:?}");
    }
    for field in [b"            ", &[0; 12], b" \0 \0 \0 \0 \0 \0"] {
        assert_eq!(size(field), "0x>:0", "{field:?}");
    }
    for field in [
        b"00000000018\0",
        b"+0000000012\0",
        b"0x000000012\0",
        b"1 2         ",
        b"00000000012\r",
        b"\t0000000012\0",
        b"12 \x00000000 \0",
    ] {
        assert_eq!(size(field), "a number of a header is malformed", "{field:?}");
    }
    let large = |head: [u8; 4], tail: u64| [&head[..], &tail.to_be_bytes()].concat().try_into().unwrap();
    assert_eq!(size(&large([0x80, 0, 0, 0], 12)), "0x>:12");
    assert_eq!(size(&large([0xff; 4], u64::MAX)), "a size is negative");
    for (head, tail) in [
        ([0x80, 0, 0, 1], 0),
        ([0x80, 0, 0, 0], 1 << 63),
        ([0xbf; 4], u64::MAX),
        ([0x81, 0, 0, 0], 1),
    ] {
        assert_eq!(
            size(&large(head, tail)),
            "a number of a header is out of range",
            "{head:?}"
        );
    }
}

#[test]
fn checksum_of_signed_bytes_is_accepted() {
    let signed = |wrong: i64| {
        let mut block = header(b'0', "\u{e9}", 0, |_| {});
        block[148..156].fill(b' ');
        let sum: i64 = block.iter().map(|byte| i64::from(byte.cast_signed())).sum();
        block[148..156].copy_from_slice(format!("{:06o}\0 ", sum + wrong).as_bytes());
        list(&block)
    };
    assert_eq!(signed(0), ["0\u{e9}>:0"]);
    assert_eq!(signed(1), ["the checksum of a header is wrong"]);
}

#[test]
fn target_is_read_for_links_only() {
    let link = |block: &mut [u8; 512]| block[157..161].copy_from_slice(b"a/bc");
    assert_eq!(list(&header(kind::SYMLINK, "x", 7, link)), ["2x>a/bc:0"]);
    assert_eq!(list(&header(kind::HARD_LINK, "x", 7, link)), ["1x>a/bc:0"]);
    assert_eq!(list(&header(kind::FILE, "x", 0, link)), ["0x>:0"]);
    let long = [
        header(b'K', "l", 3, |_| {}),
        b"t/u".to_vec(),
        vec![0; 509],
        header(kind::SYMLINK, "x", 0, link),
    ]
    .concat();
    assert_eq!(list(&long), ["2x>t/u:0"]);
}

#[test]
fn unread_content_is_skipped() {
    let file =
        |name: &str, size: usize| [header(b'0', name, size, |_| {}), vec![b'x'; size.next_multiple_of(512)]].concat();
    let archive = [file("a", 0), file("b", 1), file("c", 512), file("d", 513)].concat();
    assert_eq!(list(&archive), ["0a>:0", "0b>:1", "0c>:512", "0d>:513"]);
    assert_eq!(
        list(&archive[..archive.len() - 511]).len(),
        4,
        "the last block need not be padded"
    );
    assert_eq!(
        list(&archive[..archive.len() - 512])[3..],
        ["0d>:513", "the archive ends inside an entry"]
    );
}

/// An extended header with its text.
fn extension(kind: u8, text: &[u8]) -> Vec<u8> {
    let mut blocks = header(kind, "extension", text.len(), |_| {});
    blocks.extend(text);
    blocks.resize(blocks.len().next_multiple_of(512), 0);
    blocks
}

#[test]
fn empty_long_name_is_ignored() {
    let file = header(kind::SYMLINK, "x", 0, |block| block[157] = b't');
    for empty in [&b""[..], b"\0", b"\0long"] {
        for kind in [b'L', b'K'] {
            assert_eq!(list(&[extension(kind, empty), file.clone()].concat()), ["2x>t:0"]);
        }
    }
    let described = [extension(b'L', b""), extension(b'x', b"9 path=p\n"), file].concat();
    assert_eq!(list(&described), ["2p>t:0"]);
}

#[test]
fn global_header_after_description_is_refused() {
    let (comment, file) = (extension(b'g', b"12 comment=\n"), header(b'0', "x", 0, |_| {}));
    for description in [
        extension(b'x', b"9 path=p\n"),
        extension(b'L', b"long"),
        extension(b'K', b"long"),
    ] {
        assert_eq!(
            list(&[description.clone(), comment.clone(), file.clone()].concat()),
            ["a global header stands between an entry and its description"]
        );
        assert_eq!(list(&[comment.clone(), description, file.clone()].concat()).len(), 1);
    }
}

#[test]
fn sparse_map_is_bounded_and_of_gnu() {
    let gnu = |block: &mut [u8; 512]| {
        block[257..265].copy_from_slice(b"ustar  \0");
        block[482] = 1;
    };
    assert_eq!(
        list(&header(b'S', "x", 0, |_| {})),
        ["a sparse file has no header of GNU"]
    );
    let mut endless = header(b'S', "x", 0, gnu);
    endless.resize(512 * 3000, 1);
    assert!(matches!(
        TarReader::new(&endless[..], 1 << 20).next(),
        Err(TarError::HeaderBytes)
    ));
}
