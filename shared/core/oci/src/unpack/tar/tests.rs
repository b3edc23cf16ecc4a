mod differential;

use super::{TarError, TarReader};

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
                let path = String::from_utf8_lossy(&member.path);
                found.push(format!("{path}:{}", member.size));
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
fn unread_content_is_skipped() {
    let file = |name: &str, size: usize| {
        [
            header(b'0', name, size, |_| {}),
            vec![b'x'; size.next_multiple_of(512)],
        ]
        .concat()
    };
    let archive = [file("a", 0), file("b", 1), file("c", 512), file("d", 513)].concat();
    assert_eq!(list(&archive), ["a:0", "b:1", "c:512", "d:513"]);
    // The last block need not be padded.
    assert_eq!(list(&archive[..archive.len() - 511]).len(), 4);
    let cut = list(&archive[..archive.len() - 512]);
    assert_eq!(cut[3..], ["d:513", "the archive ends inside an entry"]);
}

#[test]
fn sparse_map_is_bounded() {
    let gnu = |block: &mut [u8; 512]| {
        block[257..265].copy_from_slice(b"ustar  \0");
        block[482] = 1;
    };
    let mut endless = header(b'S', "x", 0, gnu);
    endless.resize(512 * 3000, 1);
    let read = TarReader::new(&endless[..], 1 << 20).next().map(drop);
    assert!(matches!(read, Err(TarError::HeaderBytes)));
}

#[test]
fn path_of_star_header_ends_before_its_times() {
    let star = header(b'0', "x", 0, |block| {
        block[345..476].fill(b'p');
        block[476..488].copy_from_slice(b"00000000000\0");
        block[508..512].copy_from_slice(b"tar\0");
    });
    assert_eq!(list(&star), [format!("{}/x:0", "p".repeat(131))]);
}
