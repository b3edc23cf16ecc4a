use std::{fmt, sync::Arc};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::{
    FutureExt, StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use layout::Key;
use store::{Body, Condition, Fetched, Get, Listed, Object, ObjectInfo, Staged, Store, StoreError, Version};
use tokio_util::sync::CancellationToken;

use crate::{fault::Kind, site::Site, world::World};

/// One process's line to a store: everything that goes wrong goes wrong here. What is asked takes a while to get there,
/// and may be answered otherwise than it was done, or never.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) world: Arc<World>,
    pub(crate) site: Arc<Site>,
    pub(crate) actor: u8,
    /// Cancelled when the process is killed: nothing that is left of it can do anything any more.
    pub(crate) life: CancellationToken,
    /// Whether nothing goes wrong on it.
    pub(crate) steady: bool,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Line({} {:?})", self.actor, self.site.side)
    }
}

#[async_trait]
impl Store for Line {
    async fn get(&self, key: &Key, get: Get) -> Result<Fetched, StoreError> {
        let (store, wanted) = (self.site.store.clone(), key.clone());
        let effect = move || {
            let (store, key, get) = (store.clone(), wanted.clone(), get.clone());
            async move { store.get(&key, get).await }.boxed()
        };
        let fetched = self.ask(Kind::Get, key.to_string(), effect).await?;
        Ok(match fetched {
            Fetched::Object(Object { info, body }) => Fetched::Object(Object {
                info,
                body: self.body(key, body),
            }),
            Fetched::NotModified => Fetched::NotModified,
        })
    }

    async fn head(&self, key: &Key) -> Result<ObjectInfo, StoreError> {
        let (store, wanted) = (self.site.store.clone(), key.clone());
        let effect = move || {
            let (store, key) = (store.clone(), wanted.clone());
            async move { store.head(&key).await }.boxed()
        };
        self.ask(Kind::Head, key.to_string(), effect).await
    }

    async fn put(&self, key: &Key, bytes: Bytes, condition: Condition) -> Result<Version, StoreError> {
        self.write(Kind::Put, key, bytes, condition).await
    }

    async fn stage(&self) -> Result<Box<dyn Staged>, StoreError> {
        let number = self.step(Kind::Stage, String::new())?;
        Ok(Box::new(StagedLine {
            line: self.clone(),
            name: format!("staged {number}"),
            bytes: BytesMut::new(),
        }))
    }

    async fn flush(&self) -> Result<(), StoreError> {
        let store = self.site.store.clone();
        let effect = move || {
            let store = store.clone();
            async move { store.flush().await }.boxed()
        };
        self.ask(Kind::Flush, String::new(), effect).await
    }

    async fn delete(&self, key: &Key) -> Result<(), StoreError> {
        let (store, wanted) = (self.site.store.clone(), key.clone());
        let effect = move || {
            let (store, key) = (store.clone(), wanted.clone());
            async move { store.delete(&key).await }.boxed()
        };
        self.ask(Kind::Delete, key.to_string(), effect).await
    }

    fn list(&self, prefix: &str) -> BoxStream<'static, Result<Listed, StoreError>> {
        let (line, prefix) = (self.clone(), prefix.to_owned());
        let listing = async move {
            let (store, wanted) = (line.site.store.clone(), prefix.clone());
            let effect = move || store.list(&wanted).try_collect::<Vec<_>>().boxed();
            line.ask(Kind::List, prefix, effect).await
        };
        let listed = stream::once(listing).map_ok(|listed| stream::iter(listed.into_iter().map(Ok)));
        listed.try_flatten().boxed()
    }
}

impl Line {
    async fn write(&self, kind: Kind, key: &Key, bytes: Bytes, condition: Condition) -> Result<Version, StoreError> {
        let (store, wanted) = (self.site.store.clone(), key.clone());
        let effect = move || {
            let (store, key, bytes, condition) = (store.clone(), wanted.clone(), bytes.clone(), condition.clone());
            async move { store.put(&key, bytes, condition).await }.boxed()
        };
        self.ask(kind, key.to_string(), effect).await
    }

    /// A body may break at every chunk.
    fn body(&self, key: &Key, body: Body) -> Body {
        let reading = (self.clone(), key.to_string(), body);
        let next = |(line, key, mut body): (Self, String, Body)| async move {
            let Some(chunk) = body.try_next().await? else {
                return Ok(None);
            };
            line.step(Kind::Read, key.clone())?;
            Ok(Some((chunk, (line, key, body))))
        };
        stream::try_unfold(reading, next).boxed()
    }
}

/// An object that is being written. Its bytes are nobody else's before they are committed.
struct StagedLine {
    line: Line,
    name: String,
    bytes: BytesMut,
}

#[async_trait]
impl Staged for StagedLine {
    async fn write(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        self.line.step(Kind::Write, self.name.clone())?;
        self.bytes.extend_from_slice(&bytes);
        Ok(())
    }

    async fn commit(self: Box<Self>, key: &Key, condition: Condition) -> Result<Version, StoreError> {
        let Self { line, bytes, .. } = *self;
        line.write(Kind::Commit, key, bytes.freeze(), condition).await
    }
}
