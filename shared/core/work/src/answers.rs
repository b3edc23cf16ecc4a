use std::collections::{HashMap, VecDeque};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use slab::Slab;

/// Largest answer that a client gets without waiting if it has no other, in bytes. The server
/// limits its clients, and a probe must not fail because others take all memory.
const FREE_BYTES: u64 = 16 << 10;

/// Maximum number of answers of one client that wait. One more is refused at once.
const WAITING_OF_CLIENT: usize = 16;

/// Maximum number of answers that wait, each with the head of its request. With one more, the last
/// one of the queue is refused.
const WAITING_MAX: usize = 256;

/// Memory for all answers that a server makes and sends at a time.
///
/// Clients take an answer as slowly as they like, so its memory is taken before its work begins. It
/// is given back when the last byte was sent, or the client has gone. These rules share it:
///
/// - A client may hold half of what is free beside the last quarter. So something is left for the
///   next one, however many there are.
/// - A client that has shown that it reads ([`ClientMemory::trust`]) may hold as much as is free.
/// - Other answers wait for a time, and are refused then. The first answer of each client goes
///   before the second one of any, however many a client asks for. Among equals the newest one gets
///   memory first: the client of an old one has mostly given up.
///
/// Copies share the same memory.
#[derive(Clone, Debug)]
pub struct AnswerMemory(Arc<SharedMemory>);

/// Wait of a time.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

#[derive(Debug)]
struct SharedMemory {
    patience: Duration,
    sleep: fn(Duration) -> Sleep,
    state: Mutex<MemoryState>,
}

#[derive(Debug)]
struct MemoryState {
    capacity: u64,
    taken: u64,
    refused: u64,
    clients: Slab<ClientState>,
    waiters: Slab<Waiter>,
    /// Keys of the waiters that have no result yet. The last one gets memory first.
    queue: VecDeque<usize>,
    /// Bytes that several answers may send, by their address.
    shared: HashMap<usize, SharedBytes>,
}

#[derive(Debug, Default)]
struct ClientState {
    held: u64,
    /// Number of its answers that wait.
    waiting: usize,
    is_trusted: bool,
}

#[derive(Debug)]
struct Waiter {
    client: usize,
    bytes: u64,
    /// Number of answers of its client that waited already or held memory.
    others: usize,
    result: Option<Result<(), NoMemory>>,
    waker: Option<Waker>,
}

#[derive(Debug)]
struct SharedBytes {
    length: u64,
    answers: usize,
}

/// Part of one client, such as a connection, in an [`AnswerMemory`]. Copies are the same client.
#[derive(Clone, Debug)]
pub struct ClientMemory(Arc<Client>);

#[derive(Debug)]
struct Client {
    memory: AnswerMemory,
    /// Key of its state.
    key: usize,
}

/// Memory of one answer. It is given back when this is dropped, and all bytes that hold it.
#[derive(Debug)]
pub struct HeldMemory {
    client: ClientMemory,
    /// Number of bytes that only this answer takes.
    own: u64,
    /// Bytes that other answers may send too.
    shared: Option<SharedPart>,
}

#[derive(Debug)]
struct SharedPart {
    address: usize,
    /// Number of bytes that count for the client: all of them for the first answer, none for later
    /// ones.
    counted: u64,
}

/// Error of an answer for which there is no memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("other answers take all memory; try again later")]
pub struct NoMemory;

impl AnswerMemory {
    /// Creates memory of this many bytes. An answer waits for it as long as `patience`, by `sleep`:
    /// this crate knows no runtime.
    pub fn new(capacity: u64, patience: Duration, sleep: fn(Duration) -> Sleep) -> Self {
        let state = MemoryState {
            capacity,
            taken: 0,
            refused: 0,
            clients: Slab::new(),
            waiters: Slab::new(),
            queue: VecDeque::new(),
            shared: HashMap::new(),
        };
        Self(Arc::new(SharedMemory {
            patience,
            sleep,
            state: Mutex::new(state),
        }))
    }

    /// Adds a client. It leaves when its last copy and its last answer are dropped.
    pub fn client(&self) -> ClientMemory {
        let key = self.0.state.lock().clients.insert(ClientState::default());
        ClientMemory(Arc::new(Client {
            memory: self.clone(),
            key,
        }))
    }

    /// Returns the number of bytes that can be taken at a time.
    pub fn capacity(&self) -> u64 {
        self.0.state.lock().capacity
    }

    /// Returns the number of bytes that are taken.
    pub fn taken(&self) -> u64 {
        self.0.state.lock().taken
    }

    /// Returns the number of answers that were refused so far.
    pub fn refused(&self) -> u64 {
        self.0.state.lock().refused
    }

    /// Changes the state, gives memory to the answers that can have it then, and wakes them.
    fn change<T>(&self, change: impl FnOnce(&mut MemoryState) -> T) -> T {
        let mut state = self.0.state.lock();
        let result = change(&mut state);
        let wakers = state.serve_queue();
        // A waker may run what needs the lock.
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        result
    }
}

impl MemoryState {
    /// Returns the number of bytes that all clients without trust may take.
    const fn open(&self) -> u64 {
        self.capacity - self.capacity / 4
    }

    /// True if a client may take this many bytes more.
    fn has_room(&self, client: usize, bytes: u64) -> bool {
        let client = &self.clients[client];
        if client.held == 0 && bytes <= FREE_BYTES {
            return true;
        }
        let room = if client.is_trusted {
            self.capacity.saturating_sub(self.taken)
        } else {
            self.open().saturating_sub(self.taken) / 2
        };
        client.held + bytes <= room
    }

    fn take(&mut self, client: usize, bytes: u64) {
        self.taken += bytes;
        self.clients[client].held += bytes;
    }

    fn give_back(&mut self, client: usize, bytes: u64) {
        self.taken -= bytes;
        self.clients[client].held -= bytes;
    }

    /// Takes memory, or returns the key of a waiter for it.
    fn take_or_wait(&mut self, client: usize, bytes: u64) -> Result<Option<usize>, NoMemory> {
        if self.has_room(client, bytes) {
            self.take(client, bytes);
            return Ok(None);
        }
        let asking = &mut self.clients[client];
        if asking.waiting == WAITING_OF_CLIENT {
            self.refused += 1;
            return Err(NoMemory);
        }
        let others = asking.waiting + usize::from(asking.held > 0);
        asking.waiting += 1;
        let waiter = self.waiters.insert(Waiter {
            client,
            bytes,
            others,
            result: None,
            waker: None,
        });
        let place = self
            .queue
            .partition_point(|key| self.waiters[*key].others >= others);
        self.queue.insert(place, waiter);
        Ok(Some(waiter))
    }

    /// Ends the wait of the waiter at a place in the queue. Returns its waker.
    fn end_wait(&mut self, at: usize, result: Result<(), NoMemory>) -> Option<Waker> {
        let waiter = &mut self.waiters[self.queue.remove(at)?];
        self.clients[waiter.client].waiting -= 1;
        self.refused += u64::from(result.is_err());
        waiter.result = Some(result);
        waiter.waker.take()
    }

    /// Gives memory to answers that wait, and refuses those that are too many. Returns the wakers of
    /// all of them.
    fn serve_queue(&mut self) -> Vec<Waker> {
        let mut wakers = Vec::new();
        for at in (0..self.queue.len()).rev() {
            let Waiter { client, bytes, .. } = self.waiters[self.queue[at]];
            if self.has_room(client, bytes) {
                self.take(client, bytes);
                wakers.extend(self.end_wait(at, Ok(())));
            }
        }
        while self.queue.len() > WAITING_MAX {
            wakers.extend(self.end_wait(0, Err(NoMemory)));
        }
        wakers
    }

    /// Removes a waiter. One that still waits is refused, and memory that was not taken is given
    /// back.
    fn remove_waiter(&mut self, key: usize) {
        if let Some(at) = self.queue.iter().position(|waiting| *waiting == key) {
            self.end_wait(at, Err(NoMemory));
        }
        let waiter = self.waiters.remove(key);
        if waiter.result == Some(Ok(())) {
            self.give_back(waiter.client, waiter.bytes);
        }
    }

    /// Returns the number of bytes that an answer adds by sending these.
    fn added(&self, bytes: &Bytes) -> u64 {
        match self.shared.contains_key(&address(bytes)) {
            true => 0,
            false => bytes.len() as u64,
        }
    }

    /// Adds an answer to those that send these bytes.
    fn share(&mut self, client: usize, bytes: &Bytes) -> SharedPart {
        let counted = self.added(bytes);
        self.take(client, counted);
        let shared = self.shared.entry(address(bytes));
        let shared = shared.or_insert(SharedBytes {
            length: counted,
            answers: 0,
        });
        shared.answers += 1;
        SharedPart {
            address: address(bytes),
            counted,
        }
    }

    /// Removes an answer from those that send bytes. They count until the last one has gone.
    fn unshare(&mut self, client: usize, part: &SharedPart) {
        self.clients[client].held -= part.counted;
        if let Some(shared) = self.shared.get_mut(&part.address) {
            shared.answers -= 1;
            if shared.answers == 0 {
                self.taken -= shared.length;
                self.shared.remove(&part.address);
            }
        }
    }
}

/// Returns the address of bytes. No others have it as long as these are held.
fn address(bytes: &Bytes) -> usize {
    bytes.as_ptr().addr()
}

impl ClientMemory {
    /// Takes memory for bytes that are there, which other answers may send too: they count once for
    /// all of these. Returns `None` if there is not enough.
    pub fn try_take(&self, own: u64, bytes: &Bytes) -> Option<HeldMemory> {
        let Client { memory, key } = &*self.0;
        let taken = memory.change(|state| {
            if !state.has_room(*key, own + state.added(bytes)) {
                return None;
            }
            state.take(*key, own);
            Some(state.share(*key, bytes))
        });
        Some(HeldMemory {
            client: self.clone(),
            own,
            shared: Some(taken?),
        })
    }

    /// Waits for memory and takes it. More than a client may ever have counts as so much.
    ///
    /// # Errors
    /// [`NoMemory`] after the patience, or if too many answers wait.
    pub async fn take(&self, bytes: u64) -> Result<HeldMemory, NoMemory> {
        let Client { memory, key } = &*self.0;
        let begun = memory.change(|state| {
            let bytes = bytes.min(state.open() / 2);
            let waiter = state.take_or_wait(*key, bytes)?;
            Ok((bytes, waiter))
        });
        let (own, waiter) = begun?;
        if let Some(waiter) = waiter {
            let waiting = WaitForMemory {
                memory,
                waiter: Some(waiter),
                patience: (memory.0.sleep)(memory.0.patience),
            };
            waiting.await?;
        }
        Ok(HeldMemory {
            client: self.clone(),
            own,
            shared: None,
        })
    }

    /// Notes that the client has shown that it reads.
    pub fn trust(&self) {
        let Client { memory, key } = &*self.0;
        memory.change(|state| state.clients[*key].is_trusted = true);
    }

    /// Returns the number of bytes that its answers hold.
    pub fn held(&self) -> u64 {
        self.0.memory.0.state.lock().clients[self.0.key].held
    }

    /// True while an answer of any client waits for memory.
    pub fn is_short(&self) -> bool {
        !self.0.memory.0.state.lock().queue.is_empty()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.memory.0.state.lock().clients.remove(self.key);
    }
}

/// Wait of one answer. Memory that it got is given back if it is dropped before it knows that.
struct WaitForMemory<'a> {
    memory: &'a AnswerMemory,
    /// Key of its waiter. `None` once the result is known.
    waiter: Option<usize>,
    patience: Sleep,
}

impl Future for WaitForMemory<'_> {
    type Output = Result<(), NoMemory>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(key) = self.waiter else {
            return Poll::Ready(Err(NoMemory));
        };
        let is_over = self.patience.as_mut().poll(cx).is_ready();
        let mut state = self.memory.0.state.lock();
        let waiter = &mut state.waiters[key];
        match waiter.result {
            None if is_over => Poll::Ready(Err(NoMemory)),
            None => {
                waiter.waker = Some(cx.waker().clone());
                Poll::Pending
            }
            Some(result) => {
                state.waiters.remove(key);
                drop(state);
                self.waiter = None;
                Poll::Ready(result)
            }
        }
    }
}

impl Drop for WaitForMemory<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.waiter {
            self.memory.change(|state| state.remove_waiter(key));
        }
    }
}

impl HeldMemory {
    /// Returns the bytes of an answer, which hold its memory until they are sent.
    pub fn hold(self: &Arc<Self>, bytes: Bytes) -> Bytes {
        Bytes::from_owner(HeldBytes {
            _memory: Arc::clone(self),
            bytes,
        })
    }

    /// Counts `own` bytes in place of those that were taken, without waiting, and the bytes of the
    /// answer, which other answers may send too, once for all of them.
    pub fn settle(&mut self, own: u64, bytes: &Bytes) {
        let Client { memory, key } = &*self.client.0;
        memory.change(|state| {
            state.give_back(*key, self.own);
            state.take(*key, own);
            if let Some(part) = self.shared.take() {
                state.unshare(*key, &part);
            }
            self.own = own;
            self.shared = Some(state.share(*key, bytes));
        });
    }

    /// Parts so many bytes from it, which are given back on their own.
    pub fn split(&mut self, bytes: u64) -> Self {
        let parted = bytes.min(self.own);
        self.own -= parted;
        Self {
            client: self.client.clone(),
            own: parted,
            shared: None,
        }
    }

    /// Adds the memory of another answer of the same client.
    pub fn add(&mut self, mut other: Self) {
        self.own += mem::take(&mut other.own);
    }
}

impl Drop for HeldMemory {
    fn drop(&mut self) {
        let Client { memory, key } = &*self.client.0;
        memory.change(|state| {
            state.give_back(*key, self.own);
            if let Some(part) = &self.shared {
                state.unshare(*key, part);
            }
        });
    }
}

/// Bytes that hold memory until they are dropped.
struct HeldBytes {
    // Dropped before the bytes, so that no others have their address yet.
    _memory: Arc<HeldMemory>,
    bytes: Bytes,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::task::Poll::{Pending, Ready};

    use super::*;

    const KB: u64 = 1 << 10;

    /// Returns memory of 800 kB, for which no answer waits in vain.
    fn memory() -> AnswerMemory {
        AnswerMemory::new(800 * KB, Duration::ZERO, |_| Box::pin(pending()))
    }

    /// Polls a future once.
    fn poll<T>(future: &mut Pin<Box<impl Future<Output = T>>>) -> Poll<T> {
        future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Takes memory that is there.
    fn take(client: &ClientMemory, bytes: u64) -> Option<HeldMemory> {
        match poll(&mut Box::pin(client.take(bytes))) {
            Ready(taken) => taken.ok(),
            Pending => None,
        }
    }

    #[test]
    fn client_gets_half_of_what_is_free_beside_the_last_quarter() {
        let memory = memory();
        let client = memory.client();
        assert!(take(&client, 0).is_some());
        let first = take(&client, 200 * KB).unwrap();
        // 200 + 1 kB would be more than half of the other 400 kB.
        assert!(take(&client, KB).is_none());
        let other = memory.client();
        assert!(take(&other, 200 * KB + 1).is_none());
        let _second = take(&other, 200 * KB).unwrap();
        assert_eq!(memory.taken(), 400 * KB);
        drop(first);
        assert_eq!(memory.taken(), 200 * KB);
    }

    #[test]
    fn client_that_reads_gets_what_is_free() {
        let memory = memory();
        let strangers: Vec<_> = (0..40).map(|_| memory.client()).collect();
        let held = strangers.iter().filter_map(|client| take(client, 20 * KB));
        let held: Vec<_> = held.collect();
        assert_eq!((held.len(), memory.taken()), (29, 580 * KB));
        let reader = memory.client();
        assert!(take(&reader, 100 * KB).is_none());
        reader.trust();
        let first = take(&reader, 100 * KB).unwrap();
        assert!(take(&reader, 20 * KB + 1).is_none());
        drop(first);
        assert!(take(&reader, 220 * KB).is_some());
    }

    #[test]
    fn client_without_an_answer_gets_a_small_one_always() {
        let memory = memory();
        let all = [300, 300, 200].map(|kilobytes| {
            let reader = memory.client();
            reader.trust();
            take(&reader, kilobytes * KB).unwrap()
        });
        assert_eq!(memory.taken(), memory.capacity());
        let client = memory.client();
        assert!(take(&client, FREE_BYTES + 1).is_none());
        let _small = take(&client, FREE_BYTES).unwrap();
        assert!(take(&client, 1).is_none());
        drop(all);
        assert!(take(&client, 1).is_some());
    }

    #[test]
    fn more_than_a_client_may_have_counts_as_so_much() {
        let memory = memory();
        let held = take(&memory.client(), u64::MAX).unwrap();
        assert_eq!(memory.taken(), 300 * KB);
        drop(held);
        assert_eq!(memory.taken(), 0);
    }

    #[test]
    fn newest_answer_gets_memory_first() {
        let memory = memory();
        let held = take(&memory.client(), 300 * KB).unwrap();
        let [first, second] = [memory.client(), memory.client()];
        let mut old = Box::pin(first.take(200 * KB));
        assert!(poll(&mut old).is_pending());
        let mut new = Box::pin(second.take(200 * KB));
        assert!(poll(&mut new).is_pending());
        assert!(first.is_short());
        drop(held);
        let Ready(Ok(new)) = poll(&mut new) else {
            panic!("the newest one waits");
        };
        let Ready(Ok(_old)) = poll(&mut old) else {
            panic!("there is room for both");
        };
        assert!(!first.is_short());
        assert_eq!(memory.taken(), 400 * KB);
        drop(new);
        assert_eq!(memory.refused(), 0);
    }

    #[test]
    fn answer_is_refused_when_its_time_is_over() {
        let memory = AnswerMemory::new(800 * KB, Duration::ZERO, |_| Box::pin(ready(())));
        let held = take(&memory.client(), 300 * KB).unwrap();
        let client = memory.client();
        let mut waiting = Box::pin(client.take(300 * KB));
        assert!(matches!(poll(&mut waiting), Ready(Err(NoMemory))));
        assert_eq!(memory.refused(), 1);
        drop((waiting, held));
        assert!(take(&client, 300 * KB).is_some());
        assert_eq!(memory.taken(), 0);
    }

    #[test]
    fn memory_of_an_answer_that_is_given_up_is_given_back() {
        let memory = memory();
        let held = take(&memory.client(), 300 * KB).unwrap();
        let client = memory.client();
        let mut waits = Box::pin(client.take(300 * KB));
        assert!(poll(&mut waits).is_pending());
        drop(waits);
        let mut granted = Box::pin(client.take(300 * KB));
        assert!(poll(&mut granted).is_pending());
        drop(held);
        assert_eq!(memory.taken(), 300 * KB);
        drop(granted);
        assert_eq!(memory.taken(), 0);
        assert!(!client.is_short());
    }

    #[test]
    fn few_answers_wait_and_a_client_with_many_makes_room() {
        let memory = memory();
        let _held = take(&memory.client(), 300 * KB).unwrap();
        let clients: Vec<_> = (0..=WAITING_MAX / WAITING_OF_CLIENT)
            .map(|_| memory.client())
            .collect();
        let mut waiting = Vec::new();
        for client in &clients {
            for _ in 0..WAITING_OF_CLIENT {
                let mut wait = Box::pin(client.take(300 * KB));
                assert!(poll(&mut wait).is_pending());
                waiting.push(wait);
            }
            let one_more = poll(&mut Box::pin(client.take(300 * KB)));
            assert!(matches!(one_more, Ready(Err(NoMemory))));
        }
        // The last answer of each other client made room for one of the last client.
        for (number, wait) in waiting.iter_mut().enumerate() {
            let client = number / WAITING_OF_CLIENT;
            let is_last = number % WAITING_OF_CLIENT == WAITING_OF_CLIENT - 1;
            let expected = is_last && client != clients.len() - 1;
            assert_eq!(poll(wait).is_ready(), expected, "{number}");
        }
        assert_eq!(memory.refused() as usize, 2 * clients.len() - 1);
        // It may wait again, because one answer less does.
        assert!(poll(&mut Box::pin(clients[0].take(300 * KB))).is_pending());
    }

    #[test]
    fn first_answer_of_a_client_goes_before_later_ones_of_others() {
        let memory = memory();
        let held = take(&memory.client(), 300 * KB).unwrap();
        let [greedy, modest] = [memory.client(), memory.client()];
        let wait = || {
            let mut wait = Box::pin(greedy.take(300 * KB));
            assert!(poll(&mut wait).is_pending());
            wait
        };
        let mut before = wait();
        let mut modest = Box::pin(modest.take(300 * KB));
        assert!(poll(&mut modest).is_pending());
        let mut after = wait();
        drop(held);
        let Ready(Ok(taken)) = poll(&mut modest) else {
            panic!("the modest client waits");
        };
        drop(taken);
        let Ready(Ok(taken)) = poll(&mut before) else {
            panic!("the first answer waits");
        };
        assert!(poll(&mut after).is_pending());
        drop(taken);
        assert!(poll(&mut after).is_ready());
    }

    #[test]
    fn bytes_that_several_answers_send_count_once() {
        let memory = memory();
        let bytes = Bytes::from(vec![0; 100 << 10]);
        let [first, second] = [memory.client(), memory.client()];
        let one = first.try_take(KB, &bytes).unwrap();
        let mut two = take(&second, 50 * KB).unwrap();
        assert_eq!(memory.taken(), 151 * KB);
        two.settle(KB, &bytes);
        assert_eq!(
            (memory.taken(), first.held(), second.held()),
            (102 * KB, 101 * KB, KB)
        );
        // They are counted until the last answer has gone, though not for its client.
        drop(one);
        assert_eq!(
            (memory.taken(), first.held(), second.held()),
            (101 * KB, 0, KB)
        );
        let sent = Arc::new(two).hold(bytes);
        assert_eq!(memory.taken(), 101 * KB);
        drop(sent);
        assert_eq!(memory.taken(), 0);
    }

    #[test]
    fn held_bytes_hold_the_memory_of_answers_that_was_added_and_not_parted() {
        let memory = memory();
        let client = memory.client();
        let mut held = take(&client, 2 * KB).unwrap();
        held.add(take(&client, 3 * KB).unwrap());
        assert_eq!(memory.taken(), 5 * KB);
        let part = held.split(KB);
        assert_eq!(memory.taken(), 5 * KB);
        drop(part);
        assert_eq!(memory.taken(), 4 * KB);
        let held = Arc::new(held);
        let pieces = [
            held.hold(Bytes::from_static(b"a")),
            held.hold(Bytes::from_static(b"b")),
        ];
        drop((held, client));
        assert_eq!(memory.taken(), 4 * KB);
        assert_eq!(pieces.concat(), b"ab");
        drop(pieces);
        assert_eq!(memory.taken(), 0);
    }
}
