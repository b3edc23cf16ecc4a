//! Progress of a connection, and the decision to keep or close it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use slab::Slab;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use work::{ClientMemory, ServerLimits};

use crate::limits::{CHECKS, HURRY, check_interval};
use crate::metrics::CloseReason;

/// Bytes that a client must take within [`ServerLimits::stalled`]. Without a minimum, one byte now
/// and then would hold a connection for ever.
const PROGRESS_BYTES: u64 = 16 << 10;

/// Bytes of answers after which a client has shown that it reads: several times what the buffers of
/// both systems take of a client that reads nothing.
const TRUSTED_BYTES: u64 = 1 << 20;

/// Bytes with which a client of HTTP/2 begins: the preface, and the head of its settings (RFC 9113,
/// section 3.4). From then on pings tell whether it is there.
const HTTP2_BEGIN: u64 = 24 + 9;

/// Mark of what answers were made from. It is set when there is something newer. Copies are the
/// same mark.
#[derive(Debug, Clone, Default)]
pub struct Outdated(Arc<OnceLock<Instant>>);

impl Outdated {
    /// Tells the connections that hold the mark to end, over the next seconds.
    pub fn set(&self) {
        self.0.get_or_init(Instant::now);
    }

    /// Returns true if anything else holds the mark, such as a connection.
    pub fn is_held(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    fn age(&self) -> Option<Duration> {
        Some(self.0.get()?.elapsed())
    }
}

/// Connection of a request to a server without a [`Front`](crate::Front), among its extensions.
#[derive(Debug, Clone)]
pub struct ConnectionHandle(pub(crate) Arc<ConnectionWatch>);

impl ConnectionHandle {
    /// Ends the connection gracefully after the mark is set: running answers go on, and a new
    /// request comes over another connection. Connections end one after the other within
    /// [`ServerLimits::leave`], because their clients come back at once.
    pub fn end_after(&self, outdated: &Outdated) {
        let asked = &mut self.0.state.lock().asked;
        if asked
            .iter()
            .all(|known| !Arc::ptr_eq(&known.0, &outdated.0))
        {
            asked.push(outdated.clone());
        }
    }
}

/// Progress of one connection, reported by its socket and its answers.
///
/// It stands outside of the HTTP implementation, so that one set of rules holds for HTTP/1.1 and
/// HTTP/2.
#[derive(Debug)]
pub(crate) struct ConnectionWatch {
    limits: Arc<ServerLimits>,
    state: Mutex<WatchState>,
    /// Memory of its answers.
    pub(crate) memory: ClientMemory,
    /// Bytes that the client sent, without those of TLS.
    heard: AtomicU64,
    /// Cancelled when a new connection needs the place of this one.
    pub(crate) replaced: CancellationToken,
    /// Time from the moment in which what the client asked for is outdated to the end.
    leaves_after: Duration,
}

#[derive(Debug)]
struct WatchState {
    /// Answers that are not finished: the time at which bytes were handed out that the client has
    /// to take. `None` while the server produces the next bytes, and the client waits.
    answers: Slab<Option<Instant>>,
    /// True from the first request on.
    has_requested: bool,
    /// Time at which the connection last had something to do.
    active: Instant,
    /// A write that the network does not take.
    blocked: Option<BlockedWrite>,
    /// Marks of what the client has asked for, each once.
    asked: Vec<Outdated>,
    /// Number of bytes that the network took.
    taken: u64,
    /// True once it took enough to be trusted.
    is_trusted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BlockedWrite {
    since: Instant,
    /// Bytes that were taken since then.
    taken: u64,
}

/// Decision about a connection at one of its checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Keep it: no limit is exceeded.
    Healthy,
    /// Close it gracefully: running requests may finish.
    CloseGracefully(CloseReason),
    /// Close it at once, without waiting for running requests.
    Close(CloseReason),
}

impl ConnectionWatch {
    pub(crate) fn new(limits: Arc<ServerLimits>, memory: ClientMemory) -> Arc<Self> {
        let state = WatchState {
            answers: Slab::new(),
            has_requested: false,
            active: Instant::now(),
            blocked: None,
            asked: Vec::new(),
            taken: 0,
            is_trusted: false,
        };
        Arc::new(Self {
            leaves_after: limits.leave.mul_f64(rand::random()),
            limits,
            memory,
            state: Mutex::new(state),
            heard: AtomicU64::new(0),
            replaced: CancellationToken::new(),
        })
    }

    /// Reports that the connection is ready for its first request.
    pub(crate) fn connected(&self) {
        self.state.lock().active = Instant::now();
    }

    /// Reports bytes that the client sent.
    pub(crate) fn heard(&self, bytes: usize) {
        self.heard.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Returns true if the client need not send a request, because it speaks HTTP/2 and answers
    /// pings.
    fn may_wait(&self) -> bool {
        self.limits.may_wait && self.heard.load(Ordering::Relaxed) >= HTTP2_BEGIN
    }

    /// Reports a request. Its answer is finished when the ticket is dropped.
    pub(crate) fn begin_request(self: &Arc<Self>) -> RequestTicket {
        let mut state = self.state.lock();
        state.has_requested = true;
        RequestTicket {
            watch: Arc::clone(self),
            key: state.answers.insert(None),
        }
    }

    /// Reports that the socket took some or all of the bytes that it was given.
    pub(crate) fn wrote(&self, taken: usize, given: usize) {
        let mut state = self.state.lock();
        state.taken += taken as u64;
        if state.taken >= TRUSTED_BYTES && !state.is_trusted {
            state.is_trusted = true;
            self.memory.trust();
        }
        if taken >= given {
            // Most writes take everything at once, and do not need the time.
            if state.blocked.take().is_some() {
                state.active = Instant::now();
            }
        } else if let Some(blocked) = &mut state.blocked {
            blocked.taken += taken as u64;
            // Progress starts the time anew, so that a slow client that goes on reading gets its
            // whole answer.
            if blocked.taken >= PROGRESS_BYTES {
                *blocked = BlockedWrite::now();
            }
        }
    }

    /// Reports that the socket took nothing.
    pub(crate) fn write_blocked(&self) {
        self.state
            .lock()
            .blocked
            .get_or_insert_with(BlockedWrite::now);
    }

    /// Returns the time for which the connection has been idle; `None` if it is not idle, or is
    /// being replaced already.
    pub(crate) fn idle_for(&self) -> Option<Duration> {
        let idle = self.state.lock().idle(self.may_wait());
        idle.filter(|_| !self.replaced.is_cancelled())
    }

    /// True if its answers hold more than an even share of the memory.
    fn holds_much(&self) -> bool {
        self.memory.held() > self.limits.answer_bytes / self.limits.connections as u64
    }

    /// Returns the time until the next check.
    pub(crate) fn check_interval(&self) -> Duration {
        let regular = check_interval(&self.limits);
        match self.holds_much() {
            true => regular.min(HURRY / CHECKS),
            false => regular,
        }
    }

    /// Decides about the connection as it is now.
    pub(crate) fn verdict(&self) -> Verdict {
        let limits = &self.limits;
        let keeps_others_waiting = self.holds_much() && self.memory.is_short();
        let stalled = match keeps_others_waiting {
            true => limits.stalled.min(HURRY),
            false => limits.stalled,
        };
        let state = self.state.lock();
        let may_wait = self.may_wait();
        let is_stalled = |since: Instant| since.elapsed() > stalled;
        let mut answers = state.answers.iter();
        // A slow store is not the client's fault.
        if answers.any(|(_, handed_out)| handed_out.is_some_and(is_stalled))
            || state
                .blocked
                .is_some_and(|blocked| is_stalled(blocked.since))
        {
            return Verdict::Close(CloseReason::Stalled);
        }
        // A connection that sends nothing is closed sooner than an idle one, which has shown that
        // it is a client.
        if !state.has_requested && !may_wait && state.active.elapsed() > limits.first_request {
            return Verdict::Close(CloseReason::Silent);
        }
        let mut asked = state.asked.iter().filter_map(Outdated::age);
        if asked.any(|age| age >= self.leaves_after) {
            return Verdict::CloseGracefully(CloseReason::Outdated);
        }
        match state.idle(may_wait) {
            // The client did not react to the graceful close.
            Some(idle) if idle > limits.idle + limits.stalled => Verdict::Close(CloseReason::Idle),
            Some(idle) if idle > limits.idle => Verdict::CloseGracefully(CloseReason::Idle),
            _ => Verdict::Healthy,
        }
    }
}

impl BlockedWrite {
    fn now() -> Self {
        Self {
            since: Instant::now(),
            taken: 0,
        }
    }
}

impl WatchState {
    /// Returns the time since the last answer, if the connection has had a request, or needs none,
    /// and has nothing to do now.
    fn idle(&self, may_wait: bool) -> Option<Duration> {
        let is_idle =
            (self.has_requested || may_wait) && self.answers.is_empty() && self.blocked.is_none();
        is_idle.then(|| self.active.elapsed())
    }
}

/// One request, from its head until its answer is sent or given up.
#[derive(Debug)]
pub(crate) struct RequestTicket {
    watch: Arc<ConnectionWatch>,
    /// Key of its answer among the unfinished ones.
    key: usize,
}

impl RequestTicket {
    /// Reports that the server is producing the next bytes.
    pub(crate) fn producing(&self) {
        self.set(None);
    }

    /// Reports that bytes were handed out to the client.
    pub(crate) fn handed_out(&self) {
        self.set(Some(Instant::now()));
    }

    fn set(&self, handed_out: Option<Instant>) {
        self.watch.state.lock().answers[self.key] = handed_out;
    }
}

impl Drop for RequestTicket {
    fn drop(&mut self) {
        let mut state = self.watch.state.lock();
        state.answers.remove(self.key);
        state.active = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use work::AnswerMemory;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const IDLE: Verdict = Verdict::CloseGracefully(CloseReason::Idle);
    const OUTDATED: Verdict = Verdict::CloseGracefully(CloseReason::Outdated);

    /// Returns memory of 100 bytes for each of 1,024 connections.
    fn memory() -> AnswerMemory {
        AnswerMemory::new(100 << 10, 1000 * SECOND, |wait| {
            Box::pin(tokio::time::sleep(wait))
        })
    }

    fn watch(may_wait: bool) -> Arc<ConnectionWatch> {
        watch_of(&memory(), may_wait)
    }

    fn watch_of(memory: &AnswerMemory, may_wait: bool) -> Arc<ConnectionWatch> {
        let limits = ServerLimits {
            first_request: 10 * SECOND,
            idle: 60 * SECOND,
            stalled: 30 * SECOND,
            may_wait,
            answer_bytes: memory.capacity(),
            ..ServerLimits::default()
        };
        ConnectionWatch::new(Arc::new(limits), memory.client())
    }

    async fn after(seconds: u32, watch: &ConnectionWatch) -> Verdict {
        tokio::time::advance(seconds * SECOND).await;
        watch.verdict()
    }

    #[tokio::test(start_paused = true)]
    async fn watch_without_first_request_is_silent() {
        let watch = watch(false);
        assert_eq!(after(10, &watch).await, Verdict::Healthy);
        assert_eq!(after(1, &watch).await, Verdict::Close(CloseReason::Silent));
    }

    #[tokio::test(start_paused = true)]
    async fn watch_of_client_that_may_wait_is_idle_without_request() {
        let watch = watch(true);
        watch.heard(24 + 9);
        assert_eq!(after(60, &watch).await, Verdict::Healthy);
        assert_eq!(after(1, &watch).await, IDLE);
    }

    #[tokio::test(start_paused = true)]
    async fn watch_without_next_request_is_idle() {
        let watch = watch(false);
        drop(watch.begin_request());
        assert_eq!(after(60, &watch).await, Verdict::Healthy);
        assert_eq!(after(1, &watch).await, IDLE);
        assert_eq!(after(30, &watch).await, Verdict::Close(CloseReason::Idle));
    }

    #[tokio::test(start_paused = true)]
    async fn watch_slow_store_is_healthy() {
        let watch = watch(false);
        let ticket = watch.begin_request();
        assert_eq!(after(1000, &watch).await, Verdict::Healthy);
        ticket.handed_out();
        ticket.producing();
        assert_eq!(after(1000, &watch).await, Verdict::Healthy);
    }

    #[tokio::test(start_paused = true)]
    async fn watch_one_stalled_answer_closes_connection() {
        let watch = watch(false);
        let (slow, quick) = (watch.begin_request(), watch.begin_request());
        slow.handed_out();
        assert_eq!(after(30, &watch).await, Verdict::Healthy);
        quick.handed_out();
        assert_eq!(after(1, &watch).await, Verdict::Close(CloseReason::Stalled));
        drop(slow);
        assert_eq!(after(0, &watch).await, Verdict::Healthy);
    }

    #[tokio::test(start_paused = true)]
    async fn watch_few_bytes_are_no_progress() {
        let watch = watch(false);
        let _ticket = watch.begin_request();
        watch.write_blocked();
        for (bytes, verdict) in [
            (20_000, Verdict::Healthy),
            (100, Verdict::Healthy),
            (100, Verdict::Close(CloseReason::Stalled)),
        ] {
            tokio::time::advance(16 * SECOND).await;
            watch.wrote(bytes, 1 << 20);
            watch.write_blocked();
            assert_eq!(watch.verdict(), verdict, "{bytes}");
        }
        watch.wrote(1 << 20, 1 << 20);
        assert_eq!(watch.verdict(), Verdict::Healthy);
    }

    #[tokio::test(start_paused = true)]
    async fn watch_stalled_answer_is_closed_soon_if_others_wait_for_its_memory() {
        let memory = memory();
        let [small, large] = [100, 101].map(|bytes| {
            let watch = watch_of(&memory, false);
            let ticket = watch.begin_request();
            ticket.handed_out();
            (watch, ticket, bytes)
        });
        let mut held = Vec::new();
        for (watch, _, bytes) in [&small, &large] {
            held.push(watch.memory.take(*bytes).await.unwrap());
        }
        assert_eq!(small.0.check_interval(), check_interval(&small.0.limits));
        assert!(large.0.check_interval() <= SECOND);
        assert_eq!(after(10, &large.0).await, Verdict::Healthy);
        let other = memory.client();
        let waiting = tokio::spawn(async move { other.take(60 << 10).await.map(drop) });
        tokio::task::yield_now().await;
        assert!(matches!(large.0.verdict(), Verdict::Close(_)));
        // It has no more than its share.
        assert_eq!(small.0.verdict(), Verdict::Healthy);
        large.1.handed_out();
        assert_eq!(after(3, &large.0).await, Verdict::Healthy);
        let closed = Verdict::Close(CloseReason::Stalled);
        assert_eq!(after(1, &large.0).await, closed);
        waiting.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn watch_trusts_a_client_that_took_a_megabyte() {
        let memory = memory();
        let watch = watch_of(&memory, false);
        let half = memory.capacity() / 2;
        let _held = memory.client().take(half).await.unwrap();
        let wants = || tokio::time::timeout(SECOND, watch.memory.take(half / 2));
        for _ in 1..1024 {
            watch.wrote(1 << 10, 1 << 10);
        }
        assert!(wants().await.is_err());
        watch.wrote(1 << 10, 2 << 10);
        assert!(wants().await.unwrap().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn watch_slow_reader_is_not_idle() {
        let watch = watch(false);
        drop(watch.begin_request());
        watch.write_blocked();
        for _ in 0..10 {
            tokio::time::advance(20 * SECOND).await;
            watch.wrote(20_000, 1 << 20);
            watch.write_blocked();
            assert_eq!(watch.verdict(), Verdict::Healthy);
        }
        watch.wrote(9, 9);
        assert_eq!(after(59, &watch).await, Verdict::Healthy);
    }

    #[tokio::test(start_paused = true)]
    async fn watch_of_outdated_answers_leaves_and_of_others_stays() {
        let (watch, other) = (watch(true), watch(true));
        let (old, new) = (Outdated::default(), Outdated::default());
        ConnectionHandle(Arc::clone(&watch)).end_after(&old);
        ConnectionHandle(Arc::clone(&watch)).end_after(&new);
        ConnectionHandle(Arc::clone(&other)).end_after(&new);
        assert_eq!(after(1, &watch).await, Verdict::Healthy);
        old.set();
        // A second mark of the same does not give it more time.
        old.set();
        ConnectionHandle(Arc::clone(&watch)).end_after(&old);
        assert_eq!(after(4, &watch).await, OUTDATED);
        assert_eq!(other.verdict(), Verdict::Healthy);
        // A client that takes nothing is cut off all the same.
        watch.write_blocked();
        assert_eq!(
            after(31, &watch).await,
            Verdict::Close(CloseReason::Stalled)
        );
        drop((watch, other));
        assert!(!old.is_held() && !new.is_held());
    }

    #[tokio::test(start_paused = true)]
    async fn watches_of_outdated_answers_leave_one_after_the_other() {
        let outdated = Outdated::default();
        let watches: Vec<_> = (0..1000).map(|_| watch(true)).collect();
        for watch in &watches {
            ConnectionHandle(Arc::clone(watch)).end_after(&outdated);
        }
        outdated.set();
        let mut left = Vec::new();
        for _ in 0..4 {
            tokio::time::advance(SECOND).await;
            left.push(
                watches
                    .iter()
                    .filter(|watch| watch.verdict() == OUTDATED)
                    .count(),
            );
        }
        for (count, expected) in left.iter().zip([250, 500, 750]) {
            assert!(count.abs_diff(expected) < 100, "{left:?}");
        }
        assert_eq!(left[3], 1000);
    }
}
