//! One layer: tar entries, well-formed or not.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{EntryType, Header};

/// A layer under construction. Entries keep the order they are added in.
#[derive(Clone, Debug, Default)]
pub struct Layer {
    tar: Vec<u8>,
    is_open: bool,
    packing: Packing,
    media_type: Option<String>,
}

#[derive(Clone, Debug, Default)]
enum Packing {
    Plain,
    #[default]
    Gzip,
    Zstd,
    /// These bytes, whatever the entries are.
    Raw(Bytes),
}

/// A layer as it is stored.
pub(crate) struct Packed {
    pub(crate) bytes: Bytes,
    pub(crate) diff_id: String,
    pub(crate) suffix: &'static str,
    pub(crate) media_type: Option<String>,
}

impl Layer {
    /// No entries yet; packed with gzip.
    pub fn new() -> Self {
        Self::default()
    }

    /// A regular file.
    #[must_use]
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.entry(EntryType::Regular, path.as_bytes(), b"", content.as_ref())
    }

    /// A directory.
    #[must_use]
    pub fn dir(self, path: &str) -> Self {
        self.entry(EntryType::Directory, format!("{path}/").as_bytes(), b"", b"")
    }

    /// A symlink with any target.
    #[must_use]
    pub fn symlink(self, path: &str, target: &str) -> Self {
        self.entry(EntryType::Symlink, path.as_bytes(), target.as_bytes(), b"")
    }

    /// A hard link; its target counts from the image's root.
    #[must_use]
    pub fn hardlink(self, path: &str, target: &str) -> Self {
        self.entry(EntryType::Link, path.as_bytes(), target.as_bytes(), b"")
    }

    /// Removes `path` of lower layers.
    #[must_use]
    pub fn whiteout(self, path: &str) -> Self {
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        let slash = if dir.is_empty() { "" } else { "/" };
        self.file(&format!("{dir}{slash}.wh.{name}"), "")
    }

    /// Empties the directory `path` of lower layers.
    #[must_use]
    pub fn opaque(self, path: &str) -> Self {
        self.file(&format!("{path}/.wh..wh..opq"), "")
    }

    /// Any entry at all. Names beyond 100 bytes go into GNU long name entries.
    #[must_use]
    pub fn entry(self, kind: EntryType, path: &[u8], target: &[u8], content: &[u8]) -> Self {
        self.changed((kind, path, target), content, |_| {})
    }

    /// An entry whose header block is changed before its checksum is made.
    #[must_use]
    pub fn changed(
        mut self,
        (kind, path, target): (EntryType, &[u8], &[u8]),
        content: &[u8],
        change: impl FnOnce(&mut [u8; 512]),
    ) -> Self {
        self.long(EntryType::GNULongName, path);
        self.long(EntryType::GNULongLink, target);
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        let gnu = header.as_gnu_mut().expect("the header is a GNU one");
        fill(&mut gnu.name, path);
        fill(&mut gnu.linkname, target);
        change(header.as_mut_bytes());
        self.append(header, content);
        self
    }

    /// PAX records for the next entry.
    #[must_use]
    pub fn pax(self, records: &[(&str, &[u8])]) -> Self {
        let text: Vec<u8> = records.iter().flat_map(|(key, value)| record(key, value)).collect();
        self.pax_text(EntryType::XHeader, &text)
    }

    /// PAX records as they stand, well-formed or not, for the next entry or for all.
    #[must_use]
    pub fn pax_text(self, kind: EntryType, text: &[u8]) -> Self {
        self.entry(kind, b"PaxHeaders/x", b"", text)
    }

    /// These bytes where the next header would begin.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.tar.extend_from_slice(bytes);
        self
    }

    /// Without the two blocks of zeros at the end.
    #[must_use]
    pub fn open(self) -> Self {
        Self { is_open: true, ..self }
    }

    fn long(&mut self, kind: EntryType, text: &[u8]) {
        if text.len() > 100 {
            let mut header = Header::new_gnu();
            header.set_entry_type(kind);
            header.set_size(text.len() as u64 + 1);
            fill(
                &mut header.as_gnu_mut().expect("the header is a GNU one").name,
                b"././@LongLink",
            );
            self.append(header, &[text, b"\0"].concat());
        }
    }

    fn append(&mut self, mut header: Header, content: &[u8]) {
        header.set_cksum();
        self.tar.extend_from_slice(header.as_bytes());
        self.tar.extend_from_slice(content);
        self.tar.resize(self.tar.len().next_multiple_of(512), 0);
    }

    /// Not compressed.
    #[must_use]
    pub fn plain(self) -> Self {
        Self {
            packing: Packing::Plain,
            ..self
        }
    }

    /// Compressed with zstd.
    #[must_use]
    pub fn zstd(self) -> Self {
        Self {
            packing: Packing::Zstd,
            ..self
        }
    }

    /// Stored as exactly these bytes.
    #[must_use]
    pub fn raw(self, bytes: impl Into<Bytes>) -> Self {
        Self {
            packing: Packing::Raw(bytes.into()),
            ..self
        }
    }

    /// Declared as this, true or not.
    #[must_use]
    pub fn media_type(self, media_type: &str) -> Self {
        Self {
            media_type: Some(media_type.to_owned()),
            ..self
        }
    }

    /// The tar archive, with its end.
    pub fn tar(&self) -> Vec<u8> {
        let end: &[u8] = if self.is_open { &[] } else { &[0; 1024] };
        [self.tar.as_slice(), end].concat()
    }

    pub(crate) fn pack(&self) -> Packed {
        let tar = self.tar();
        let diff_id = super::digest(&tar);
        let (bytes, suffix) = match &self.packing {
            Packing::Plain => (tar.into(), ""),
            Packing::Gzip => (gzip(&tar).into(), "gzip"),
            Packing::Zstd => (zstd(&tar).into(), "zstd"),
            Packing::Raw(bytes) => (bytes.clone(), "gzip"),
        };
        Packed {
            bytes,
            diff_id,
            suffix,
            media_type: self.media_type.clone(),
        }
    }
}

/// One gzip member.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory takes all");
    encoder.finish().expect("memory takes all")
}

/// One zstd frame.
pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).expect("memory takes all")
}

/// A PAX record, whose length counts its own digits.
fn record(key: &str, value: &[u8]) -> Vec<u8> {
    let rest = [b" ", key.as_bytes(), b"=", value, b"\n"].concat();
    let digits = |length: usize| length.to_string().len();
    let mut length = rest.len() + 1;
    while length != rest.len() + digits(length) {
        length += 1;
    }
    [length.to_string().as_bytes(), &rest].concat()
}

fn fill(field: &mut [u8], text: &[u8]) {
    let count = field.len().min(text.len());
    field[..count].copy_from_slice(&text[..count]);
}
