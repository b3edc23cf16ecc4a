use std::io::{self, Read};

use layout::{Form, Hasher, Key, Sha256, Stored};

use crate::{
    error::{Corruption, Error},
    published::parse_snapshot,
};

/// Checks that an immutable object is what its key, and its snapshot where it is known, say that it is.
pub(crate) fn verify(key: &Key, bytes: &[u8], stored: Option<Stored>) -> Result<(), Error> {
    match key {
        Key::Shard(hash) | Key::All(_, hash, Form::Zstd) => decodes_to(key, zstd(bytes), Some(*hash)),
        Key::All(_, hash, Form::Gzip) => decodes_to(key, gzip(bytes), Some(*hash)),
        Key::All(_, hash, Form::Identity) | Key::Blob(hash) => decodes_to(key, Ok(Sha256::of(bytes)), Some(*hash)),
        Key::Index(..) => decodes_to(key, zstd(bytes), None),
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

fn decodes_to(key: &Key, content: io::Result<Sha256>, expected: Option<Sha256>) -> Result<(), Error> {
    let found = content.map_err(|source| Error::corrupt(key, Corruption::Coding(source)))?;
    match expected {
        Some(expected) if expected != found => Err(Error::corrupt(key, Corruption::Hash)),
        _ => Ok(()),
    }
}

/// One frame, and nothing after it: clients would take that for another one.
fn zstd(bytes: &[u8]) -> io::Result<Sha256> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes)?.single_frame();
    let hash = hash(&mut decoder)?;
    nothing_follows(decoder.finish()).map(|()| hash)
}

/// One member, likewise.
fn gzip(bytes: &[u8]) -> io::Result<Sha256> {
    let mut decoder = flate2::bufread::GzDecoder::new(bytes);
    let hash = hash(&mut decoder)?;
    nothing_follows(decoder.into_inner()).map(|()| hash)
}

fn nothing_follows(rest: &[u8]) -> io::Result<()> {
    match rest.is_empty() {
        true => Ok(()),
        false => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn hash(reader: &mut impl Read) -> io::Result<Sha256> {
    let mut hasher = Hasher::new();
    let mut chunk = vec![0; 64 << 10];
    loop {
        match reader.read(&mut chunk)? {
            0 => return Ok(hasher.finish()),
            length => hasher.update(&chunk[..length]),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const LINES: &[u8] = b"{\"schema\":\"olm.package\"}\n";

    /// A flipped bit in the header of a frame says that no checksum follows, and the checksum is left over.
    #[test]
    fn nothing_may_follow_what_was_compressed() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(LINES).unwrap();
        let forms = [
            (Form::Zstd, zstd::bulk::compress(LINES, 3).unwrap()),
            (Form::Gzip, gzip.finish().unwrap()),
        ];
        for (form, bytes) in forms {
            let key = Key::All("demo".parse().unwrap(), Sha256::of(LINES), form);
            verify(&key, &bytes, None).unwrap();
            assert!(verify(&key, &[&bytes[..], b"rest"].concat(), None).is_err(), "{form:?}");
        }
    }
}
