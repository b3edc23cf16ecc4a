use futures_util::future::BoxFuture;
use layout::Key;

use crate::Condition;

/// What is being asked of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// [`Store::get`](crate::Store::get).
    Get,
    /// One chunk of a body is about to be passed on.
    Read,
    /// [`Store::head`](crate::Store::head).
    Head,
    /// [`Store::put`](crate::Store::put).
    Put(Condition),
    /// [`Store::stage`](crate::Store::stage).
    Stage,
    /// [`Staged::write`](crate::Staged::write).
    Write,
    /// [`Staged::commit`](crate::Staged::commit).
    Commit(Condition),
    /// [`Store::flush`](crate::Store::flush).
    Flush,
    /// [`Store::delete`](crate::Store::delete).
    Delete,
    /// [`Store::list`](crate::Store::list), of keys with this prefix.
    List(String),
}

/// One operation, as the hook and the log see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Counts the operations of the store, from 0.
    pub number: u64,
    /// What is being asked.
    pub action: Action,
    /// The object it is about, if it is about one.
    pub key: Option<Key>,
}

/// When the hook is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Moment {
    /// Nothing is done yet.
    Before,
    /// It is done and has succeeded, but the caller does not know yet.
    After,
}

/// What the hook wants to happen.
pub enum Answer {
    /// All is well.
    GoOn,
    /// The operation fails. After the operation this is a lost acknowledgement: it is done, the caller is told otherwise.
    Fail,
    /// The operation is not allowed. Nothing for after the operation, when it was.
    Deny,
    /// The caller is told that another writer was faster. After the operation this is what a caller sees whose first
    /// request was done, whose acknowledgement was lost, and whose client repeated the request by itself.
    Conflict,
    /// Nothing goes on until the future is done; then its answer counts. A task that is dropped meanwhile is a process
    /// that was killed at this point.
    Wait(BoxFuture<'static, Answer>),
}

/// Decides on every operation, at both its moments. Called without any lock held, so it may use the store's handle.
pub type Hook = dyn Fn(&Call, Moment) -> Answer + Send + Sync;

/// Why an operation failed that a hook let fail.
#[derive(Debug, thiserror::Error)]
#[error("the test wants it so")]
pub struct Injected;
