//! Edits of a valid archive, with all hashes made valid again.

use std::io::Read;

use arbitrary::Arbitrary;
use model::{Current, Document, FORMAT_VERSION, Key, Kind, Sha256, Snapshot, StoredDocument};
use serde_json::Value;
use sync::{Manifest, PackedCatalog, PackedObject};
use tar::Archive;
use testkit::Layer;

use crate::site::name;

/// Paths and contents of an archive, without its manifest.
pub(crate) type Entries = Vec<(String, Vec<u8>)>;

/// Maximum number of edits: more find no further faults.
const EDITS: usize = 8;

#[derive(Arbitrary, Debug)]
pub(crate) struct Forgery {
    /// True if the archive also holds objects that can be derived from the shards.
    pub(crate) whole: bool,
    /// True if the store has an older state.
    pub(crate) older: bool,
    /// True if every hash of changed bytes is updated wherever it is written.
    rehashed: bool,
    edits: Vec<Edit>,
    /// Changes of single bytes of the finished volume.
    flips: Vec<(u32, u8)>,
}

#[derive(Arbitrary, Debug)]
enum Edit {
    Drop(u8),
    Twice(u8),
    Swap(u8, u8),
    Rename(u8, u8),
    Call(u8, String),
    Replace(u8, Vec<u8>),
    Flip(u8, u16, u8),
    /// Replaces a value of a document: the document, the number of the value, the new value.
    Value(u8, u8, Leaf),
}

#[derive(Arbitrary, Debug)]
enum Leaf {
    Null,
    Number(u64),
    Text(String),
    HashOf(u8),
    List,
}

impl Forgery {
    /// Returns the forged volume.
    pub(crate) fn volume(&self, honest: Entries) -> Vec<u8> {
        let mut entries = honest;
        for edit in self.edits.iter().take(EDITS) {
            if !entries.is_empty() {
                edit.apply(&mut entries, self.rehashed);
            }
        }
        let mut volume = volume(&entries);
        for (at, bits) in self.flips.iter().take(EDITS) {
            let at = *at as usize % volume.len();
            volume[at] ^= bits;
        }
        volume
    }
}

impl Edit {
    fn apply(&self, entries: &mut Entries, rehashed: bool) {
        let count = entries.len();
        let at = |index: u8| usize::from(index) % count;
        match self {
            Self::Drop(index) => drop(entries.remove(at(*index))),
            Self::Twice(index) => entries.push(entries[at(*index)].clone()),
            Self::Swap(a, b) => entries.swap(at(*a), at(*b)),
            Self::Rename(a, b) => entries[at(*a)].0 = entries[at(*b)].0.clone(),
            Self::Call(index, name) => entries[at(*index)].0 = name.chars().take(90).collect(),
            Self::Replace(index, bytes) => change(entries, at(*index), bytes.clone(), rehashed),
            Self::Flip(index, offset, bits) => {
                let at = at(*index);
                let mut bytes = entries[at].1.clone();
                let length = bytes.len();
                if let Some(byte) = bytes.get_mut(usize::from(*offset) % length.max(1)) {
                    *byte ^= bits;
                }
                change(entries, at, bytes, rehashed);
            }
            Self::Value(index, nth, leaf) => {
                let documents = documents(entries);
                let at = documents.get(usize::from(*index) % documents.len().max(1));
                let Some(&at) = at else { return };
                let Some(mut document) =
                    text(&entries[at]).and_then(|text| serde_json::from_str(&text).ok())
                else {
                    return;
                };
                let leaf = leaf.value(entries);
                let mut left = usize::from(*nth);
                set(&mut document, &mut left, &leaf);
                let json = format!("{document:#}\n");
                let bytes = stored(&entries[at], &json);
                change(entries, at, bytes, rehashed);
            }
        }
    }
}

impl Leaf {
    fn value(&self, entries: &Entries) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Number(number) => Value::from(*number),
            Self::Text(text) => Value::from(text.as_str()),
            Self::HashOf(index) => {
                let (_, bytes) = &entries[usize::from(*index) % entries.len()];
                Value::from(Sha256::of(bytes).to_string())
            }
            Self::List => Value::Array(Vec::new()),
        }
    }
}

/// Returns the indexes of the JSON documents; those that name others come last.
fn documents(entries: &Entries) -> Vec<usize> {
    let found = |fits: fn(&str) -> bool| {
        let found = entries
            .iter()
            .enumerate()
            .filter(move |(_, (path, _))| fits(path));
        found.map(|(at, _)| at).collect::<Vec<_>>()
    };
    [
        found(is_snapshot),
        found(|path| path.ends_with("current.json")),
    ]
    .concat()
}

fn is_snapshot(path: &str) -> bool {
    path.starts_with(Kind::Snapshot.folder())
}

/// Returns the JSON of a document, if it is text. Snapshots are stored compressed.
fn text((path, bytes): &(String, Vec<u8>)) -> Option<String> {
    let json = match is_snapshot(path) {
        true => model::decode_zstd(bytes, Snapshot::MAX_BYTES).ok()?,
        false => bytes.clone(),
    };
    String::from_utf8(json).ok()
}

/// Returns the stored bytes of a document.
fn stored((path, _): &(String, Vec<u8>), json: &str) -> Vec<u8> {
    match is_snapshot(path) {
        true => testkit::zstd(json.as_bytes()),
        false => json.as_bytes().to_vec(),
    }
}

/// Replaces the bytes of an entry, and their hash in all other entries.
fn change(entries: &mut Entries, at: usize, bytes: Vec<u8>, rehashed: bool) {
    let old = std::mem::replace(&mut entries[at].1, bytes);
    if !rehashed || old == entries[at].1 {
        return;
    }
    let (from, to) = (
        Sha256::of(&old).to_string(),
        Sha256::of(&entries[at].1).to_string(),
    );
    for (path, _) in entries.iter_mut() {
        *path = path.replace(&from, &to);
    }
    for document in documents(entries) {
        if let (true, Some(json)) = (document != at, text(&entries[document]))
            && json.contains(&from)
        {
            let bytes = stored(&entries[document], &json.replace(&from, &to));
            change(entries, document, bytes, true);
        }
    }
}

/// Changes the value after `left` others.
fn set(value: &mut Value, left: &mut usize, leaf: &Value) -> bool {
    let inside: Vec<&mut Value> = match value {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Object(map) => map.values_mut().collect(),
        _ => Vec::new(),
    };
    if inside.into_iter().any(|inner| set(inner, left, leaf)) {
        return true;
    }
    if *left == 0 {
        *value = leaf.clone();
        return true;
    }
    *left -= 1;
    false
}

/// Returns paths and contents without the manifest and the volume.
pub(crate) fn entries(volume: &[u8]) -> Entries {
    let mut archive = Archive::new(volume);
    let entries = archive.entries().expect("an archive").skip(2);
    let read = entries.map(|entry| {
        let mut entry = entry.expect("an entry");
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("its content");
        (
            String::from_utf8_lossy(&entry.path_bytes()).into_owned(),
            bytes,
        )
    });
    read.collect()
}

/// Builds an archive of these entries with a matching manifest.
fn volume(entries: &Entries) -> Vec<u8> {
    let manifest = Manifest {
        volumes: 1,
        catalogs: catalogs(entries),
        since: Vec::new(),
        exported_at: None,
        objects: entries.iter().map(object).collect(),
    };
    let manifest = manifest.to_bytes();
    let hash = Sha256::of(&manifest);
    let volume =
        format!("{{\"formatVersion\":{FORMAT_VERSION},\"volume\":1,\"manifest\":\"{hash}\"}}\n");
    let own = [
        ("manifest.json", &manifest[..]),
        ("volume.json", volume.as_bytes()),
    ];
    let entries = entries
        .iter()
        .map(|(path, bytes)| (path.as_str(), bytes.as_slice()));
    let files = own.into_iter().chain(entries);
    files
        .fold(Layer::new(), |layer, (path, bytes)| layer.file(path, bytes))
        .tar()
}

fn object((path, bytes): &(String, Vec<u8>)) -> PackedObject {
    PackedObject {
        key: path.clone(),
        size: bytes.len() as u64,
        sha256: Sha256::of(bytes),
        volume: 1,
    }
}

fn catalogs(entries: &Entries) -> Vec<PackedCatalog> {
    let pointers = entries.iter().filter_map(|(path, bytes)| {
        let Some(Key::Current(name)) = Key::parse(path) else {
            return None;
        };
        let current = Current::from_bytes(bytes).ok()?;
        Some(PackedCatalog {
            name,
            serial: current.serial,
            content_hash: current.content_hash,
        })
    });
    let mut catalogs: Vec<PackedCatalog> = pointers.collect();
    if catalogs.is_empty() {
        catalogs.push(PackedCatalog {
            name: name(),
            serial: 1,
            content_hash: Sha256::of(b""),
        });
    }
    catalogs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::{HONEST, open};

    /// The manifest and the headers agree with the content, and the content is wrong.
    #[test]
    fn open_refuses_forged_archives() {
        let honest = HONEST.with(|[honest, _]| honest.clone());
        assert!(open(&volume(&honest)).is_ok(), "the forger works");
        let shard = honest
            .iter()
            .position(|(path, _)| path.starts_with("packages/"));
        let shard = shard.expect("the catalog has packages");
        let key_of_nothing = Key::Object(Kind::Package, Sha256::of(b"evil")).to_string();
        let extra = |path: &str| [&honest[..], &[(path.to_owned(), b"evil".to_vec())]].concat();
        let mut altered = honest.clone();
        altered[shard].1 = b"evil".to_vec();
        let others = honest
            .iter()
            .filter(|(path, _)| !path.ends_with("current.json"));
        for (case, forged) in [
            ("an extra file", extra("evil.json")),
            ("a path that leaves the folder", extra("../../etc/passwd")),
            ("an absolute path", extra("/etc/passwd")),
            ("a key that nothing names", extra(&key_of_nothing)),
            (
                "a key of another catalog",
                extra("catalogs/other/current.json"),
            ),
            ("the list of names", extra("catalogs.json")),
            ("other bytes under a shard's name", altered),
            (
                "an object twice",
                [&honest[..], &honest[shard..=shard]].concat(),
            ),
            ("no pointer", others.cloned().collect()),
        ] {
            assert!(open(&volume(&forged)).is_err(), "{case}");
        }
    }
}
