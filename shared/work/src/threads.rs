use std::thread::{self, ScopedJoinHandle};

use parking_lot::Mutex;

/// Does `work` for each item, on up to `threads` threads. Each takes the next item when it has done one. Returns the results in the
/// order of the items.
///
/// # Panics
/// Panics if `work` does.
pub fn for_each<I: Send, T: Send>(items: Vec<I>, threads: usize, work: impl Fn(I) -> T + Sync) -> Vec<T> {
    let threads = threads.min(items.len());
    if threads < 2 {
        return items.into_iter().map(work).collect();
    }
    let items = Mutex::new(items.into_iter().enumerate());
    let next = || items.lock().next();
    let some = || {
        let taken = std::iter::from_fn(next);
        taken.map(|(at, item)| (at, work(item))).collect::<Vec<_>>()
    };
    let mut done = thread::scope(|scope| {
        let working: Vec<_> = (0..threads).map(|_| scope.spawn(some)).collect();
        let done = working.into_iter().map(ScopedJoinHandle::join);
        let done = done.map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        done.flatten().collect::<Vec<_>>()
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn for_each_returns_the_results_in_order_for_any_number_of_threads() {
        let items: Vec<usize> = (0..100).collect();
        for threads in [0, 1, 3, 200] {
            assert_eq!(
                for_each(items.clone(), threads, |item| item * 2),
                (0..200).step_by(2).collect::<Vec<_>>()
            );
        }
        assert_eq!(for_each(Vec::<u8>::new(), 2, |item| item), []);
    }
}
