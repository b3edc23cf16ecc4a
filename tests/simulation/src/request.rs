use futures_util::future::{BoxFuture, pending};
use store::StoreError;
use storekit::Injected;
use tokio::sync::oneshot;

use crate::fault::{Fault, Kind, Operation};
use crate::handle::StoreHandle;

/// One operation on the store, without its faults.
pub(crate) type Effect<T> = BoxFuture<'static, Result<T, StoreError>>;

/// One operation from its request to its answer.
impl StoreHandle {
    /// Does one operation, with its fault. Each call of `effect` does it once.
    ///
    /// It is done in a task of its own, as a server does a request: a caller that gives up does not
    /// stop it, and one that does not look for its answer holds up no other request.
    pub(crate) async fn request<T: Send + 'static>(
        &self,
        kind: Kind,
        subject: String,
        effect: impl Fn() -> Effect<T> + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        if self.process.is_cancelled() {
            return Err(failed(kind, &subject));
        }
        let (operation, fault) = self.begin(kind, subject.clone());
        if !self.world.may_wait() {
            let answer = self.perform(&operation, fault, effect).await;
            return answer.unwrap_or_else(|| Err(failed(kind, &subject)));
        }
        let (answer, answered) = oneshot::channel();
        let handle = self.clone();
        tokio::spawn(async move {
            let latency = handle.world.latency(&operation, fault);
            let _turn = handle.world.turn(latency, &operation).await;
            if let Some(result) = handle.perform(&operation, fault, effect).await {
                let _ = answer.send(result);
            }
        });
        match answered.await {
            Ok(result) => result,
            // The process was killed. The task that waits here ends with it and drops this future.
            Err(_) => pending().await,
        }
    }

    /// Does an operation now. Returns `None` if the fault killed the process.
    async fn perform<T: Send + 'static>(
        &self,
        operation: &Operation,
        fault: Option<Fault>,
        effect: impl Fn() -> Effect<T> + Send + Sync + 'static,
    ) -> Option<Result<T, StoreError>> {
        // The process was killed while the request was on its way: the request is lost.
        if self.process.is_cancelled() {
            return None;
        }
        let times = match fault {
            Some(Fault::Fails | Fault::Late | Fault::KillsBefore | Fault::KillsAndLate) => 0,
            Some(Fault::Repeated) => 2,
            None
            | Some(Fault::Slow | Fault::Pauses | Fault::Lost | Fault::Echo | Fault::KillsAfter) => {
                1
            }
        };
        let mut answer = Err(failed(operation.kind, &operation.subject));
        for _ in 0..times {
            answer = self.done(operation, fault, effect().await);
        }
        let is_killed = matches!(
            fault,
            Some(Fault::KillsBefore | Fault::KillsAfter | Fault::KillsAndLate)
        );
        if times == 0 || is_killed {
            answer = self.refused(operation, fault);
        }
        if let Some(Fault::Late | Fault::Echo | Fault::KillsAndLate) = fault {
            self.later(operation, fault == Some(Fault::Echo), effect);
        }
        if is_killed {
            // A thread that works for the process cannot be stopped, but none of its requests is
            // done any more.
            self.process.cancel();
            return None;
        }
        if fault == Some(Fault::Lost) {
            answer = Err(failed(operation.kind, &operation.subject));
        }
        Some(answer)
    }

    /// Does a part of an operation that no other process can see. It takes no time. Returns the
    /// number of equal ones before.
    pub(crate) fn step(&self, kind: Kind, subject: String) -> Result<u32, StoreError> {
        if self.process.is_cancelled() {
            return Err(failed(kind, &subject));
        }
        let (operation, fault) = self.begin(kind, subject);
        if fault.is_none() {
            return Ok(operation.nth);
        }
        let result = self.refused(&operation, fault);
        // The task that writes a staged object is not the one that is dropped when its process is
        // killed.
        if fault == Some(Fault::KillsBefore) {
            self.process.cancel();
        }
        result
    }

    fn begin(&self, kind: Kind, subject: String) -> (Operation, Option<Fault>) {
        let (operation, fault) = self
            .world
            .begin(self.actor, self.observed.side, kind, subject);
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
            self.observed.check(&self.world, operation);
        }
        result
    }

    /// Does an operation later, whatever has become of the caller. An acknowledged write of a
    /// pointer is not repeated after the catalog was removed: no protocol could promise anything,
    /// then.
    fn later<T: Send + 'static>(
        &self,
        operation: &Operation,
        echo: bool,
        effect: impl Fn() -> Effect<T> + Send + Sync + 'static,
    ) {
        let (handle, operation) = (self.clone(), operation.clone());
        tokio::spawn(async move {
            let lateness = handle.world.lateness(&operation);
            let _turn = handle.world.turn(lateness, &operation).await;
            if echo && handle.observed.is_removed(&operation) {
                return;
            }
            let _ = handle.done(&operation, Some(Fault::Late), effect().await);
        });
    }

    fn note<T>(&self, operation: &Operation, fault: Option<Fault>, result: &Result<T, StoreError>) {
        let outcome = match result {
            Ok(_) => "done",
            Err(StoreError::NotFound(_)) => "not found",
            Err(StoreError::Conflict(_)) => "conflict",
            Err(_) => "failed",
        };
        let fault = fault
            .map(|fault| format!(" ({fault:?})"))
            .unwrap_or_default();
        self.world
            .note(operation.actor, format!("{operation}: {outcome}{fault}"));
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
