//! Copies of all catalogs that an origin lists.

use model::{CatalogName, Catalogs, Document, Key, Outcome};
use storekit::Answer;
use sync::SyncOptions;
use testkit::{CurrentBuilder, until};
use trust::{Signer, SigningKey};

use crate::kit::{
    V1, assert_sound, copier, copy, current, mirror, name, options, publish, put_raw, snapshot_of,
    write_pointer,
};
fn names(names: &[&str]) -> Vec<CatalogName> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

/// One catalog whose origin never answers holds one place of four, and the others go on.
#[tokio::test(flavor = "multi_thread")]
async fn copy_all_goes_on_while_one_catalog_hangs() {
    let (original, from) = mirror(&[]).await;
    let names = names(&["a", "b", "c", "d", "e", "f"]);
    for name in &names {
        publish(&from, name, V1).await;
    }
    original.set_hook(|call, _| match &call.key {
        Some(Key::Current(name)) if name.as_str() == "a" => {
            Answer::Wait(Box::pin(std::future::pending()))
        }
        _ => Answer::GoOn,
    });
    let (memory, to) = mirror(&[]).await;
    let copier = copier(&from, &to, options(true));
    let is_copied = |name: &CatalogName| memory.objects().contains_key(&Key::Current(name.clone()));
    tokio::select! {
        _ = copier.copy_all(&names) => panic!("one of the catalogs hangs"),
        () = until("the others are copied", async || names[1..].iter().all(is_copied)) => {}
    }
}

/// An origin that is not trusted may list any number of names.
#[tokio::test(flavor = "multi_thread")]
async fn copy_of_unsigned_catalogs_writes_nothing_for_new_names() {
    let (_, from) = mirror(&[]).await;
    let names = names(&["a", "b", "c"]);
    for name in &names {
        publish(&from, name, V1).await;
    }
    let (memory, to) = mirror(&[]).await;
    let key = SigningKey::from_pem(SigningKey::generate_pem().unwrap().as_bytes()).unwrap();
    let signer = Signer::new(vec![key], Vec::new());
    let signed = signer.sign(&names[0], current(&from, &names[0]).await.unwrap());
    write_pointer(&from, &names[0], &signed).await;
    let trusting = SyncOptions {
        trust: Some(signer.trust().clone()),
        ..options(true)
    };
    let reports = copier(&from, &to, trusting.clone())
        .copy_listed()
        .await
        .unwrap();
    let outcomes: Vec<_> = reports.iter().map(|report| report.outcome).collect();
    assert_eq!(
        outcomes,
        [Outcome::Published, Outcome::Refused, Outcome::Refused]
    );
    let mut keys = memory.written();
    keys.retain(|key| key.catalog().is_some());
    assert_eq!(
        keys,
        [
            Key::Current(names[0].clone()),
            Key::Status(names[0].clone())
        ]
    );

    // A catalog that the store has gets the refusal into its status.
    let snapshot = snapshot_of(&from, &names[0]).await;
    let unsigned = CurrentBuilder::new(&snapshot).serial(2).build();
    write_pointer(&from, &names[0], &unsigned).await;
    memory.take_log();
    let refused = copier(&from, &to, trusting).copy_all(&names[..1]).await;
    assert_eq!(refused[0].outcome, Outcome::Refused);
    assert_eq!(memory.written(), [Key::Status(names[0].clone())]);
}

/// A pointer of another format belongs to another program; a damaged one is replaced.
#[tokio::test(flavor = "multi_thread")]
async fn copy_refuses_a_store_of_another_format_and_replaces_a_damaged_pointer() {
    let (original, from) = mirror(&[V1]).await;
    let (memory, to) = mirror(&[]).await;
    let key = Key::Current(name());
    for version in [1, 99] {
        let pointer = format!("{{\"formatVersion\":{version}}}").into_bytes();
        put_raw(&to, &key, pointer.clone()).await;
        let refused = copy(&from, &to, options(true)).await;
        assert!(
            refused.error.clone().unwrap().contains("format version"),
            "{refused:?}"
        );
        assert_eq!(memory.objects()[&key], pointer);
    }
    put_raw(&to, &key, b"damaged".to_vec()).await;
    let replaced = copy(&from, &to, options(true)).await;
    assert_eq!(
        (replaced.error.clone(), replaced.outcome),
        (None, Outcome::Published)
    );
    assert_eq!(memory.objects()[&key], original.objects()[&key]);
    assert_sound(&memory).await;
}

/// Without `catalogs.json`, the pointers tell the names. The copy lists them again.
#[tokio::test(flavor = "multi_thread")]
async fn copy_restores_a_lost_list_of_catalogs() {
    let (original, from) = mirror(&[V1]).await;
    let (memory, to) = mirror(&[]).await;
    copy(&from, &to, options(true)).await;
    let list = memory.objects()[&Key::Catalogs].clone();
    memory.lose(&Key::Catalogs);
    original.lose(&Key::Catalogs);
    let reports = copier(&from, &to, options(true))
        .copy_listed()
        .await
        .unwrap();
    assert_eq!(reports[0].outcome, Outcome::Unchanged);
    let names = |bytes: &[u8]| Catalogs::from_bytes(bytes).unwrap().catalogs;
    assert_eq!(names(&memory.objects()[&Key::Catalogs]), names(&list));
}
