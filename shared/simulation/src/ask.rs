use futures_util::future::{BoxFuture, pending};
use layout::Key;
use store::{StoreError, memory::Injected};

use crate::{
    fault::{Fault, Kind, Operation},
    line::Line,
};

type Effect<T> = BoxFuture<'static, Result<T, StoreError>>;

/// One operation from the moment in which it is asked for to its answer.
impl Line {
    /// `effect` does it, each time that it is called.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        kind: Kind,
        subject: String,
        effect: impl Fn() -> Effect<T> + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        if self.life.is_cancelled() {
            return Err(failed(kind, &subject));
        }
        let (operation, fault) = self.begin(kind, subject);
        let _turn = match self.world.may_wait() {
            true => Some(self.world.turn(self.world.latency(&operation, fault), &operation).await),
            false => None,
        };
        // Killed on its way: the request is lost.
        if self.life.is_cancelled() {
            return Err(failed(kind, &operation.subject));
        }
        match fault {
            None | Some(Fault::Slow) => self.done(&operation, fault, effect().await),
            Some(Fault::Fails) => self.refused(&operation, fault),
            Some(Fault::Lost) => {
                let _ = self.done(&operation, fault, effect().await);
                Err(failed(kind, &operation.subject))
            }
            Some(Fault::Twice) => {
                let _ = self.done(&operation, fault, effect().await);
                self.done(&operation, fault, effect().await)
            }
            Some(Fault::Late) => {
                self.later(&operation, false, effect);
                self.refused(&operation, fault)
            }
            Some(Fault::Echo) => {
                let result = self.done(&operation, fault, effect().await);
                self.later(&operation, true, effect);
                result
            }
            Some(Fault::KillsBefore) => self.die(&operation, Fault::KillsBefore).await,
            Some(Fault::KillsAfter) => {
                let _ = self.done(&operation, fault, effect().await);
                self.die(&operation, Fault::KillsAfter).await
            }
            Some(Fault::KillsAndLate) => {
                self.later(&operation, false, effect);
                self.die(&operation, Fault::KillsAndLate).await
            }
        }
    }

    /// A part of an operation that nobody else can see: it takes no time, and leaves no trace unless it fails. Returns
    /// how often there was one like it.
    pub(crate) fn step(&self, kind: Kind, subject: String) -> Result<u32, StoreError> {
        if self.life.is_cancelled() {
            return Err(failed(kind, &subject));
        }
        let (operation, fault) = self.begin(kind, subject);
        match fault {
            Some(fault) => {
                let result = self.refused(&operation, Some(fault));
                // The task that writes a staged object is not the one that is dropped when its process is killed.
                if fault == Fault::KillsBefore {
                    self.life.cancel();
                }
                result
            }
            None => Ok(operation.nth),
        }
    }

    fn begin(&self, kind: Kind, subject: String) -> (Operation, Option<Fault>) {
        let (operation, fault) = self.world.begin(self.actor, self.site.side, kind, subject);
        (operation, fault.filter(|_| !self.steady))
    }

    fn refused<T>(&self, operation: &Operation, fault: Option<Fault>) -> Result<T, StoreError> {
        let result = Err(failed(operation.kind, &operation.subject));
        self.note(operation, fault, &result);
        result
    }

    fn done<T>(
        &self,
        operation: &Operation,
        fault: Option<Fault>,
        result: Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.note(operation, fault, &result);
        if result.is_ok() {
            if let (Kind::Put, Some(key)) = (operation.kind, Key::parse(&operation.subject)) {
                self.site.witness().wrote(key);
            }
            self.site.look(&self.world, operation);
        }
        result
    }

    /// What was acknowledged is not repeated after its effect was removed: as with removals, nothing could be promised
    /// then.
    fn later<T: Send + 'static>(
        &self,
        operation: &Operation,
        echo: bool,
        effect: impl Fn() -> Effect<T> + Send + Sync + 'static,
    ) {
        let (line, operation) = (self.clone(), operation.clone());
        tokio::spawn(async move {
            let lateness = line.world.lateness(&operation);
            let _turn = line.world.turn(lateness, &operation).await;
            if echo && line.site.is_removed(&operation) {
                return;
            }
            let _ = line.done(&operation, Some(Fault::Late), effect().await);
        });
    }

    /// A thread that works for the killed process cannot be stopped, but nothing it asks for is done any more.
    async fn die<T>(&self, operation: &Operation, fault: Fault) -> Result<T, StoreError> {
        let result = self.refused(operation, Some(fault));
        self.life.cancel();
        if self.world.may_wait() {
            return pending().await;
        }
        result
    }

    fn note<T>(&self, operation: &Operation, fault: Option<Fault>, result: &Result<T, StoreError>) {
        let outcome = match result {
            Ok(_) => "done",
            Err(StoreError::NotFound { .. }) => "not found",
            Err(StoreError::Conflict { .. }) => "conflict",
            Err(_) => "failed",
        };
        let fault = fault.map(|fault| format!(" ({fault:?})")).unwrap_or_default();
        let Operation {
            side,
            kind,
            subject,
            nth,
            ..
        } = operation;
        let what = format!("{side:?} {kind:?} {subject} #{nth}: {outcome}{fault}");
        self.world.note(operation.actor, what);
    }
}

fn failed(kind: Kind, subject: &str) -> StoreError {
    use store::Operation::{Delete, Flush, Get, List, Put};
    let operation = match kind {
        Kind::Get | Kind::Read | Kind::Head => Get,
        Kind::Put | Kind::Stage | Kind::Write | Kind::Commit => Put,
        Kind::Flush => Flush,
        Kind::Delete => Delete,
        Kind::List => List,
    };
    StoreError::failed(operation, &subject, Injected)
}
