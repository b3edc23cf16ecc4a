use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt as _, TryStreamExt as _, stream, stream::BoxStream};
use model::Key;

use crate::{Action, Answer, Call, Injected, MemoryStore, Moment, state::Entry};
use store::{
    Body, Condition, Fetched, Get, Listed, Object, ObjectInfo, Operation, ReadStore, Staged, Stat,
    Store, StoreError, Version,
};

/// Size of the chunks of a body in bytes. It is small, so that tests with small objects see bodies
/// that break half way.
const CHUNK: usize = 16 << 10;

#[async_trait]
impl ReadStore for MemoryStore {
    async fn get(&self, key: &Key, get: Get) -> Result<Fetched, StoreError> {
        self.call(Operation::Get, Action::Get, Some(key), || {
            self.read(key, &get)
        })
        .await
    }

    async fn head(&self, key: &Key) -> Result<Option<ObjectInfo>, StoreError> {
        self.call(Operation::Get, Action::Head, Some(key), || {
            Ok(self.info(key))
        })
        .await
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn stat(&self, key: &Key) -> Result<Stat, StoreError> {
        self.call(Operation::Get, Action::Stat, Some(key), || {
            Ok(Stat {
                object: self.info(key),
                date: (self.clock)(),
            })
        })
        .await
    }

    async fn put(
        &self,
        key: &Key,
        bytes: Bytes,
        condition: Condition,
    ) -> Result<Version, StoreError> {
        self.write(key, bytes, condition.clone(), Action::Put(condition))
            .await
    }

    async fn stage(&self) -> Result<Box<dyn Staged>, StoreError> {
        self.call(Operation::Put, Action::Stage, None, || Ok(()))
            .await?;
        Ok(Box::new(StagedBytes {
            store: self.clone(),
            bytes: BytesMut::new(),
        }))
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.call(Operation::Flush, Action::Flush, None, || {
            self.state().unflushed.clear();
            Ok(())
        })
        .await
    }

    async fn delete(&self, key: &Key) -> Result<(), StoreError> {
        self.call(Operation::Delete, Action::Delete, Some(key), || {
            let mut state = self.state();
            state.objects.remove(key);
            state.unflushed.remove(key);
            Ok(())
        })
        .await
    }

    fn list(&self, prefix: &str) -> BoxStream<'static, Result<Listed, StoreError>> {
        let store = self.clone();
        let prefix = prefix.to_owned();
        let listing = async move {
            let action = Action::List(prefix.clone());
            store
                .call(Operation::List, action, None, || Ok(store.listed(&prefix)))
                .await
        };
        stream::once(listing)
            .map_ok(|listed| stream::iter(listed.into_iter().map(Ok)))
            .try_flatten()
            .boxed()
    }
}

impl MemoryStore {
    /// Does one operation between the two questions to the hook.
    async fn call<T: Send>(
        &self,
        operation: Operation,
        action: Action,
        key: Option<&Key>,
        work: impl FnOnce() -> Result<T, StoreError> + Send,
    ) -> Result<T, StoreError> {
        let call = self.record(action, key);
        self.ask(&call, Moment::Before, operation).await?;
        let done = work()?;
        self.ask(&call, Moment::After, operation).await?;
        Ok(done)
    }

    /// Writes an object at once.
    async fn write(
        &self,
        key: &Key,
        bytes: Bytes,
        condition: Condition,
        action: Action,
    ) -> Result<Version, StoreError> {
        self.call(Operation::Put, action, Some(key), || {
            let modified = (self.clock)();
            let written = self.state().put(key, bytes, &condition, modified);
            written.ok_or_else(|| StoreError::conflict(key))
        })
        .await
    }

    fn record(&self, action: Action, key: Option<&Key>) -> Call {
        let mut state = self.state();
        let call = Call {
            number: state.calls,
            action,
            key: key.cloned(),
        };
        state.calls += 1;
        state.log.push(call.clone());
        call
    }

    async fn ask(
        &self,
        call: &Call,
        moment: Moment,
        operation: Operation,
    ) -> Result<(), StoreError> {
        let mut answer = self.hook()(call, moment);
        loop {
            answer = match answer {
                Answer::GoOn => return Ok(()),
                Answer::Fail => return Err(StoreError::failed(operation, &call.name(), Injected)),
                Answer::Deny => return Err(StoreError::denied(operation, &call.name(), Injected)),
                Answer::Conflict => return Err(StoreError::conflict(&call.name())),
                Answer::Wait(until) => until.await,
            };
        }
    }

    fn entry(&self, key: &Key) -> Result<Entry, StoreError> {
        let found = self.state().objects.get(key).cloned();
        found.ok_or_else(|| StoreError::not_found(key))
    }

    fn info(&self, key: &Key) -> Option<ObjectInfo> {
        self.state()
            .objects
            .get(key)
            .map(|entry| entry.info.clone())
    }

    fn read(&self, key: &Key, get: &Get) -> Result<Fetched, StoreError> {
        let Entry { bytes, info } = self.entry(key)?;
        if get.unless.as_ref() == Some(&info.version) {
            return Ok(Fetched::NotModified);
        }
        let range = get.resolve(info.size, key)?;
        let start = usize::try_from(range.start).unwrap_or(usize::MAX);
        let end = usize::try_from(range.end).unwrap_or(usize::MAX);
        let bytes = bytes.slice(start.min(bytes.len())..end.min(bytes.len()));
        let body = self.body(key.clone(), bytes);
        Ok(Fetched::Object(Object { info, body }))
    }

    fn body(&self, key: Key, bytes: Bytes) -> Body {
        let reading = (self.clone(), key, bytes);
        stream::try_unfold(reading, |(store, key, mut rest)| async move {
            if rest.is_empty() {
                return Ok(None);
            }
            let next = rest.split_to(rest.len().min(CHUNK));
            let chunk = store
                .call(Operation::Get, Action::Read, Some(&key), || Ok(next))
                .await?;
            Ok(Some((chunk, (store, key, rest))))
        })
        .boxed()
    }

    fn listed(&self, prefix: &str) -> Vec<Listed> {
        let mut listed = Vec::new();
        for (key, entry) in &self.state().objects {
            if key.to_string().starts_with(prefix) {
                listed.push(Listed {
                    key: key.clone(),
                    size: entry.info.size,
                    modified: entry.info.modified,
                });
            }
        }
        listed
    }
}

/// Object that is being written in memory.
struct StagedBytes {
    store: MemoryStore,
    bytes: BytesMut,
}

#[async_trait]
impl Staged for StagedBytes {
    async fn write(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        let store = self.store.clone();
        store
            .call(Operation::Put, Action::Write, None, || {
                self.bytes.extend_from_slice(&bytes);
                Ok(())
            })
            .await
    }

    async fn commit(
        self: Box<Self>,
        key: &Key,
        condition: Condition,
    ) -> Result<Version, StoreError> {
        let Self { store, bytes } = *self;
        let action = Action::Commit(condition.clone());
        store.write(key, bytes.freeze(), condition, action).await
    }
}
