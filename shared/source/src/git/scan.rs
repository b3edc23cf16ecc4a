//! The first pass over a pack: every entry is inflated and counted, and every whole object is hashed.
//!
//! ```text
//! "PACK" version count | entry ... entry | SHA-1 of all bytes before
//!                        entry = kind and size, [offset or name of the base], zlib of the content or of a delta
//! delta = size of the base, size of the result, instructions
//! ```
//!
//! Nothing is allocated by a size that the pack declares, and no delta is applied.

use std::collections::HashMap;
use std::io::Read;

use flate2::bufread::ZlibDecoder;
use gix_hash::{Hasher, Kind as HashKind, ObjectId};
use gix_object::Kind;
use gix_pack::data::entry::Header;
use gix_pack::data::{Entry, File, header};
use oci::{Budget, ImageLimits, LimitExceeded};

use super::error::{GitFault, ReadStopped};
use super::pack::MAX_DELTA_BYTES;

/// Size of the buffer that entries are inflated into.
const BUFFER_BYTES: usize = 32 * 1024;

/// Maximum size of the two sizes in front of a delta: seven bits of 64 in each byte, twice.
const DELTA_SIZES_BYTES: usize = 20;

/// An entry of a pack.
pub(super) struct PackEntry {
    pub(super) offset: u64,
    /// Size of the object, in bytes; of the result, if the entry is a delta.
    pub(super) size: u64,
    /// Name of the object. `None` until its delta was applied.
    pub(super) name: Option<ObjectId>,
    /// Number of deltas between the entry and a whole object.
    pub(super) depth: u32,
    /// Size of the largest object that is rebuilt on the way to this one.
    pub(super) largest: u64,
}

/// Base of a delta.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum DeltaBase {
    Offset(u64),
    Name(ObjectId),
}

/// The entries of a pack, and the deltas that wait for each base.
#[derive(Default)]
pub(super) struct PackScan {
    pub(super) entries: Vec<PackEntry>,
    pub(super) waiting: HashMap<DeltaBase, Vec<usize>>,
    inflated: u64,
}

impl PackScan {
    /// Reads the whole pack.
    pub(super) fn of(file: &File, limits: &ImageLimits) -> Result<Self, ReadStopped> {
        let count = u64::from(file.num_objects());
        if count > limits.entries {
            return Err(exceeded("entries", limits.entries, "the objects of its pack"));
        }
        check_trailer(file)?;
        let budget = Budget::new(limits);
        let (mut scan, mut offset) = (Self::default(), header::SIZE as u64);
        for _ in 0..count {
            offset = scan.entry(file, offset, limits, &budget)?;
        }
        if offset != file.pack_end() as u64 {
            return Err(GitFault::Pack("bytes follow its last object").into());
        }
        Ok(scan)
    }

    /// Reads the entry at `offset`. Returns the offset of the next one.
    fn entry(&mut self, file: &File, offset: u64, limits: &ImageLimits, budget: &Budget) -> Result<u64, ReadStopped> {
        let entry = Entry::from_bytes(rest(file, offset)?, offset, HashKind::Sha1).map_err(malformed)?;
        let packed = rest(file, entry.data_offset)?;
        let size = entry.decompressed_size;
        self.count(size, file, limits, budget)?;
        let base = match entry.header {
            Header::Blob | Header::Tree | Header::Commit | Header::Tag => None,
            Header::OfsDelta { base_distance } => {
                let base = entry.checked_base_pack_offset(base_distance);
                Some(DeltaBase::Offset(
                    base.ok_or(GitFault::Pack("a delta has its base before the pack"))?,
                ))
            }
            Header::RefDelta { base_id } => Some(DeltaBase::Name(base_id)),
        };
        let (name, size, length) = match (base, entry.header.as_kind()) {
            (None, Some(kind)) => {
                let (name, length) = hash_object(kind, packed, size)?;
                (Some(name), size, length)
            }
            (base, _) => {
                let (result, length) = delta_result(packed, size)?;
                self.count(result, file, limits, budget)?;
                if size.max(result) > MAX_DELTA_BYTES {
                    return Err(GitFault::LargeDelta(result).into());
                }
                self.waiting
                    .entry(base.ok_or(GitFault::Pack("an entry has no kind"))?)
                    .or_default()
                    .push(self.entries.len());
                (None, result, length)
            }
        };
        self.entries.push(PackEntry {
            offset,
            size,
            name,
            depth: 0,
            largest: size,
        });
        Ok(entry.data_offset + length)
    }

    /// Counts declared bytes before they are inflated.
    fn count(&mut self, bytes: u64, file: &File, limits: &ImageLimits, budget: &Budget) -> Result<(), ReadStopped> {
        let place = || "the objects of its pack".to_owned();
        budget.check_file("in its pack", bytes)?;
        budget.count_bytes(bytes, place)?;
        self.inflated = self.inflated.saturating_add(bytes);
        if self.inflated > limits.decompressed_of(file.data_len() as u64) {
            return Err(exceeded("ratio", limits.ratio, "its pack"));
        }
        Ok(())
    }
}

/// Returns the bytes of the entries from `offset` on. There is always at least one.
pub(super) fn rest(file: &File, offset: u64) -> Result<&[u8], GitFault> {
    let rest = file.entry_slice(offset..file.pack_end() as u64);
    let rest = rest.filter(|bytes| !bytes.is_empty());
    rest.ok_or(GitFault::Pack("it has fewer objects than it declares"))
}

/// Starts the hash of an object, which covers its kind and size too.
pub(super) fn object_hasher(kind: Kind, size: u64) -> Hasher {
    // Detects the known attacks on SHA-1, as git does.
    let mut hasher = gix_hash::hasher(HashKind::Sha1);
    hasher.update(format!("{kind} {size}\0").as_bytes());
    hasher
}

pub(super) fn malformed(error: impl std::fmt::Display) -> GitFault {
    GitFault::Object(oci::shown(error.to_string().as_bytes()))
}

fn check_trailer(file: &File) -> Result<(), GitFault> {
    let end = file.pack_end() as u64;
    let (content, trailer) = (file.entry_slice(0..end), file.entry_slice(end..file.data_len() as u64));
    let mut hasher = gix_hash::hasher(HashKind::Sha1);
    hasher.update(content.unwrap_or_default());
    if hasher.try_finalize().map_err(malformed)?.as_slice() == trailer.unwrap_or_default() {
        Ok(())
    } else {
        Err(GitFault::Pack("its checksum is wrong"))
    }
}

fn hash_object(kind: Kind, packed: &[u8], size: u64) -> Result<(ObjectId, u64), GitFault> {
    let mut hasher = object_hasher(kind, size);
    let length = inflate(packed, size, |bytes| hasher.update(bytes))?;
    Ok((hasher.try_finalize().map_err(malformed)?, length))
}

/// Returns the size of a delta's result, and the length of the delta in the pack.
fn delta_result(packed: &[u8], size: u64) -> Result<(u64, u64), GitFault> {
    let mut start = Vec::with_capacity(DELTA_SIZES_BYTES);
    let length = inflate(packed, size, |bytes| {
        let missing = DELTA_SIZES_BYTES - start.len();
        start.extend_from_slice(&bytes[..bytes.len().min(missing)]);
    })?;
    let mut sizes = start.as_slice();
    // The size of the base is checked when the delta is applied.
    let result = number(&mut sizes).and_then(|_| number(&mut sizes));
    Ok((result.ok_or(GitFault::Pack("a delta declares no size"))?, length))
}

/// Takes a number of seven bits in each byte, the lowest first.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = bytes.split_off_first()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Inflates exactly `size` bytes, piece by piece. Returns the length of the compressed bytes.
fn inflate(packed: &[u8], size: u64, mut take: impl FnMut(&[u8])) -> Result<u64, GitFault> {
    let mut decoder = ZlibDecoder::new(packed);
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut missing = size;
    loop {
        let count = decoder.read(&mut buffer).map_err(malformed)?;
        let other_size = GitFault::Pack("an object has another size than it declares");
        match missing.checked_sub(count as u64) {
            Some(0) if count == 0 => return Ok(decoder.total_in()),
            Some(left) if count > 0 => missing = left,
            _ => return Err(other_size),
        }
        take(&buffer[..count]);
    }
}

fn exceeded(name: &'static str, limit: u64, place: &str) -> ReadStopped {
    let place = place.to_owned();
    LimitExceeded { name, limit, place }.into()
}
