//! The tar format (POSIX.1-2017, `pax`, "ustar Interchange Format") as archives use it: plain files and nothing else,
//! all with the same owner, mode and time, so that every byte of a volume follows from its manifest.

use std::io;

use tar::{EntryType, Header};

pub(super) const MANIFEST: &str = "manifest.json";
pub(super) const VOLUME: &str = "volume.json";
/// Headers have this size, and content is filled up to a multiple of it.
pub(super) const BLOCK: u64 = 512;
/// Two empty blocks.
pub(super) const END: u64 = 2 * BLOCK;

/// The header of an entry.
///
/// # Errors
/// For paths that do not fit: with the 73 characters of a content hash and its file, names of catalogs of up to 146.
pub(super) fn header(path: &str, size: u64) -> io::Result<Header> {
    let mut header = Header::new_ustar();
    header.set_path(path)?;
    header.set_entry_type(EntryType::Regular);
    header.set_size(size);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_cksum();
    Ok(header)
}

/// The bytes of an entry in a volume.
pub(super) const fn entry_size(size: u64) -> u64 {
    BLOCK + size.next_multiple_of(BLOCK)
}
