//! The fields of one header block.

use super::kind;

/// Archives are made of such blocks.
pub(super) const BLOCK_BYTES: usize = 512;

/// `magic` and `version` of POSIX, which has a prefix for long paths, and GNU, which has other fields there.
const USTAR: &[u8] = b"ustar\x00";

/// The last bytes of a header of star, whose prefix is shorter.
const STAR: &[u8] = b"tar\x00";

/// A header whose checksum is right.
pub(super) struct Header([u8; BLOCK_BYTES]);

impl Header {
    pub(super) fn new(block: [u8; BLOCK_BYTES]) -> Result<Self, &'static str> {
        let declared = number(&block[148..156])?;
        // The field itself counts as spaces. Some old tools added up signed bytes.
        let bytes = || block[..148].iter().chain(&[b' '; 8]).chain(&block[156..]);
        let unsigned: u64 = bytes().map(|byte| u64::from(*byte)).sum();
        let signed: i64 = bytes().map(|byte| i64::from(byte.cast_signed())).sum();
        if declared == unsigned || i64::try_from(declared) == Ok(signed) {
            Ok(Self(block))
        } else {
            Err("the checksum of a header is wrong")
        }
    }

    pub(super) fn kind(&self) -> u8 {
        self.0[156]
    }

    /// Whether it only carries what describes the next entry, or all that follow.
    pub(super) fn describes_another(&self) -> bool {
        matches!(self.kind(), b'x' | b'g' | b'L' | b'K')
    }

    pub(super) fn size(&self) -> Result<u64, &'static str> {
        number(&self.0[124..136])
    }

    pub(super) fn path(&self) -> Vec<u8> {
        let name = text(&self.0[..100]);
        let prefix = if &self.0[257..263] != USTAR {
            &[]
        } else if &self.0[508..] == STAR {
            text(&self.0[345..476])
        } else {
            text(&self.0[345..500])
        };
        if prefix.is_empty() {
            name.to_owned()
        } else {
            [prefix, b"/", name].concat()
        }
    }

    pub(super) fn target(&self) -> Vec<u8> {
        match self.kind() {
            kind::HARD_LINK | kind::SYMLINK => text(&self.0[157..257]).to_owned(),
            _ => Vec::new(),
        }
    }

    /// Whether the map of a GNU sparse file goes on after this block.
    pub(super) fn has_more_sparse_map(&self) -> bool {
        self.0[482] != 0
    }
}

/// The same, of a block of the map.
pub(super) fn sparse_map_goes_on(block: &[u8; BLOCK_BYTES]) -> bool {
    block[504] != 0
}

/// Text ends at the first zero.
pub(super) fn text(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Octal digits up to a zero byte, with spaces and zero bytes around and nothing being 0, or GNU's binary form for large
/// numbers: to the letter what Go's archive/tar takes, or an archive could hold other files here than in a cluster. But
/// nothing that is read here may be negative.
fn number(field: &[u8]) -> Result<u64, &'static str> {
    const WRONG: &str = "a number of a header is malformed";
    if field[0] & 0x80 != 0 {
        return binary(field).ok_or("a number of a header is out of range");
    }
    let digits = text(without_padding(field));
    digits.iter().try_fold(0u64, |sum, digit| match digit {
        b'0'..=b'7' => sum
            .checked_mul(8)
            .and_then(|sum| sum.checked_add(u64::from(digit - b'0')))
            .ok_or(WRONG),
        _ => Err(WRONG),
    })
}

fn without_padding(mut field: &[u8]) -> &[u8] {
    while let [b' ' | 0, rest @ ..] | [rest @ .., b' ' | 0] = field {
        field = rest;
    }
    field
}

/// Big endian in two's complement, the highest bit being the mark.
fn binary(field: &[u8]) -> Option<u64> {
    let (head, tail) = field.split_at(field.len().checked_sub(8)?);
    let is_small = match head {
        [] => false,
        [mark, zeros @ ..] => *mark == 0x80 && zeros.iter().all(|byte| *byte == 0),
    };
    let value = u64::from_be_bytes(tail.try_into().ok()?);
    (is_small && i64::try_from(value).is_ok()).then_some(value)
}
