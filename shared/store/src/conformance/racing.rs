use std::sync::Arc;

use futures_util::future::join_all;

use super::{both, content, current, pattern, put};
use crate::{Condition, Store, StoreExt as _};

pub(super) const WRITERS: u32 = 8;

/// How often each writer counts.
const ROUNDS: u32 = 10;

pub(super) async fn all(make: &impl AsyncFn() -> Arc<dyn Store>) {
    one_of_many_creates(make().await).await;
    one_of_many_commits(make().await).await;
    one_of_many_replaces(make().await).await;
    no_count_is_lost(make().await).await;
    readers_never_see_half_an_object(make().await).await;
}

/// Lets all writers start at once; how many of them won.
pub(super) async fn race<F: Future<Output = bool> + Send + 'static>(writer: impl Fn(u32) -> F) -> usize {
    let writers: Vec<_> = (0..WRITERS).map(|number| tokio::spawn(writer(number))).collect();
    let won = join_all(writers).await;
    won.into_iter()
        .filter(|won| *won.as_ref().expect("no writer panics"))
        .count()
}

pub(super) fn won<T>(result: Result<T, crate::StoreError>) -> bool {
    match result {
        Ok(_) => true,
        Err(error) if error.is_conflict() => false,
        Err(error) => panic!("whoever is late gets a Conflict, not {error:?}"),
    }
}

async fn one_of_many_creates(store: Arc<dyn Store>) {
    for key in both() {
        let winners = race(|number| {
            let (store, key) = (Arc::clone(&store), key.clone());
            async move { won(store.put(&key, format!("{number}").into(), Condition::CreateOnly).await) }
        });
        assert_eq!(winners.await, 1, "exactly one of {WRITERS} creates {key}");
    }
}

async fn one_of_many_commits(store: Arc<dyn Store>) {
    for key in both() {
        let winners = race(|number| {
            let (store, key) = (Arc::clone(&store), key.clone());
            async move {
                let mut staged = store.stage().await.expect("an object can be staged");
                staged
                    .write(format!("{number}").into())
                    .await
                    .expect("a piece can be written");
                won(staged.commit(&key, Condition::CreateOnly).await)
            }
        });
        assert_eq!(winners.await, 1, "exactly one of {WRITERS} commits {key}");
    }
}

async fn one_of_many_replaces(store: Arc<dyn Store>) {
    let version = put(&*store, &current(), "before").await;
    let winners = race(|number| {
        let (store, version) = (Arc::clone(&store), version.clone());
        async move {
            won(store
                .put(&current(), format!("{number}").into(), Condition::Replace(version))
                .await)
        }
    });
    assert_eq!(winners.await, 1, "exactly one of {WRITERS} replaces one version");
}

async fn no_count_is_lost(store: Arc<dyn Store>) {
    put(&*store, &current(), "0").await;
    let winners = race(|_| {
        let store = Arc::clone(&store);
        async move {
            for _ in 0..ROUNDS {
                while !count(&*store).await {}
            }
            true
        }
    });
    assert_eq!(winners.await, WRITERS as usize);
    assert_eq!(
        content(&*store, &current()).await,
        (WRITERS * ROUNDS).to_string(),
        "no update is lost"
    );
}

/// Tries to add one; whether nobody was faster.
async fn count(store: &dyn Store) -> bool {
    let (bytes, info) = store.read_all(&current(), 100).await.expect("the counter can be read");
    let text = std::str::from_utf8(&bytes).expect("digits");
    let count: u32 = text.parse().expect("a number");
    let next = (count + 1).to_string();
    won(store
        .put(&current(), next.into(), Condition::Replace(info.version))
        .await)
}

async fn readers_never_see_half_an_object(store: Arc<dyn Store>) {
    let [one, other] = [pattern(200_000), vec![7; 150_000].into()];
    for key in both() {
        put(&*store, &key, one.clone()).await;
        let winners = race(|number| {
            let (store, key, one, other) = (Arc::clone(&store), key.clone(), one.clone(), other.clone());
            async move {
                for round in 0..ROUNDS {
                    if number < 2 {
                        put(&*store, &key, if round % 2 == 0 { other.clone() } else { one.clone() }).await;
                    } else {
                        let seen = content(&*store, &key).await;
                        assert!(
                            seen == one || seen == other,
                            "a reader of {key} saw {} bytes of a mix",
                            seen.len()
                        );
                    }
                }
                true
            }
        });
        assert_eq!(winners.await, WRITERS as usize);
    }
}
