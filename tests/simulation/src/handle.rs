use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt, TryStreamExt};
use model::Key;
use store::{
    Body, Condition, Fetched, Get, Listed, Object, ObjectInfo, ReadStore, Staged, Stat, Store,
    StoreError, Version,
};
use storekit::MemoryStore;
use tokio_util::sync::CancellationToken;

use crate::holds::{Process, Right};
use crate::{fault::Kind, observed::ObservedStore, request::Effect, world::World};

/// Handle of one process on a store. All faults happen here: a request takes a while, and its
/// answer may be wrong or lost.
#[derive(Clone)]
pub(crate) struct StoreHandle {
    pub(crate) world: Arc<World>,
    pub(crate) observed: Arc<ObservedStore>,
    pub(crate) actor: u8,
    /// Token of the process. It is cancelled when the process is killed: no request of it is done
    /// any more.
    pub(crate) process: CancellationToken,
    /// True for a handle without faults.
    pub(crate) steady: bool,
}

impl fmt::Debug for StoreHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreHandle({} {:?})", self.actor, self.observed.side)
    }
}

#[async_trait]
impl ReadStore for StoreHandle {
    async fn get(&self, key: &Key, get: Get) -> Result<Fetched, StoreError> {
        let effect = move |store: MemoryStore, key: Key| {
            let get = get.clone();
            async move { store.get(&key, get).await }.boxed()
        };
        let fetched = self.ask(Kind::Get, key, effect).await?;
        Ok(match fetched {
            Fetched::Object(Object { info, body }) => Fetched::Object(Object {
                info,
                body: self.body(key, body),
            }),
            Fetched::NotModified => Fetched::NotModified,
        })
    }

    async fn head(&self, key: &Key) -> Result<Option<ObjectInfo>, StoreError> {
        let effect = |store: MemoryStore, key: Key| async move { store.head(&key).await }.boxed();
        self.ask(Kind::Head, key, effect).await
    }
}

#[async_trait]
impl Store for StoreHandle {
    async fn stat(&self, key: &Key) -> Result<Stat, StoreError> {
        let effect = |store: MemoryStore, key: Key| async move { store.stat(&key).await }.boxed();
        self.ask(Kind::Head, key, effect).await
    }

    async fn put(
        &self,
        key: &Key,
        bytes: Bytes,
        condition: Condition,
    ) -> Result<Version, StoreError> {
        self.write(Kind::Put, key, bytes, condition).await
    }

    async fn stage(&self) -> Result<Box<dyn Staged>, StoreError> {
        let number = self.step(Kind::Stage, String::new())?;
        Ok(Box::new(StagedHandle {
            handle: self.clone(),
            name: format!("staged {number}"),
            bytes: BytesMut::new(),
        }))
    }

    async fn flush(&self) -> Result<(), StoreError> {
        let store = self.observed.store.clone();
        let effect = move || {
            let store = store.clone();
            async move { store.flush().await }.boxed()
        };
        self.request(Kind::Flush, String::new(), effect).await
    }

    async fn delete(&self, key: &Key) -> Result<(), StoreError> {
        let effect = |store: MemoryStore, key: Key| async move { store.delete(&key).await }.boxed();
        self.ask(Kind::Delete, key, effect).await
    }

    fn list(&self, prefix: &str) -> BoxStream<'static, Result<Listed, StoreError>> {
        let (handle, prefix) = (self.clone(), prefix.to_owned());
        let listing = async move {
            let (store, wanted) = (handle.observed.store.clone(), prefix.clone());
            let effect = move || store.list(&wanted).try_collect::<Vec<_>>().boxed();
            handle.request(Kind::List, prefix, effect).await
        };
        let listed =
            stream::once(listing).map_ok(|listed| stream::iter(listed.into_iter().map(Ok)));
        listed.try_flatten().boxed()
    }
}

impl StoreHandle {
    /// Notes that its process begins, with a clock that is wrong by so many seconds.
    pub(crate) fn begin_process(&self, wrong: i64, rights: BTreeSet<Right>) {
        let process = Process {
            from: self.world.now(),
            wrong,
            rights,
        };
        self.observed.checker().holds.begin(self.actor, process);
    }

    async fn write(
        &self,
        kind: Kind,
        key: &Key,
        bytes: Bytes,
        condition: Condition,
    ) -> Result<Version, StoreError> {
        let attempts = AtomicU32::new(0);
        let effect = move |store: MemoryStore, key: Key| {
            let (bytes, condition) = (bytes.clone(), condition.clone());
            let repeated = attempts.fetch_add(1, Ordering::Relaxed) > 0;
            async move {
                match store.put(&key, bytes.clone(), condition).await {
                    // The store of S3 takes equal bytes for its own after a lost answer.
                    Err(StoreError::Conflict(_))
                        if repeated && store.objects().get(&key) == Some(&bytes) =>
                    {
                        let found = store.head(&key).await?.expect("its bytes were just read");
                        Ok(found.version)
                    }
                    result => result,
                }
            }
            .boxed()
        };
        self.ask(kind, key, effect).await
    }

    /// Does one operation on an object, as [`StoreHandle::request`] does.
    async fn ask<T: Send + 'static>(
        &self,
        kind: Kind,
        key: &Key,
        effect: impl Fn(MemoryStore, Key) -> Effect<T> + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        let (store, wanted) = (self.observed.store.clone(), key.clone());
        let effect = move || effect(store.clone(), wanted.clone());
        self.request(kind, key.to_string(), effect).await
    }

    /// Returns a body that may break at every chunk.
    fn body(&self, key: &Key, body: Body) -> Body {
        let reading = (self.clone(), key.to_string(), body);
        let next = |(handle, key, mut body): (Self, String, Body)| async move {
            let Some(chunk) = body.try_next().await? else {
                return Ok(None);
            };
            handle.step(Kind::Read, key.clone())?;
            Ok(Some((chunk, (handle, key, body))))
        };
        stream::try_unfold(reading, next).boxed()
    }
}

/// Object that is being written. Other processes cannot see it before its commit.
struct StagedHandle {
    handle: StoreHandle,
    name: String,
    bytes: BytesMut,
}

#[async_trait]
impl Staged for StagedHandle {
    async fn write(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        self.handle.step(Kind::Write, self.name.clone())?;
        self.bytes.extend_from_slice(&bytes);
        Ok(())
    }

    async fn commit(
        self: Box<Self>,
        key: &Key,
        condition: Condition,
    ) -> Result<Version, StoreError> {
        let Self { handle, bytes, .. } = *self;
        handle
            .write(Kind::Commit, key, bytes.freeze(), condition)
            .await
    }
}
