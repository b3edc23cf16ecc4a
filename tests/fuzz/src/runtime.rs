use std::{cell::RefCell, future::Future};

use tokio::runtime::{Builder, Runtime};

thread_local! {
    /// One thread, so that an input takes the same way each time, as far as it can.
    static RUNTIME: RefCell<Option<Runtime>> = const { RefCell::new(None) };
}

/// Runs a future to its end.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.with_borrow_mut(|runtime| {
        let runtime = runtime.get_or_insert_with(|| {
            Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime can be started")
        });
        runtime.block_on(future)
    })
}
