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
        let work = || self.read(key, &get);
        self.call(Operation::Get, Action::Get, Some(key), work)
            .await
    }

    async fn head(&self, key: &Key) -> Result<Option<ObjectInfo>, StoreError> {
        let work = || Ok(self.entry(key).ok().map(|entry| entry.info));
        self.call(Operation::Get, Action::Head, Some(key), work)
            .await
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn stat(&self, key: &Key) -> Result<Stat, StoreError> {
        let work = || {
            let object = self.entry(key).ok().map(|entry| entry.info);
            let date = (self.clock)();
            Ok(Stat { date, object })
        };
        self.call(Operation::Get, Action::Stat, Some(key), work)
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
        let (store, bytes) = (self.clone(), BytesMut::new());
        Ok(Box::new(StagedBytes { store, bytes }))
    }

    async fn flush(&self) -> Result<(), StoreError> {
        let work = || {
            self.state().unflushed.clear();
            Ok(())
        };
        self.call(Operation::Flush, Action::Flush, None, work).await
    }

    async fn delete(&self, key: &Key) -> Result<(), StoreError> {
        let work = || {
            let mut state = self.state();
            state.objects.remove(key);
            state.unflushed.remove(key);
            Ok(())
        };
        self.call(Operation::Delete, Action::Delete, Some(key), work)
            .await
    }

    fn list(&self, prefix: &str) -> BoxStream<'static, Result<Listed, StoreError>> {
        let (store, prefix) = (self.clone(), prefix.to_owned());
        let listing = async move {
            let action = Action::List(prefix.clone());
            let work = || Ok(store.listed(&prefix));
            store.call(Operation::List, action, None, work).await
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
        let work = || {
            let modified = (self.clock)();
            let written = self.state().put(key, bytes, &condition, modified);
            written.ok_or_else(|| StoreError::conflict(key))
        };
        self.call(Operation::Put, action, Some(key), work).await
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

    fn read(&self, key: &Key, get: &Get) -> Result<Fetched, StoreError> {
        let Entry { bytes, info } = self.entry(key)?;
        if get.unless.as_ref() == Some(&info.version) {
            return Ok(Fetched::NotModified);
        }
        let range = get.resolve(info.size, key)?;
        let [start, end] = [range.start, range.end]
            .map(|at| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len()));
        let body = self.body(key.clone(), bytes.slice(start..end));
        Ok(Fetched::Object(Object { info, body }))
    }

    fn body(&self, key: Key, bytes: Bytes) -> Body {
        let reading = (self.clone(), key, bytes);
        let next = |(store, key, mut rest): (Self, Key, Bytes)| async move {
            if rest.is_empty() {
                return Ok(None);
            }
            let chunk = rest.split_to(rest.len().min(CHUNK));
            let work = || Ok(chunk);
            let chunk = store
                .call(Operation::Get, Action::Read, Some(&key), work)
                .await?;
            Ok(Some((chunk, (store, key, rest))))
        };
        stream::try_unfold(reading, next).boxed()
    }

    fn listed(&self, prefix: &str) -> Vec<Listed> {
        let state = self.state();
        let objects = state.objects.iter();
        objects
            .filter(|(key, _)| key.to_string().starts_with(prefix))
            .map(|(key, entry)| Listed {
                key: key.clone(),
                size: entry.info.size,
                modified: entry.info.modified,
            })
            .collect()
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
        let work = || {
            self.bytes.extend_from_slice(&bytes);
            Ok(())
        };
        store.call(Operation::Put, Action::Write, None, work).await
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
