use std::io::Read;

use layout::{Form, Hasher, Key, Sha256, Stored};

use crate::{
    error::{Corruption, Error},
    published::parse_snapshot,
};

/// Checks that an immutable object is what its key, and its snapshot where it is known, say that it is.
pub(crate) fn verify(key: &Key, bytes: &[u8], stored: Option<Stored>) -> Result<(), Error> {
    match key {
        Key::Shard(hash) | Key::All(_, hash, Form::Zstd) => decodes_to(key, zstd_reader(bytes), Some(*hash)),
        Key::All(_, hash, Form::Gzip) => decodes_to(key, Ok(flate2::bufread::GzDecoder::new(bytes)), Some(*hash)),
        Key::All(_, hash, Form::Identity) | Key::Blob(hash) => decodes_to(key, Ok(bytes), Some(*hash)),
        Key::Index(..) => decodes_to(key, zstd_reader(bytes), None),
        Key::Snapshot(..) => parse_snapshot(key, bytes).map(|_| ()),
        Key::Catalogs
        | Key::Current(_)
        | Key::Status(_)
        | Key::Layers(_)
        | Key::Notified(_)
        | Key::Intent(..)
        | Key::Sweep => Ok(()),
    }?;
    match stored {
        Some(stored) if matches!(key, Key::Index(..)) && Sha256::of(bytes) != stored.sha256 => {
            Err(Error::corrupt(key, Corruption::Hash))
        }
        // Other compressors make other bytes of the same content, under the same key.
        _ => Ok(()),
    }
}

fn decodes_to(key: &Key, reader: std::io::Result<impl Read>, expected: Option<Sha256>) -> Result<(), Error> {
    let unreadable = |source| Error::corrupt(key, Corruption::Coding(source));
    let mut reader = reader.map_err(unreadable)?;
    let mut hasher = Hasher::new();
    let mut chunk = vec![0; 64 << 10];
    loop {
        match reader.read(&mut chunk).map_err(unreadable)? {
            0 => break,
            length => hasher.update(&chunk[..length]),
        }
    }
    match expected {
        Some(expected) if expected != hasher.finish() => Err(Error::corrupt(key, Corruption::Hash)),
        _ => Ok(()),
    }
}

fn zstd_reader(bytes: &[u8]) -> std::io::Result<impl Read> {
    Ok(zstd::stream::read::Decoder::with_buffer(bytes)?.single_frame())
}
