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
    pub fn entry(mut self, kind: EntryType, path: &[u8], target: &[u8], content: &[u8]) -> Self {
        self.long(EntryType::GNULongName, path);
        self.long(EntryType::GNULongLink, target);
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        let gnu = header.as_gnu_mut().expect("the header is a GNU one");
        fill(&mut gnu.name, path);
        fill(&mut gnu.linkname, target);
        self.append(header, content);
        self
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
        [self.tar.as_slice(), &[0; 1024]].concat()
    }

    pub(crate) fn pack(&self) -> Packed {
        let tar = self.tar();
        let diff_id = super::digest(&tar);
        let (bytes, suffix) = match &self.packing {
            Packing::Plain => (tar.into(), ""),
            Packing::Gzip => (gzip(&tar).into(), "gzip"),
            Packing::Zstd => (
                zstd::encode_all(tar.as_slice(), 3).expect("memory takes all").into(),
                "zstd",
            ),
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

fn fill(field: &mut [u8], text: &[u8]) {
    let count = field.len().min(text.len());
    field[..count].copy_from_slice(&text[..count]);
}
