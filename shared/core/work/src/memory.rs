use std::{collections::VecDeque, sync::Arc, time::Duration};

use parking_lot::{Condvar, Mutex};
/// Time between two looks at the flag of a request that waits. Work that ran out of time ends that
/// much later.
const STOP_INTERVAL: Duration = Duration::from_millis(100);

/// Memory for all foreign data that a process holds at a time.
///
/// Memory is taken for what has been read, and given back when it has been parsed or written. So
/// what holds memory needs nothing but the processor, and every wait ends. Requests are served in
/// their order: a large one is not passed by small ones for ever. Copies share the same memory.
#[derive(Clone, Debug)]
pub struct MemoryPool(Arc<SharedPool>);

#[derive(Debug)]
struct SharedPool {
    capacity: usize,
    state: Mutex<PoolState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct PoolState {
    taken: usize,
    next_ticket: u64,
    /// Tickets of the requests that wait, in order.
    waiting: VecDeque<u64>,
}

/// Part of a [`MemoryPool`], given back when it is dropped.
#[derive(Debug)]
pub struct MemoryShare {
    pool: MemoryPool,
    bytes: usize,
}

impl MemoryPool {
    /// Default capacity in bytes: four of the largest documents of real catalogs, 10 MB, at eight
    /// times their size.
    pub const DEFAULT_BYTES: usize = 256 << 20;

    /// Creates a pool of this many bytes.
    pub fn new(capacity: usize) -> Self {
        Self(Arc::new(SharedPool {
            capacity,
            state: Mutex::default(),
            changed: Condvar::new(),
        }))
    }

    /// Returns the number of bytes that can be taken at a time.
    pub fn capacity(&self) -> usize {
        self.0.capacity
    }

    /// Returns the number of bytes that are taken.
    pub fn taken(&self) -> usize {
        self.0.state.lock().taken
    }

    /// Waits for memory and takes it: at most all there is. Returns `None` if `is_stopped` is true
    /// first.
    pub(crate) fn take(&self, bytes: usize, is_stopped: impl Fn() -> bool) -> Option<MemoryShare> {
        // Only a chunk of many documents asks for more, and each of them fits.
        let bytes = bytes.min(self.0.capacity);
        let mut state = self.0.state.lock();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.waiting.push_back(ticket);
        while state.waiting.front() != Some(&ticket) || bytes > self.0.capacity - state.taken {
            if is_stopped() {
                state.waiting.retain(|waiting| *waiting != ticket);
                drop(state);
                self.0.changed.notify_all();
                return None;
            }
            self.0.changed.wait_for(&mut state, STOP_INTERVAL);
        }
        state.waiting.pop_front();
        state.taken += bytes;
        drop(state);
        // The next one may fit too.
        self.0.changed.notify_all();
        let pool = self.clone();
        Some(MemoryShare { pool, bytes })
    }
}

impl Default for MemoryPool {
    fn default() -> Self {
        Self::new(Self::DEFAULT_BYTES)
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.pool.0.state.lock().taken -= self.bytes;
        self.pool.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread};

    use super::*;

    fn take(pool: &MemoryPool, bytes: usize) -> MemoryShare {
        pool.take(bytes, || false).unwrap()
    }

    #[test]
    fn take_beyond_the_capacity_takes_all() {
        let pool = MemoryPool::new(10);
        let share = take(&pool, 11);
        assert_eq!(pool.taken(), 10);
        drop(share);
        assert_eq!(pool.taken(), 0);
    }

    #[test]
    fn take_serves_requests_in_their_order() {
        let pool = MemoryPool::new(10);
        let first = take(&pool, 6);
        let (done, order) = mpsc::channel();
        let mut waiting = Vec::new();
        for (count, bytes) in [(1, 8), (2, 3)] {
            let (pool, done) = (pool.clone(), done.clone());
            let threads = pool.clone();
            waiting.push(thread::spawn(move || {
                let share = take(&pool, bytes);
                done.send(bytes).unwrap();
                drop(share);
            }));
            while threads.0.state.lock().waiting.len() < count {
                thread::yield_now();
            }
        }
        // 3 bytes are free, but 8 were asked for before.
        assert!(order.try_recv().is_err());
        drop(first);
        waiting
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        assert_eq!(order.try_iter().collect::<Vec<_>>(), [8, 3]);
    }

    #[test]
    fn take_that_is_stopped_leaves_the_queue() {
        let pool = MemoryPool::new(10);
        let share = take(&pool, 10);
        assert!(pool.take(1, || true).is_none());
        drop(share);
        take(&pool, 10);
    }
}
