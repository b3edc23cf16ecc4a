//! Builds one layer: tar entries, well-formed or not.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{EntryType, Header};

/// Builder of a layer. Entries keep the order in which they are added. The default compression is
/// gzip.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Layer {
    tar: Vec<u8>,
    packing: Packing,
}

#[derive(Clone, Debug, Default)]
enum Packing {
    Plain,
    #[default]
    Gzip,
    Zstd,
    /// Exactly these bytes; the entries are ignored.
    Raw(Bytes),
}

/// Layer as a registry stores it.
pub(crate) struct Packed {
    pub(crate) bytes: Bytes,
    pub(crate) diff_id: String,
    pub(crate) suffix: &'static str,
}

impl Layer {
    /// Creates a layer without entries, compressed with gzip.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a regular file with mode 0644.
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.entry(EntryType::Regular, path.as_bytes(), b"", content.as_ref())
    }

    /// Adds a directory; a slash is appended to its path.
    pub fn dir(self, path: &str) -> Self {
        self.entry(
            EntryType::Directory,
            format!("{path}/").as_bytes(),
            b"",
            b"",
        )
    }

    /// Adds a symlink with any target.
    pub fn symlink(self, path: &str, target: &str) -> Self {
        self.entry(EntryType::Symlink, path.as_bytes(), target.as_bytes(), b"")
    }

    /// Adds a hard link. Its target is relative to the root of the image.
    pub fn hardlink(self, path: &str, target: &str) -> Self {
        self.entry(EntryType::Link, path.as_bytes(), target.as_bytes(), b"")
    }

    /// Adds a whiteout, which removes `path` of lower layers.
    pub fn whiteout(self, path: &str) -> Self {
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        let slash = if dir.is_empty() { "" } else { "/" };
        self.file(&format!("{dir}{slash}.wh.{name}"), "")
    }

    /// Adds an opaque whiteout, which empties the directory `path` of lower layers.
    pub fn opaque(self, path: &str) -> Self {
        self.file(&format!("{path}/.wh..wh..opq"), "")
    }

    /// Adds an entry of any kind. A name of more than 100 bytes gets a GNU long name entry.
    pub fn entry(mut self, kind: EntryType, path: &[u8], target: &[u8], content: &[u8]) -> Self {
        self.long(EntryType::GNULongName, path);
        self.long(EntryType::GNULongLink, target);
        let mut header = header(kind, path, target, content.len());
        header.set_mode(0o644);
        self.append(header, content);
        self
    }

    /// Adds the text of PAX records, well-formed or not, for the next entry or for all. A record
    /// begins with its own length.
    pub fn pax_text(self, kind: EntryType, text: &[u8]) -> Self {
        self.entry(kind, b"PaxHeaders/x", b"", text)
    }

    fn long(&mut self, kind: EntryType, text: &[u8]) {
        if text.len() > 100 {
            let header = header(kind, b"././@LongLink", b"", text.len() + 1);
            self.append(header, &[text, b"\0"].concat());
        }
    }

    fn append(&mut self, mut header: Header, content: &[u8]) {
        header.set_cksum();
        self.tar.extend_from_slice(header.as_bytes());
        self.tar.extend_from_slice(content);
        self.tar.resize(self.tar.len().next_multiple_of(512), 0);
    }

    /// Stores the layer as a plain tar archive.
    pub fn plain(mut self) -> Self {
        self.packing = Packing::Plain;
        self
    }

    /// Compresses the layer with zstd instead of gzip.
    pub fn zstd(mut self) -> Self {
        self.packing = Packing::Zstd;
        self
    }

    /// Stores exactly these bytes in place of the archive.
    pub fn raw(mut self, bytes: impl Into<Bytes>) -> Self {
        self.packing = Packing::Raw(bytes.into());
        self
    }

    /// Returns the tar archive with its end.
    pub fn tar(&self) -> Vec<u8> {
        [self.tar.as_slice(), &[0; 1024]].concat()
    }

    /// Returns the archive as it is stored, compressed.
    pub fn archive(&self) -> Bytes {
        self.pack().bytes
    }

    pub(crate) fn pack(&self) -> Packed {
        let tar = self.tar();
        let diff_id = super::digest(&tar);
        let (bytes, suffix) = match &self.packing {
            Packing::Plain => (tar.into(), ""),
            Packing::Gzip => (gzip(&tar).into(), "+gzip"),
            Packing::Zstd => (zstd(&tar).into(), "+zstd"),
            Packing::Raw(bytes) => (bytes.clone(), "+gzip"),
        };
        Packed {
            bytes,
            diff_id,
            suffix,
        }
    }
}

/// Compresses bytes as one gzip member.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory does not fail");
    encoder.finish().expect("memory does not fail")
}

/// Compresses bytes as one zstd frame.
pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).expect("memory does not fail")
}

fn header(kind: EntryType, path: &[u8], target: &[u8], size: usize) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size as u64);
    let gnu = header.as_gnu_mut().expect("the header is a GNU one");
    fill(&mut gnu.name, path);
    fill(&mut gnu.linkname, target);
    header
}

fn fill(field: &mut [u8], text: &[u8]) {
    let count = field.len().min(text.len());
    field[..count].copy_from_slice(&text[..count]);
}
