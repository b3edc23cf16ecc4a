//! Generated archives, read by this reader and by Go's `archive/tar`.
//!
//! An answer is `error` or a hash of the list of entries.

mod archives;

use std::io::Read;

use testkit::{Differential, REFUSED};

use super::super::{TarError, TarReader};
use crate::Digest;

/// A deviation: the only one for which Go refuses an archive that this reader reads.
const SPARSE: &str = "sparse";

const DIFFERENTIAL: Differential = Differential {
    make: archives::archive,
    compare,
    deviations: DEVIATIONS,
};

/// Errors for archives that Go reads, with the reason for each. No builder writes such archives.
const DEVIATIONS: &[(&str, &str)] = &[
    (
        SPARSE,
        "the map of a sparse file is not read, so a wrong one outside of the catalog is no error",
    ),
    (
        "an entry is described twice",
        "GNU tar and libarchive take another one of the two than Go",
    ),
    (
        "an entry is described and does not come",
        "it is cut off, and Go takes the cut for the end",
    ),
    (
        "a global header stands between an entry and its description",
        "Go forgets the description, and other readers apply it",
    ),
    (
        "a global header renames or resizes all entries",
        "Go ignores it, and other readers apply it",
    ),
    (
        "a size is negative",
        "Go ignores it for entries without content, and other readers do not",
    ),
    (
        "the times of a GNU header are malformed",
        "Go before 1.8, and later versions for a few texts, take them for a part of the path",
    ),
];

/// Returns the answer of this reader, and true if there were sparse files.
fn answer(archive: &[u8]) -> (Result<String, String>, bool) {
    let mut reader = TarReader::new(archive, 1 << 20);
    let (mut list, mut has_sparse) = (Vec::new(), false);
    loop {
        let entry = match reader.next() {
            Ok(Some(entry)) => entry,
            Ok(None) => return (Ok(Digest::of(&list).hex()[..8].to_owned()), has_sparse),
            Err(TarError::Malformed(what)) => return (Err(what.to_owned()), has_sparse),
            Err(error) => return (Err(format!("{error:?}")), has_sparse),
        };
        if entry.sparse.is_some() {
            has_sparse = true;
            list.extend(b"sparse\n");
            continue;
        }
        let mut content = Vec::new();
        if reader.read_to_end(&mut content).is_err() || content.len() as u64 != entry.size {
            return (Err("content".to_owned()), has_sparse);
        }
        list.push(entry.kind.as_byte());
        list.extend([&entry.path[..], b"\0", &entry.target, b"\0"].concat());
        list.extend(format!("{}\n", content.len()).into_bytes());
        list.extend(content);
    }
}

/// Compares the answer to an archive with Go's.
fn compare(archive: &[u8], go: &str) -> Result<Option<&'static str>, String> {
    let (ours, has_sparse) = answer(archive);
    match ours {
        Ok(ours) if ours == go => Ok(None),
        Ok(_) if go == REFUSED && has_sparse => Ok(Some(SPARSE)),
        Err(_) if go == REFUSED => Ok(None),
        Err(what) => match DEVIATIONS
            .iter()
            .find(|(on_purpose, _)| *on_purpose == what)
        {
            Some((on_purpose, _)) => Ok(Some(on_purpose)),
            None => Err(what),
        },
        Ok(ours) => Err(ours),
    }
}

#[test]
fn reader_agrees_with_recorded_answers_of_go() {
    DIFFERENTIAL.check_recorded(include_str!("answers"));
}

#[test]
#[ignore = "needs Go: run scripts/long-checks differential"]
fn reader_agrees_with_go() {
    DIFFERENTIAL.check_with_go();
}
