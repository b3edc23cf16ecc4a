use tar::{EntryType, Header};

use crate::{ROOT, folder};

/// Size of a tar block, in bytes.
const BLOCK: usize = 512;
/// Size of the name field of a header, in bytes. A longer name goes into a pax header before it
/// (POSIX.1-2001).
const NAME_FIELD: usize = 100;

/// The tar archive around the lines of all packages. It has none at first. For each package it
/// returns the bytes that go before the lines.
///
/// Every folder has an entry. Times, owners and groups are zero.
///
/// ```
/// use oci::Layer;
///
/// let mut layer = Layer::default();
/// let mut archive = layer.before("cache", 3);
/// archive.extend(b"{}\n");
/// archive.extend(layer.end());
/// assert_eq!(archive.len() % 512, 0);
/// ```
#[derive(Debug, Default)]
pub struct Layer {
    begun: bool,
    /// Size of the last file in bytes. The next call fills its last block.
    last: u64,
}

impl Layer {
    /// Returns the bytes before the lines of the next package, which have `size` bytes. The empty
    /// name is the global group.
    pub fn before(&mut self, package: &str, size: u64) -> Vec<u8> {
        let mut bytes = self.close();
        let folder = format!("{ROOT}/{}/", folder::name(package));
        append(&mut bytes, &folder, EntryType::Directory, 0);
        let file = format!("{folder}catalog.json");
        append(&mut bytes, &file, EntryType::Regular, size);
        self.last = size;
        bytes
    }

    /// Returns the bytes after the lines of the last package.
    pub fn end(mut self) -> Vec<u8> {
        let mut bytes = self.close();
        // Two blocks of zeros end an archive (POSIX.1-2001).
        bytes.resize(bytes.len() + 2 * BLOCK, 0);
        bytes
    }

    fn close(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; padding(self.last)];
        self.last = 0;
        if !self.begun {
            self.begun = true;
            append(&mut bytes, &format!("{ROOT}/"), EntryType::Directory, 0);
        }
        bytes
    }
}

fn padding(size: u64) -> usize {
    (size.next_multiple_of(BLOCK as u64) - size) as usize
}

fn append(bytes: &mut Vec<u8>, path: &str, kind: EntryType, size: u64) {
    if path.len() > NAME_FIELD {
        let record = pax_record("path", path);
        header(bytes, "pax/path", EntryType::XHeader, record.len() as u64);
        bytes.extend_from_slice(record.as_bytes());
        bytes.resize(bytes.len() + padding(record.len() as u64), 0);
    }
    header(bytes, path, kind, size);
}

fn header(bytes: &mut Vec<u8>, path: &str, kind: EntryType, size: u64) {
    let mut header = Header::new_ustar();
    let name = &path.as_bytes()[..path.len().min(NAME_FIELD)];
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.set_entry_type(kind);
    let mode = match kind {
        EntryType::Directory => 0o755,
        _ => 0o644,
    };
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    // Equal content must give equal bytes, and with them an equal digest, on every machine and day.
    header.set_mtime(0);
    header.set_size(size);
    header.set_cksum();
    bytes.extend_from_slice(header.as_bytes());
}

/// Returns a pax record. It starts with its own length, which includes the digits of the length.
fn pax_record(key: &str, value: &str) -> String {
    let rest = key.len() + value.len() + 3;
    let mut length = rest;
    // The length counts its own digits, so it is found by repetition.
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    format!("{length} {key}={value}\n")
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use proptest::prelude::*;

    use super::*;

    fn archive(packages: &[(&str, &[u8])]) -> Vec<u8> {
        let mut layer = Layer::default();
        let mut bytes = Vec::new();
        for (name, lines) in packages {
            bytes.extend(layer.before(name, lines.len() as u64));
            bytes.extend_from_slice(lines);
        }
        bytes.extend(layer.end());
        bytes
    }

    /// Returns path, kind, mode and content of every entry. Checks that times and owners are zero.
    fn entries(bytes: &[u8]) -> Vec<(String, EntryType, u32, Vec<u8>)> {
        let mut archive = tar::Archive::new(bytes);
        let entries = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let header = entry.header();
            let (kind, mode) = (header.entry_type(), header.mode().unwrap());
            let anonymous = (
                header.mtime().unwrap(),
                header.uid().unwrap(),
                header.gid().unwrap(),
            );
            assert_eq!(anonymous, (0, 0, 0));
            let path = String::from_utf8(entry.path_bytes().into_owned()).unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            (path, kind, mode, content)
        });
        entries.collect()
    }

    fn folder(path: &str) -> (String, EntryType, u32, Vec<u8>) {
        (path.to_owned(), EntryType::Directory, 0o755, Vec::new())
    }

    fn file(path: &str, content: &[u8]) -> (String, EntryType, u32, Vec<u8>) {
        (path.to_owned(), EntryType::Regular, 0o644, content.to_vec())
    }

    #[test]
    fn archive_has_folder_and_file_for_each_package() {
        let bytes = archive(&[("", b"{}\n"), ("a", b"one\n"), ("b/c", &[b'x'; 512])]);
        assert_eq!(
            entries(&bytes),
            [
                folder("configs/"),
                folder("configs/%/"),
                file("configs/%/catalog.json", b"{}\n"),
                folder("configs/a/"),
                file("configs/a/catalog.json", b"one\n"),
                folder("configs/b%2Fc/"),
                file("configs/b%2Fc/catalog.json", &[b'x'; 512]),
            ]
        );
        // Seven headers, three files of one block each, and the end.
        assert_eq!(bytes.len(), (7 + 3 + 2) * BLOCK);
        assert_eq!(entries(&archive(&[])), [folder("configs/")]);
    }

    #[test]
    fn archive_stores_long_names_in_pax_headers() {
        for length in [78, 79, 80, 81, 99, 100, 101, 155, 160, 161, 255, 300] {
            let package = "p".repeat(length);
            let bytes = archive(&[(&package, b"1\n"), ("q", b"2\n")]);
            let path = format!("configs/{}/", folder::name(&package));
            let found = entries(&bytes);
            assert_eq!(found[1], folder(&path), "{length}");
            assert_eq!(
                found[2],
                file(&format!("{path}catalog.json"), b"1\n"),
                "{length}"
            );
            assert_eq!(found[4].3, b"2\n");
        }
    }

    #[test]
    fn header_of_nine_gigabytes_has_right_size() {
        let mut layer = Layer::default();
        let bytes = layer.before("a", 9 << 30);
        let header = Header::from_byte_slice(&bytes[bytes.len() - BLOCK..]);
        assert_eq!(header.entry_size().unwrap(), 9 << 30);
        assert_eq!(layer.end().len(), 2 * BLOCK);
    }

    proptest! {
        #[test]
        fn archive_of_any_packages_reads_back(packages in prop::collection::btree_map("\\PC{0,120}", prop::collection::vec(any::<u8>(), 0..1100), 0..8)) {
            let packages: Vec<(&str, &[u8])> = packages.iter().map(|(name, lines)| (name.as_str(), lines.as_slice())).collect();
            let bytes = archive(&packages);
            prop_assert_eq!(bytes.len() % BLOCK, 0);
            let found: Vec<Vec<u8>> = entries(&bytes).into_iter().filter(|entry| entry.1.is_file()).map(|entry| entry.3).collect();
            let lines: Vec<Vec<u8>> = packages.iter().map(|(_, lines)| lines.to_vec()).collect();
            prop_assert_eq!(found, lines);
            prop_assert_eq!(archive(&packages), bytes);
        }
    }
}
