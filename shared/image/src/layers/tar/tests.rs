use super::{Archive, Flaw, kind};

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

/// Everything in the archive, with what ends it if that is not its end.
fn list(archive: &[u8]) -> Vec<String> {
    let mut archive = Archive::new(archive, 1 << 20);
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
            Err(Flaw::Tar(what)) => {
                found.push(what.to_owned());
                return found;
            }
            Err(flaw) => panic!("{flaw:?}"),
        }
    }
}

#[test]
fn names_have_a_prefix_where_the_format_has_one() {
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
    assert_eq!(list(&header(b'0', "x", 0, gnu)), ["0x>:0"]);
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
fn numbers_are_octal_or_binary() {
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
    for (head, tail) in [
        ([0x80, 0, 0, 1], 0),
        ([0x80, 0, 0, 0], 1 << 63),
        ([0xff; 4], u64::MAX),
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
fn a_checksum_may_be_of_signed_bytes() {
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
fn targets_are_those_of_links() {
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
fn contents_are_skipped_whether_they_were_read_or_not() {
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
