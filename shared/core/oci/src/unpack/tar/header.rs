//! The fields of one header block.

use std::ops::Range;

/// Size of a block, the unit of tar archives.
pub(super) const BLOCK_BYTES: usize = 512;

/// The error for a size below zero. Go ignores such a size where no content follows, and other
/// readers do not.
pub(super) const NEGATIVE: &str = "a size is negative";

/// `magic` of POSIX, which has a prefix for long paths. GNU has other fields there.
const USTAR: &[u8] = b"ustar\x00";

/// `magic` and `version` of GNU, which has times in place of the prefix.
const GNU: &[u8] = b"ustar  \x00";

/// Last bytes of a header of star, whose prefix is shorter.
const STAR: &[u8] = b"tar\x00";

/// Mode, owner, group and time of change: numbers that every format has.
const NUMBERS: [Range<usize>; 4] = [100..108, 108..116, 116..124, 136..148];
/// Numbers of a device, in all formats with a magic.
const DEVICE: [Range<usize>; 2] = [329..337, 337..345];
const STAR_TIMES: [Range<usize>; 2] = [476..488, 488..500];
const GNU_TIMES: [Range<usize>; 2] = [345..357, 357..369];

/// A header with a correct checksum and correct numbers.
pub(super) struct Header([u8; BLOCK_BYTES]);

impl Header {
    pub(super) fn new(block: [u8; BLOCK_BYTES]) -> Result<Self, &'static str> {
        let declared = octal(&block[148..156])?;
        // The field itself counts as spaces. Some old tools added up signed bytes.
        let mut summed = block;
        summed[148..156].fill(b' ');
        let unsigned: i64 = summed.iter().map(|byte| i64::from(*byte)).sum();
        let signed = summed.iter().map(|byte| i64::from(byte.cast_signed()));
        let signed: i64 = signed.sum();
        if declared != unsigned && declared != signed {
            return Err("the checksum of a header is wrong");
        }
        let header = Self(block);
        header.check_numbers().map(|()| header)
    }

    /// Refuses an archive for numbers that are not used here, because Go does: no cluster could
    /// read the image.
    fn check_numbers(&self) -> Result<(), &'static str> {
        self.check_fields(&NUMBERS)?;
        if self.is_posix() || self.is_gnu() {
            self.check_fields(&DEVICE)?;
        }
        if self.is_star() {
            self.check_fields(&STAR_TIMES)?;
        }
        // Go before 1.8 wrote a prefix there and reads it, later versions only if it is ASCII. So a
        // file would have two names.
        for at in GNU_TIMES {
            if self.is_gnu() && self.0[at.start] != 0 {
                self.check_fields(&[at])
                    .map_err(|_| "the times of a GNU header are malformed")?;
            }
        }
        Ok(())
    }

    /// Fails if one of the fields at these bytes is no number.
    fn check_fields(&self, fields: &[Range<usize>]) -> Result<(), &'static str> {
        for at in fields {
            number(&self.0[at.clone()])?;
        }
        Ok(())
    }

    fn is_posix(&self) -> bool {
        &self.0[257..263] == USTAR
    }

    fn is_star(&self) -> bool {
        self.is_posix() && &self.0[508..] == STAR
    }

    pub(super) fn is_gnu(&self) -> bool {
        &self.0[257..265] == GNU
    }

    pub(super) fn kind(&self) -> u8 {
        self.0[156]
    }

    /// Returns true for an extended header, which describes the next entry or all that follow.
    pub(super) fn describes_another(&self) -> bool {
        matches!(self.kind(), b'x' | b'g' | b'L' | b'K')
    }

    pub(super) fn size(&self) -> Result<u64, &'static str> {
        u64::try_from(number(&self.0[124..136])?).map_err(|_| NEGATIVE)
    }

    pub(super) fn path(&self) -> Vec<u8> {
        let name = text(&self.0[..100]);
        // GNU keeps times where POSIX has the prefix. Reading them as a path would let a time
        // choose the folder.
        let prefix = match (self.is_posix(), self.is_star()) {
            (false, _) => &[],
            (true, true) => text(&self.0[345..476]),
            (true, false) => text(&self.0[345..500]),
        };
        if prefix.is_empty() {
            name.to_owned()
        } else {
            [prefix, b"/", name].concat()
        }
    }

    pub(super) fn target(&self) -> Vec<u8> {
        text(&self.0[157..257]).to_owned()
    }

    /// Returns true if a GNU sparse map continues after this block.
    pub(super) fn has_more_sparse_map(&self) -> bool {
        self.0[482] != 0
    }
}

/// Returns true if a GNU sparse map continues after this block of the map.
pub(super) fn sparse_map_goes_on(block: &[u8; BLOCK_BYTES]) -> bool {
    block[504] != 0
}

/// Returns the text of a field, which ends at the first zero byte.
pub(super) fn text(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Reads octal digits or GNU's binary form.
///
/// Accepts exactly what Go's `archive/tar` accepts; otherwise an archive could hold other files
/// here than in a cluster.
fn number(field: &[u8]) -> Result<i64, &'static str> {
    if field[0] & 0x80 == 0 {
        octal(field)
    } else {
        binary(field).ok_or("a number of a header is out of range")
    }
}

/// Reads octal digits up to a zero byte, with spaces and zero bytes around. An empty field is 0.
fn octal(field: &[u8]) -> Result<i64, &'static str> {
    let digits = text(without_padding(field));
    let value = digits.iter().try_fold(0i64, |sum, digit| match digit {
        // Checked: a number that wraps would hide content from this reader that another one sees.
        b'0'..=b'7' => sum.checked_mul(8)?.checked_add(i64::from(digit - b'0')),
        _ => None,
    });
    value.ok_or("a number of a header is malformed")
}

fn without_padding(mut field: &[u8]) -> &[u8] {
    while let [b' ' | 0, rest @ ..] | [rest @ .., b' ' | 0] = field {
        field = rest;
    }
    field
}

/// Reads a big-endian number in two's complement. The highest bit only marks the form, the next one
/// is the sign.
fn binary(field: &[u8]) -> Option<i64> {
    let value = field
        .iter()
        .fold(0i128, |sum, byte| (sum << 8) | i128::from(*byte));
    let above_sign = i128::BITS - (u8::BITS * u32::try_from(field.len()).ok()? - 1);
    i64::try_from((value << above_sign) >> above_sign).ok()
}
