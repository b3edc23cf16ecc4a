use store::*;
#[tokio::test]
async fn smoke() {
    let dir = tempfile::tempdir().unwrap();
    for s in [
        Box::new(FolderStore::open(dir.path()).unwrap()) as Box<dyn Store>,
        Box::new(MemoryStore::new()),
    ] {
        let key = layout::Key::Catalogs;
        let v = s.put(&key, "abc".into(), Condition::CreateOnly).await.unwrap();
        assert!(
            s.put(&key, "abc".into(), Condition::CreateOnly)
                .await
                .unwrap_err()
                .is_conflict()
        );
        let v2 = s.put(&key, "abd".into(), Condition::Replace(v)).await.unwrap();
        let (b, i) = s.read_all(&key, 10).await.unwrap();
        assert_eq!((&b[..], i.version), (&b"abd"[..], v2));
        s.flush().await.unwrap();
    }
}
