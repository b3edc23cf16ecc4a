use std::thread;

use parking_lot::Mutex;

/// Does `work` for each item, on up to `threads` threads. Each takes the largest item that is left
/// when it has done one, so that they end at about the same time. Returns the results in the order
/// of the items.
///
/// # Panics
/// Panics if `work` does.
pub fn for_each<I: Send, T: Send>(
    items: Vec<I>,
    threads: usize,
    size: impl Fn(&I) -> u64,
    work: impl Fn(I) -> T + Sync,
) -> Vec<T> {
    let threads = threads.min(items.len());
    if threads < 2 {
        return items.into_iter().map(work).collect();
    }
    let mut sorted: Vec<_> = items.into_iter().enumerate().collect();
    sorted.sort_by_key(|(_, item)| size(item));
    let left = Mutex::new(sorted);
    let mut done = Vec::new();
    thread::scope(|scope| {
        let mut working = Vec::new();
        for _ in 0..threads {
            working.push(scope.spawn(|| {
                let taken = std::iter::from_fn(|| left.lock().pop());
                taken.map(|(at, item)| (at, work(item))).collect::<Vec<_>>()
            }));
        }
        for thread in working {
            match thread.join() {
                Ok(results) => done.extend(results),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
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
            let doubled = for_each(
                items.clone(),
                threads,
                |item| (item % 7) as u64,
                |item| item * 2,
            );
            assert_eq!(doubled, Vec::from_iter((0..200).step_by(2)));
        }
        assert_eq!(for_each(Vec::<u8>::new(), 2, |_| 0, |item| item), []);
    }
}
