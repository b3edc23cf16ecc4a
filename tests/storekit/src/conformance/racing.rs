use std::sync::Arc;

use futures_util::future::join_all;
use model::Key;

use super::{Exceptions, WAYS, Way, both, content, current, object, pattern, put, write};
use store::{Condition, Store, StoreExt as _};

const WRITERS: u32 = 8;

/// Size of a large object in bytes. A bucket spools it in a file and sends it in many pieces.
const LARGE: usize = 2_500_000;

/// Number of times that each writer counts.
const ROUNDS: u32 = 10;

pub(super) async fn all(make: &impl AsyncFn() -> Arc<dyn Store>, without: Exceptions) {
    for way in WAYS {
        racing_creates_have_one_winner(make().await, way, 10).await;
    }
    if !without.large_races {
        racing_creates_have_one_winner(make().await, Way::Staged, LARGE).await;
    }
    racing_counts_are_all_kept(make().await).await;
    racing_reads_see_whole_objects(make().await).await;
}

/// Starts all writers at once. Returns the number of winners.
async fn race<F: Future<Output = bool> + Send + 'static>(writer: impl Fn(u32) -> F) -> usize {
    let writers: Vec<_> = (0..WRITERS)
        .map(|number| tokio::spawn(writer(number)))
        .collect();
    let won = join_all(writers).await;
    won.into_iter()
        .filter(|won| *won.as_ref().expect("no writer panics"))
        .count()
}

fn won<T>(result: Result<T, store::StoreError>) -> bool {
    match result {
        Ok(_) => true,
        Err(error) if error.is_conflict() => false,
        Err(error) => panic!("whoever is late gets a Conflict, not {error:?}"),
    }
}

async fn racing_creates_have_one_winner(store: Arc<dyn Store>, way: Way, size: usize) {
    let bytes = pattern(size);
    for key in both(&bytes) {
        let is_mutable = key == current();
        let winners = race(|number| {
            let store = Arc::clone(&store);
            let key = key.clone();
            let mut bytes = bytes.to_vec();
            if is_mutable {
                bytes.extend_from_slice(number.to_string().as_bytes());
            }
            async move { won(write(&*store, way, &key, bytes, Condition::CreateOnly).await) }
        });
        let winners = winners.await;
        // A server may refuse a large object before it has read it. The answer is lost then, and
        // the bytes that are there are equal.
        let most = if is_mutable || size < LARGE {
            1
        } else {
            WRITERS as usize
        };
        assert!(
            (1..=most).contains(&winners),
            "{winners} of {WRITERS} create {key}"
        );
        let found = content(&*store, &key).await;
        let is_whole = found.starts_with(&bytes) && found.len() == size + usize::from(is_mutable);
        assert!(is_whole, "{key}");
    }
}

async fn racing_counts_are_all_kept(store: Arc<dyn Store>) {
    put(&*store, &current(), "0").await;
    let winners = race(|_| {
        let store = Arc::clone(&store);
        async move {
            for _ in 0..ROUNDS {
                while !count(&*store, &current()).await {}
            }
            true
        }
    });
    assert_eq!(winners.await, WRITERS as usize);
    let counted = content(&*store, &current()).await;
    assert_eq!(counted, (WRITERS * ROUNDS).to_string(), "no update is lost");
}

/// Tries to add one to a number under a key. Returns false if another writer was faster.
///
/// # Panics
/// If there is no number, or if the store fails.
pub async fn count(store: &dyn Store, key: &Key) -> bool {
    let (bytes, info) = store
        .read_all(key, 100)
        .await
        .expect("the counter can be read");
    let text = std::str::from_utf8(&bytes).expect("digits");
    let count: u32 = text.parse().expect("a number");
    let next = (count + 1).to_string();
    won(store
        .put(key, next.into(), Condition::Replace(info.version))
        .await)
}

async fn racing_reads_see_whole_objects(store: Arc<dyn Store>) {
    let [one, other] = [pattern(200_000), vec![7; 150_000].into()];
    for (key, other) in [(current(), other), (object(&one), one.clone())] {
        put(&*store, &key, one.clone()).await;
        let winners = race(|number| {
            let (store, key, one, other) =
                (Arc::clone(&store), key.clone(), one.clone(), other.clone());
            async move {
                for round in 0..ROUNDS {
                    if number < 2 {
                        put(
                            &*store,
                            &key,
                            if round % 2 == 0 {
                                other.clone()
                            } else {
                                one.clone()
                            },
                        )
                        .await;
                    } else {
                        let seen = content(&*store, &key).await;
                        assert!(
                            seen == one || seen == other,
                            "a mix of {key}: {} bytes",
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
