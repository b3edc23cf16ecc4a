use std::{cell::RefCell, future::Future};

use tokio::runtime::{Builder, Runtime};

thread_local! {
    /// A single thread, so that an input takes the same path each time as far as possible.
    static RUNTIME: RefCell<Option<Runtime>> = const { RefCell::new(None) };
}

/// Runs a future on the current thread to its end.
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
