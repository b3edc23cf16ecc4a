//! Promises of the folder beyond those of every store.

use std::{error::Error as _, fs, io, os::unix::fs::symlink, path::Path, time::Duration};

use futures_util::{TryStreamExt as _, future::try_join_all};
use model::{Key, Kind, Sha256};
use store::{Condition, FolderStore, Get, ReadStore as _, Store as _, StoreError, StoreExt as _};
use storekit::conformance::{current, object, put};
use tempfile::TempDir;

fn folder() -> (TempDir, FolderStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = FolderStore::open(folder.path()).unwrap();
    (folder, store)
}

/// Returns the kind of the error of the file system.
fn kind(error: &StoreError) -> Option<io::ErrorKind> {
    error
        .source()?
        .downcast_ref::<io::Error>()
        .map(io::Error::kind)
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn put_key_is_the_path_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = FolderStore::open(folder.path().join("made/too")).unwrap();
    for key in [Key::Catalogs, current(), object(b"x")] {
        put(&store, &key, "x").await;
        let path = folder.path().join("made/too").join(key.to_string());
        assert_eq!(fs::read(path).unwrap(), b"x");
    }
}

#[tokio::test]
async fn put_and_drop_leave_no_temporary_files() {
    let (folder, store) = folder();
    put(&store, &object(b"x"), "x").await;
    let put = store
        .put(&object(b"x"), "y".into(), Condition::CreateOnly)
        .await;
    put.unwrap_err();
    let mut staged = store.stage().await.unwrap();
    staged.write(vec![0; 1 << 20].into()).await.unwrap();
    staged
        .commit(&object(b"x"), Condition::CreateOnly)
        .await
        .unwrap_err();
    drop(store.stage().await.unwrap());
    assert!(entries(&folder.path().join(".tmp")).is_empty());
}

#[tokio::test]
async fn delete_removes_emptied_folders() {
    let (folder, store) = folder();
    let snapshot = Key::Object(Kind::Snapshot, Sha256::of(b""));
    put(&store, &current(), "x").await;
    put(&store, &snapshot, "x").await;
    store.delete(&snapshot).await.unwrap();
    assert_eq!(entries(&folder.path().join("catalogs/a")), ["current.json"]);
    store.delete(&current()).await.unwrap();
    assert_eq!(entries(folder.path()), [".tmp"]);
    store.flush().await.unwrap();
    put(&store, &snapshot, "again").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn put_beside_delete_in_one_folder_succeeds() {
    let (_folder, store) = folder();
    let tasks = (0..4_u8).map(|task| {
        let (store, key) = (
            store.clone(),
            Key::Object(Kind::Snapshot, Sha256::of(&[task])),
        );
        tokio::spawn(async move {
            for _ in 0..100 {
                put(&store, &key, "x").await;
                store.delete(&key).await.expect("it can be deleted");
            }
        })
    });
    try_join_all(tasks).await.unwrap();
}

#[tokio::test]
async fn list_omits_files_that_are_not_keys() {
    let (folder, store) = folder();
    put(&store, &current(), "x").await;
    fs::write(folder.path().join("README"), "x").unwrap();
    fs::write(folder.path().join("catalogs/a/notes.txt"), "x").unwrap();
    fs::create_dir_all(folder.path().join("catalogs/b/current.json")).unwrap();
    symlink("../a", folder.path().join("catalogs/c")).unwrap();
    symlink("current.json", folder.path().join("catalogs/a/status.json")).unwrap();
    let listed: Vec<_> = store
        .list("")
        .map_ok(|listed| listed.key)
        .try_collect()
        .await
        .unwrap();
    assert_eq!(listed, [current()]);
}

#[tokio::test]
async fn link_or_folder_at_a_key_is_not_an_object() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("current.json"), "secret").unwrap();
    let (folder, store) = folder();
    fs::create_dir_all(folder.path().join(object(b"x").to_string())).unwrap();
    fs::create_dir(folder.path().join("catalogs")).unwrap();
    symlink(outside.path(), folder.path().join("catalogs/a")).unwrap();
    symlink(
        outside.path().join("current.json"),
        folder.path().join("catalogs.json"),
    )
    .unwrap();
    for key in [&current(), &Key::Catalogs, &object(b"x")] {
        let error = store.head(key).await.unwrap_err();
        assert!(matches!(error, StoreError::Failed { .. }), "{error:?}");
        assert!(store.get(key, Get::default()).await.is_err(), "{key}");
    }
    for error in [
        store
            .put(&current(), "x".into(), Condition::Always)
            .await
            .unwrap_err(),
        store.delete(&current()).await.unwrap_err(),
    ] {
        assert!(matches!(error, StoreError::Failed { .. }), "{error:?}");
    }
    assert_eq!(
        fs::read(outside.path().join("current.json")).unwrap(),
        b"secret"
    );
}

#[tokio::test]
async fn write_to_read_only_store_fails() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("catalogs.json"), "x").unwrap();
    let store = FolderStore::open_read_only(folder.path()).unwrap();
    assert_eq!(store.read_all(&Key::Catalogs, 10).await.unwrap().0, "x");
    store.flush().await.unwrap();
    let put = async |key: Key, condition| store.put(&key, "x".into(), condition).await.unwrap_err();
    for error in [
        put(object(b"x"), Condition::Always).await,
        put(Key::Catalogs, Condition::CreateOnly).await,
        store.stage().await.err().expect("nothing can be staged"),
        store.delete(&Key::Catalogs).await.unwrap_err(),
        store.delete(&object(b"x")).await.unwrap_err(),
        store.stat(&Key::Catalogs).await.unwrap_err(),
    ] {
        assert_eq!(
            kind(&error),
            Some(io::ErrorKind::ReadOnlyFilesystem),
            "{error:?}"
        );
    }
    assert_eq!(entries(folder.path()), ["catalogs.json"]);
}

#[test]
fn open_read_only_of_missing_folder_fails() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nowhere");
    let error = FolderStore::open_read_only(&path).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot open {}", path.display()));
    assert_eq!(
        error.source().unwrap().to_string(),
        "there is no such folder"
    );
    assert!(!path.exists());
}

#[tokio::test]
async fn put_over_a_file_in_the_way_fails_with_its_cause() {
    let (folder, store) = folder();
    fs::write(folder.path().join("packages"), "x").unwrap();
    let put = store
        .put(&object(b"x"), "x".into(), Condition::Always)
        .await;
    let error = put.unwrap_err();
    assert_eq!(
        kind(&error),
        Some(io::ErrorKind::NotADirectory),
        "{error:?}"
    );
    assert!(FolderStore::open(folder.path().join("packages")).is_err());
}

#[tokio::test]
async fn put_after_temp_folder_was_removed_succeeds() {
    let (folder, store) = folder();
    fs::remove_dir_all(folder.path().join(".tmp")).unwrap();
    put(&store, &Key::Catalogs, "x").await;
    assert_eq!(store.read_all(&Key::Catalogs, 10).await.unwrap().0, "x");
}

#[tokio::test]
async fn stat_of_old_file_with_young_name_is_young() {
    let (folder, store) = folder();
    put(&store, &Key::Catalogs, "x").await;
    let path = folder.path().join(Key::Catalogs.to_string());
    // A writer that was stopped for a day between its writing and its renaming leaves such a file.
    let day_ago = std::time::SystemTime::now() - Duration::from_secs(86_400);
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(day_ago).unwrap();
    let age = store.stat(&Key::Catalogs).await.unwrap().age().unwrap();
    assert!(age < Duration::from_secs(60), "{age:?}");
}
