//! Forged archives: manifest and headers agree, and the content is wrong.

use std::io::Read;

use catalog_mirror_sync::PackOptions;
use model::{Document, FORMAT_VERSION, Key, Kind};

use crate::{
    archives::{export, open},
    kit::{V1, mirror, name},
};

#[tokio::test(flavor = "multi_thread")]
async fn open_refuses_forged_archives() {
    let (_, from) = mirror(&[V1]).await;
    let volume = export(&from, PackOptions::default()).await.remove(0);
    let honest = entries(&volume);
    assert!(open(&[tar(&honest)]).await.is_ok(), "the forger works");
    let shard = honest
        .iter()
        .position(|(path, _)| path.starts_with("packages/"))
        .unwrap();
    let forge = |change: &dyn Fn(&mut Entries)| {
        let mut entries = honest.clone();
        change(&mut entries);
        tar(&entries)
    };
    let extra = |path: &str| (path.to_owned(), b"evil".to_vec());
    for (case, forged) in [
        ("an extra file", forge(&|entries| entries.push(extra("evil.json")))),
        (
            "a path that leaves the folder",
            forge(&|entries| entries.push(extra("../../etc/passwd"))),
        ),
        ("an absolute path", forge(&|entries| entries.push(extra("/etc/passwd")))),
        (
            "a key that nothing names",
            forge(&|entries| {
                entries.push((
                    Key::Object(Kind::Package, model::Sha256::of(b"evil")).to_string(),
                    b"evil".to_vec(),
                ));
            }),
        ),
        (
            "a key of another catalog",
            forge(&|entries| entries.push(extra("catalogs/other/current.json"))),
        ),
        (
            "the list of names",
            forge(&|entries| entries.push(extra("catalogs.json"))),
        ),
        (
            "other bytes under a shard's name",
            forge(&|entries| entries[shard].1 = b"evil".to_vec()),
        ),
        (
            "an object twice",
            forge(&|entries| entries.push(entries[shard].clone())),
        ),
        ("no pointer", forge(&|entries| drop(entries.pop()))),
    ] {
        assert!(open(&[forged]).await.is_err(), "{case}");
    }
}

type Entries = Vec<(String, Vec<u8>)>;

/// Returns paths and contents without `manifest.json` and `volume.json`.
fn entries(volume: &[u8]) -> Entries {
    let mut archive = tar::Archive::new(volume);
    let entries = archive.entries().unwrap().skip(2);
    entries
        .map(|entry| {
            let mut entry = entry.unwrap();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            (String::from_utf8(entry.path_bytes().into_owned()).unwrap(), bytes)
        })
        .collect()
}

/// Returns an archive of these entries, with a manifest that matches them.
fn tar(entries: &[(String, Vec<u8>)]) -> Vec<u8> {
    let pointer = |(path, bytes): &(String, Vec<u8>)| {
        let Some(Key::Current(name)) = Key::parse(path) else {
            return None;
        };
        let current = model::Current::from_bytes(bytes).ok()?;
        Some(catalog_mirror_sync::PackedCatalog {
            name,
            serial: current.serial,
            content_hash: current.content_hash,
        })
    };
    let mut catalogs: Vec<_> = entries.iter().filter_map(pointer).collect();
    if catalogs.is_empty() {
        catalogs.push(catalog_mirror_sync::PackedCatalog {
            name: name(),
            serial: 1,
            content_hash: model::Sha256::of(b""),
        });
    }
    let objects = entries.iter().map(|(path, bytes)| catalog_mirror_sync::PackedObject {
        key: path.clone(),
        size: bytes.len() as u64,
        sha256: model::Sha256::of(bytes),
        volume: 1,
    });
    let manifest = catalog_mirror_sync::Manifest {
        volumes: 1,
        catalogs,
        since: Vec::new(),
        exported_at: None,
        objects: objects.collect(),
    };
    let mut builder = tar::Builder::new(Vec::new());
    let mut add = |path: &str, bytes: &[u8]| {
        let mut header = tar::Header::new_ustar();
        // `set_path` would refuse what a forger writes.
        header.as_old_mut().name[..path.len().min(100)].copy_from_slice(&path.as_bytes()[..path.len().min(100)]);
        header.set_entry_type(tar::EntryType::Regular);
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_cksum();
        builder.append(&header, bytes).unwrap();
    };
    add("manifest.json", &manifest.to_bytes());
    let hash = model::Sha256::of(&manifest.to_bytes());
    let volume = format!("{{\"formatVersion\":{FORMAT_VERSION},\"volume\":1,\"manifest\":\"{hash}\"}}\n");
    add("volume.json", volume.as_bytes());
    entries.iter().for_each(|(path, bytes)| add(path, bytes));
    builder.into_inner().unwrap()
}
