//! Prints what the folder store costs: `cargo run --release -p catalog-mirror-store --example speed [FOLDER]`.

use std::{
    env,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use catalog_mirror_store::{Condition, Fetched, FolderStore, Get, Object, Store as _, StoreError, StoreExt as _};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use model::{Encoding, Key, Kind, Sha256};

/// As many requests as a busy server has in flight.
const TASKS: u32 = 16;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let parent = env::args_os().nth(1).unwrap_or_else(|| env::temp_dir().into());
    let folder = tempfile::tempdir_in(parent)?;
    let store = Arc::new(FolderStore::open(folder.path())?);
    publish(&store, 38).await?;
    publish(&store, 333).await?;
    revalidate(&store).await?;
    read_small(&store).await?;
    stream_large(&store).await
}

fn shard(number: u32) -> Key {
    Key::Object(Kind::Package, Sha256::of(&number.to_be_bytes()))
}

/// A cold publication: shards side by side, two large forms, a flush, the pointer.
async fn publish(store: &Arc<FolderStore>, shards: u32) -> Result<(), Box<dyn std::error::Error>> {
    let content = Bytes::from(vec![7; 14_000]);
    let start = Instant::now();
    let puts = stream::iter(0..shards).map(|number| {
        let key = shard(shards * 1000 + number);
        let (store, content) = (Arc::clone(store), content.clone());
        async move { store.put(&key, content, Condition::CreateOnly).await }
    });
    puts.buffer_unordered(32).try_for_each(|_| async { Ok(()) }).await?;
    for form in [Encoding::Zstd, Encoding::Gzip] {
        let mut staged = store.stage().await?;
        for _ in 0..shards {
            staged.write(content.clone()).await?;
        }
        let key = Key::Object(Kind::All(form), Sha256::of(&shards.to_be_bytes()));
        staged.commit(&key, Condition::CreateOnly).await?;
    }
    let written = start.elapsed();
    store.flush().await?;
    let flushed = start.elapsed();
    store
        .put(&Key::Current("a".parse()?), "{}".into(), Condition::Always)
        .await?;
    println!(
        "publish {shards} shards: {written:.1?} written, {:.1?} flush, {:.1?} pointer",
        flushed - written,
        start.elapsed() - flushed
    );
    Ok(())
}

/// The microseconds of CPU that this process has used, as Linux counts them: in ticks of 10 ms.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = stat
        .split(' ')
        .skip(13)
        .take(2)
        .filter_map(|ticks| ticks.parse::<f64>().ok());
    ticks.sum::<f64>() * 10_000.0
}

/// The rate at which `work` is done by several tasks on all cores.
async fn rate<F>(work: impl Fn(u32) -> F + Clone + Send + 'static) -> Result<u32, StoreError>
where
    F: Future<Output = Result<(), StoreError>> + Send,
{
    const EACH: u32 = 20_000;
    let start = Instant::now();
    let before = cpu();
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let work = work.clone();
            tokio::spawn(async move {
                for number in 0..EACH {
                    work(task * EACH + number).await?;
                }
                Ok::<_, StoreError>(())
            })
        })
        .collect();
    for task in tasks {
        task.await.map_err(std::io::Error::other).expect("no task panics")?;
    }
    println!(
        "{:.1} us of CPU for each of these:",
        (cpu() - before) / f64::from(TASKS * EACH)
    );
    Ok((f64::from(TASKS * EACH) / start.elapsed().as_secs_f64()) as u32)
}

async fn revalidate(store: &Arc<FolderStore>) -> Result<(), Box<dyn std::error::Error>> {
    let key = Key::Current("a".parse()?);
    for settled in [false, true] {
        if settled {
            tokio::time::sleep(Duration::from_millis(1100)).await;
        }
        let (_, info) = store.read_all(&key, 1000).await?;
        let (store, key) = (Arc::clone(store), key.clone());
        let rate = rate(move |_| {
            let (store, key) = (Arc::clone(&store), key.clone());
            let get = Get {
                unless: Some(info.version.clone()),
                range: None,
            };
            async move {
                let fetched = store.get(&key, get).await?;
                assert!(matches!(fetched, Fetched::NotModified));
                Ok(())
            }
        });
        println!("revalidate the pointer, settled {settled}: {}/s", rate.await?);
    }
    Ok(())
}

async fn read_small(store: &Arc<FolderStore>) -> Result<(), Box<dyn std::error::Error>> {
    let store = Arc::clone(store);
    let rate = rate(move |number| {
        let store = Arc::clone(&store);
        async move {
            let (bytes, _) = store
                .read_all(&shard(38_000 + number % 38), 100_000)
                .await
                .expect("a shard");
            assert_eq!(bytes.len(), 14_000);
            Ok(())
        }
    });
    println!("read a 14 kB shard: {}/s", rate.await?);
    Ok(())
}

async fn stream_large(store: &Arc<FolderStore>) -> Result<(), Box<dyn std::error::Error>> {
    let key = Key::Object(Kind::All(Encoding::Identity), Sha256::of(b"large"));
    let mut staged = store.stage().await?;
    let piece = Bytes::from(vec![7; 1 << 20]);
    for _ in 0..200 {
        staged.write(piece.clone()).await?;
    }
    staged.commit(&key, Condition::Always).await?;
    for _ in 0..3 {
        let start = Instant::now();
        let Fetched::Object(Object { mut body, .. }) = store.get(&key, Get::default()).await? else {
            unreachable!("a read without `unless` finds the object");
        };
        let mut size = 0;
        while let Some(chunk) = body.try_next().await? {
            size += chunk.len();
        }
        let rate = size as f64 / start.elapsed().as_secs_f64() / 1e9;
        println!("stream {} MB: {rate:.2} GB/s", size >> 20);
    }
    Ok(())
}
