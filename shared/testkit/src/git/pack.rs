//! Packs of git, well-formed or not.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

const OFS_DELTA: u8 = 6;
const REF_DELTA: u8 = 7;

/// Kind of an object of git.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitKind {
    /// A commit.
    Commit = 1,
    /// A folder.
    Tree = 2,
    /// A file.
    Blob = 3,
    /// An annotated tag.
    Tag = 4,
}

/// Writes a pack, entry by entry.
#[derive(Clone, Debug, Default)]
pub struct PackBuilder {
    bytes: Vec<u8>,
    /// Offset of each entry, without the header of the pack.
    offsets: Vec<usize>,
    /// Number of objects that the header declares, if it is not the true one.
    declared: Option<u32>,
}

/// Instructions of a delta.
#[derive(Clone, Debug, Default)]
pub struct DeltaBuilder(Vec<u8>);

/// Returns the name of an object: 40 hex digits.
pub fn object_name(kind: GitKind, content: &[u8]) -> String {
    let kind = match kind {
        GitKind::Commit => "commit",
        GitKind::Tree => "tree",
        GitKind::Blob => "blob",
        GitKind::Tag => "tag",
    };
    let object = [format!("{kind} {}\0", content.len()).as_bytes(), content].concat();
    sha1(&object).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl PackBuilder {
    /// Adds a whole object.
    #[must_use]
    pub fn object(self, kind: GitKind, content: &[u8]) -> Self {
        self.entry(kind as u8, content.len() as u64, &[], &deflated(content))
    }

    /// Adds a whole object that declares another size.
    #[must_use]
    pub fn object_of_size(self, kind: GitKind, size: u64, content: &[u8]) -> Self {
        self.entry(kind as u8, size, &[], &deflated(content))
    }

    /// Adds an object whose compressed bytes are these.
    #[must_use]
    pub fn compressed(self, kind: GitKind, size: u64, bytes: &[u8]) -> Self {
        self.entry(kind as u8, size, &[], bytes)
    }

    /// Adds a delta whose base is the entry `base`, counted from zero.
    #[must_use]
    pub fn delta_of(self, base: usize, delta: &DeltaBuilder) -> Self {
        let distance = self.bytes.len() - self.offsets[base];
        self.delta_back(distance as u64, delta)
    }

    /// Adds a delta whose base is this many bytes before it.
    #[must_use]
    pub fn delta_back(self, distance: u64, delta: &DeltaBuilder) -> Self {
        let mut number = vec![(distance & 0x7f) as u8];
        let mut rest = distance >> 7;
        while rest > 0 {
            rest -= 1;
            number.insert(0, 0x80 | (rest & 0x7f) as u8);
            rest >>= 7;
        }
        self.entry(OFS_DELTA, delta.0.len() as u64, &number, &deflated(&delta.0))
    }

    /// Adds a delta whose base has this name.
    #[must_use]
    pub fn delta_of_name(self, base: &str, delta: &DeltaBuilder) -> Self {
        self.entry(REF_DELTA, delta.0.len() as u64, &hex_bytes(base), &deflated(&delta.0))
    }

    /// Adds bytes as they are.
    #[must_use]
    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.offsets.push(self.bytes.len());
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Declares this number of objects.
    #[must_use]
    pub fn declaring(mut self, count: u32) -> Self {
        self.declared = Some(count);
        self
    }

    /// Returns the pack with its checksum.
    pub fn finish(&self) -> Vec<u8> {
        let count = self.declared.unwrap_or(self.offsets.len() as u32);
        let mut pack = [b"PACK", &2_u32.to_be_bytes()[..], &count.to_be_bytes(), &self.bytes].concat();
        pack.extend(sha1(&pack));
        pack
    }

    fn entry(mut self, kind: u8, size: u64, base: &[u8], packed: &[u8]) -> Self {
        self.offsets.push(self.bytes.len());
        let mut byte = (kind << 4) | (size & 0x0f) as u8;
        let mut rest = size >> 4;
        while rest > 0 {
            self.bytes.push(byte | 0x80);
            byte = (rest & 0x7f) as u8;
            rest >>= 7;
        }
        self.bytes.push(byte);
        self.bytes.extend_from_slice(base);
        self.bytes.extend_from_slice(packed);
        self
    }
}

impl DeltaBuilder {
    /// Starts a delta that declares the sizes of its base and of its result.
    pub fn new(base: u64, result: u64) -> Self {
        let mut delta = Self::default();
        for size in [base, result] {
            let mut rest = size;
            while rest > 0x7f {
                delta.0.push(0x80 | (rest & 0x7f) as u8);
                rest >>= 7;
            }
            delta.0.push(rest as u8);
        }
        delta
    }

    /// Copies bytes of the base.
    #[must_use]
    pub fn copy(mut self, offset: u32, size: u32) -> Self {
        self.0.push(0xff);
        self.0.extend_from_slice(&offset.to_le_bytes());
        self.0.extend_from_slice(&size.to_le_bytes()[..3]);
        self
    }

    /// Inserts bytes, at most 127.
    #[must_use]
    pub fn insert(mut self, bytes: &[u8]) -> Self {
        self.0
            .push(u8::try_from(bytes.len()).expect("an instruction inserts at most 127 bytes"));
        self.0.extend_from_slice(bytes);
        self
    }
}

/// Compresses as git does.
pub(super) fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("a vector takes all bytes");
    encoder.finish().expect("a vector takes all bytes")
}

pub(super) fn hex_bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.map(|pair| byte(pair).expect("a name is hex")).collect()
}

fn sha1(bytes: &[u8]) -> Vec<u8> {
    digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes).as_ref().to_vec()
}
