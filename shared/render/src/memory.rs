use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::Duration,
};

use fbc::StopFlag;

/// Time between two looks at the flag of a request that waits. A catalog that ran out of time ends that much later.
const STOP_INTERVAL: Duration = Duration::from_millis(100);

/// Memory for all documents that a process parses at a time.
///
/// Memory is taken for a chunk when it has been read, and given back when it has been parsed. So what holds memory needs
/// nothing but the processor, and every wait ends. Requests are served in their order: a large one is not passed by small
/// ones for ever. Copies share the same memory.
#[derive(Clone, Debug)]
pub struct MemoryBudget(Arc<SharedBudget>);

#[derive(Debug)]
struct SharedBudget {
    capacity: usize,
    state: Mutex<BudgetState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct BudgetState {
    taken: usize,
    next_ticket: u64,
    /// Tickets of the requests that wait, in order.
    waiting: VecDeque<u64>,
}

/// Part of a [`MemoryBudget`], given back when it is dropped.
#[derive(Debug)]
pub(crate) struct MemoryShare {
    budget: MemoryBudget,
    bytes: usize,
}

impl MemoryBudget {
    /// Default capacity in bytes: four of the largest documents of real catalogs, 10 MB, at eight times their size.
    pub const DEFAULT_BYTES: usize = 256 << 20;

    /// Creates a budget of this many bytes.
    pub fn new(capacity: usize) -> Self {
        Self(Arc::new(SharedBudget {
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
        self.lock().taken
    }

    /// Waits for memory and takes it: at most all there is. Returns `None` if `stop` is set first.
    pub(crate) fn take(&self, bytes: usize, stop: &StopFlag) -> Option<MemoryShare> {
        // Only a chunk of many documents asks for more, and each of them fits.
        let bytes = bytes.min(self.0.capacity);
        let mut state = self.lock();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.waiting.push_back(ticket);
        while state.waiting.front() != Some(&ticket) || bytes > self.0.capacity - state.taken {
            if stop.is_stopped() {
                state.waiting.retain(|waiting| *waiting != ticket);
                drop(state);
                self.0.changed.notify_all();
                return None;
            }
            let waited = self.0.changed.wait_timeout(state, STOP_INTERVAL);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.waiting.pop_front();
        state.taken += bytes;
        drop(state);
        // The next one may fit too.
        self.0.changed.notify_all();
        Some(MemoryShare {
            budget: self.clone(),
            bytes,
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BudgetState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryBudget {
    fn default() -> Self {
        Self::new(Self::DEFAULT_BYTES)
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.budget.lock().taken -= self.bytes;
        self.budget.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread};

    use super::*;

    fn take(budget: &MemoryBudget, bytes: usize) -> MemoryShare {
        budget.take(bytes, &StopFlag::default()).unwrap()
    }

    #[test]
    fn take_beyond_the_capacity_takes_all() {
        let budget = MemoryBudget::new(10);
        let share = take(&budget, 11);
        assert_eq!(budget.taken(), 10);
        drop(share);
        assert_eq!(budget.taken(), 0);
    }

    #[test]
    fn take_serves_requests_in_their_order() {
        let budget = MemoryBudget::new(10);
        let first = take(&budget, 6);
        let (done, order) = mpsc::channel();
        let mut waiting = Vec::new();
        for (count, bytes) in [(1, 8), (2, 3)] {
            let (budget, done) = (budget.clone(), done.clone());
            let threads = budget.clone();
            waiting.push(thread::spawn(move || {
                let share = take(&budget, bytes);
                done.send(bytes).unwrap();
                drop(share);
            }));
            while threads.lock().waiting.len() < count {
                thread::yield_now();
            }
        }
        assert!(
            order.try_recv().is_err(),
            "3 bytes are free, but 8 were asked for before"
        );
        drop(first);
        waiting.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(order.try_iter().collect::<Vec<_>>(), [8, 3]);
    }

    #[test]
    fn take_that_is_stopped_leaves_the_queue() {
        let budget = MemoryBudget::new(10);
        let share = take(&budget, 10);
        let stop = StopFlag::default();
        stop.stop();
        assert!(budget.take(1, &stop).is_none());
        drop(share);
        take(&budget, 10);
    }
}
