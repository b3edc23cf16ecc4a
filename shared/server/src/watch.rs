//! Progress of a connection, and the decision to keep or close it.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{limits::ServerLimits, metrics::CloseReason};

/// Bytes that a client must take within [`ServerLimits::stalled`]. Without a minimum, one byte now and then would hold
/// a connection for ever.
const PROGRESS_BYTES: u64 = 16 << 10;

/// Bytes with which a client of HTTP/2 begins: the preface, and the head of its settings (RFC 9113, section 3.4). From then on
/// pings tell whether it is there.
const HTTP2_BEGIN: u64 = 24 + 9;

/// Progress of one connection, reported by its socket and its answers.
///
/// It stands outside of the HTTP implementation, so that one set of rules holds for HTTP/1.1 and HTTP/2.
#[derive(Debug)]
pub(crate) struct ConnectionWatch {
    limits: Arc<ServerLimits>,
    state: Mutex<WatchState>,
    /// Bytes that the client sent, without those of TLS.
    heard: AtomicU64,
    /// Cancelled when a new connection needs the place of this one.
    pub(crate) replaced: CancellationToken,
}

#[derive(Debug)]
struct WatchState {
    /// Answers that are not finished, by the number of their request.
    answers: HashMap<u64, AnswerState>,
    /// Number of requests on this connection so far, which numbers the next.
    requests: u64,
    /// Time at which the connection last had something to do.
    active: Instant,
    /// A write that the network does not take.
    blocked: Option<BlockedWrite>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerState {
    /// The server is producing the next bytes. The client waits.
    Producing,
    /// The client has to take the bytes that were handed out at this time.
    HandedOut(Instant),
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
    /// Close it gracefully: it has been idle for too long, and running requests may finish.
    CloseIdle,
    /// Close it at once, without waiting for running requests.
    Close(CloseReason),
}

impl ConnectionWatch {
    pub(crate) fn new(limits: Arc<ServerLimits>) -> Arc<Self> {
        Arc::new(Self {
            limits,
            state: Mutex::new(WatchState::new(Instant::now())),
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

    /// Returns true if the client need not send a request, because it speaks HTTP/2 and answers pings.
    fn may_wait(&self) -> bool {
        self.limits.may_wait && self.heard.load(Ordering::Relaxed) >= HTTP2_BEGIN
    }

    /// Reports a request. Its answer is finished when the ticket is dropped.
    pub(crate) fn begin_request(self: &Arc<Self>) -> RequestTicket {
        RequestTicket {
            watch: Arc::clone(self),
            number: self.state.lock().begin(),
        }
    }

    /// Reports that the socket took some or all of the bytes that it was given.
    pub(crate) fn wrote(&self, taken: usize, given: usize) {
        self.state.lock().wrote(taken, given, Instant::now);
    }

    /// Reports that the socket took nothing.
    pub(crate) fn write_blocked(&self) {
        self.state.lock().block(Instant::now);
    }

    /// Returns the time for which the connection has been idle; `None` if it is not idle, or is being replaced already.
    pub(crate) fn idle_for(&self) -> Option<Duration> {
        let idle_since = self.state.lock().idle_since(self.may_wait());
        let idle_since = idle_since.filter(|_| !self.replaced.is_cancelled());
        idle_since.map(|since| since.elapsed())
    }

    /// Decides about the connection as it is now.
    pub(crate) fn verdict(&self) -> Verdict {
        self.state.lock().verdict(Instant::now(), &self.limits, self.may_wait())
    }
}

// The state reads no clock: callers pass the time, so that tests need not wait.
impl WatchState {
    fn new(now: Instant) -> Self {
        Self {
            answers: HashMap::new(),
            requests: 0,
            active: now,
            blocked: None,
        }
    }

    fn begin(&mut self) -> u64 {
        self.requests += 1;
        self.answers.insert(self.requests, AnswerState::Producing);
        self.requests
    }

    fn end(&mut self, number: u64, now: Instant) {
        self.answers.remove(&number);
        self.active = now;
    }

    fn block(&mut self, now: impl Fn() -> Instant) {
        let blocked = || BlockedWrite { since: now(), taken: 0 };
        self.blocked.get_or_insert_with(blocked);
    }

    // `now` is a function: most writes take everything at once and do not need the time.
    fn wrote(&mut self, taken: usize, given: usize, now: impl Fn() -> Instant) {
        if taken >= given {
            if self.blocked.take().is_some() {
                self.active = now();
            }
        } else if let Some(blocked) = &mut self.blocked {
            blocked.taken += taken as u64;
            // Progress starts the time anew, so that a slow client that goes on reading gets its whole answer.
            if blocked.taken >= PROGRESS_BYTES {
                *blocked = BlockedWrite { since: now(), taken: 0 };
            }
        }
    }

    /// Returns the end of the last answer, if the connection has had a request, or needs none, and has nothing to do now.
    fn idle_since(&self, may_wait: bool) -> Option<Instant> {
        let is_idle = (self.requests > 0 || may_wait) && self.answers.is_empty() && self.blocked.is_none();
        is_idle.then_some(self.active)
    }

    fn verdict(&self, now: Instant, limits: &ServerLimits, may_wait: bool) -> Verdict {
        let exceeds = |since: Instant, limit: Duration| now.duration_since(since) > limit;
        let stalled = self.answers.values().any(|answer| match answer {
            // A slow store is not the client's fault.
            AnswerState::Producing => false,
            AnswerState::HandedOut(since) => exceeds(*since, limits.stalled),
        });
        if stalled
            || self
                .blocked
                .is_some_and(|blocked| exceeds(blocked.since, limits.stalled))
        {
            Verdict::Close(CloseReason::Stalled)
        // A connection that sends nothing is closed sooner than an idle one, which has shown that it is a client.
        } else if self.requests == 0 && !may_wait && exceeds(self.active, limits.first_request) {
            Verdict::Close(CloseReason::Silent)
        } else if let Some(since) = self.idle_since(may_wait) {
            match now.duration_since(since) {
                // The client did not react to the graceful close.
                quiet if quiet > limits.idle + limits.stalled => Verdict::Close(CloseReason::Idle),
                quiet if quiet > limits.idle => Verdict::CloseIdle,
                _ => Verdict::Healthy,
            }
        } else {
            Verdict::Healthy
        }
    }
}

/// One request, from its head until its answer is sent or given up.
#[derive(Debug)]
pub(crate) struct RequestTicket {
    watch: Arc<ConnectionWatch>,
    number: u64,
}

impl RequestTicket {
    /// Reports that the server is producing the next bytes.
    pub(crate) fn producing(&self) {
        self.set(AnswerState::Producing);
    }

    /// Reports that bytes were handed out to the client.
    pub(crate) fn handed_out(&self) {
        self.set(AnswerState::HandedOut(Instant::now()));
    }

    fn set(&self, answer: AnswerState) {
        self.watch.state.lock().answers.insert(self.number, answer);
    }
}

impl Drop for RequestTicket {
    fn drop(&mut self) {
        self.watch.state.lock().end(self.number, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A connection with a clock of its own.
    struct Timeline {
        state: WatchState,
        now: Instant,
        may_wait: bool,
    }

    impl Timeline {
        fn new() -> Self {
            let now = Instant::now();
            Self {
                state: WatchState::new(now),
                now,
                may_wait: false,
            }
        }

        fn after(&mut self, seconds: u32) -> Verdict {
            let limits = ServerLimits {
                first_request: 10 * SECOND,
                idle: 60 * SECOND,
                stalled: 30 * SECOND,
                ..ServerLimits::default()
            };
            self.now += seconds * SECOND;
            self.state.verdict(self.now, &limits, self.may_wait)
        }

        fn hand_out(&mut self, number: u64) {
            self.state.answers.insert(number, AnswerState::HandedOut(self.now));
        }

        fn end(&mut self, number: u64) {
            self.state.end(number, self.now);
        }

        fn block(&mut self) {
            let now = self.now;
            self.state.block(|| now);
        }

        fn write(&mut self, taken: usize, given: usize) {
            let now = self.now;
            self.state.wrote(taken, given, || now);
        }
    }

    #[test]
    fn watch_without_first_request_is_silent() {
        let mut timeline = Timeline::new();
        assert_eq!(timeline.after(10), Verdict::Healthy);
        assert_eq!(timeline.after(1), Verdict::Close(CloseReason::Silent));
    }

    #[test]
    fn watch_of_client_that_may_wait_is_idle_without_request() {
        let mut timeline = Timeline::new();
        timeline.may_wait = true;
        assert_eq!(timeline.after(60), Verdict::Healthy);
        assert_eq!(timeline.after(1), Verdict::CloseIdle);
    }

    #[test]
    fn watch_without_next_request_is_idle() {
        let mut timeline = Timeline::new();
        let number = timeline.state.begin();
        timeline.end(number);
        assert_eq!(timeline.after(60), Verdict::Healthy);
        assert_eq!(timeline.after(1), Verdict::CloseIdle);
        assert_eq!(timeline.after(30), Verdict::Close(CloseReason::Idle));
    }

    #[test]
    fn watch_slow_store_is_healthy() {
        let mut timeline = Timeline::new();
        let number = timeline.state.begin();
        assert_eq!(timeline.after(1000), Verdict::Healthy);
        timeline.hand_out(number);
        timeline.state.answers.insert(number, AnswerState::Producing);
        assert_eq!(timeline.after(1000), Verdict::Healthy);
    }

    #[test]
    fn watch_one_stalled_answer_closes_connection() {
        let mut timeline = Timeline::new();
        let (slow, quick) = (timeline.state.begin(), timeline.state.begin());
        timeline.hand_out(slow);
        assert_eq!(timeline.after(30), Verdict::Healthy);
        timeline.hand_out(quick);
        assert_eq!(timeline.after(1), Verdict::Close(CloseReason::Stalled));
        timeline.end(slow);
        assert_eq!(timeline.after(0), Verdict::Healthy);
    }

    #[test]
    fn watch_few_bytes_are_no_progress() {
        let mut timeline = Timeline::new();
        timeline.state.begin();
        timeline.block();
        for (bytes, verdict) in [
            (20_000, Verdict::Healthy),
            (100, Verdict::Healthy),
            (100, Verdict::Close(CloseReason::Stalled)),
        ] {
            timeline.now += 16 * SECOND;
            timeline.write(bytes, 1 << 20);
            timeline.block();
            assert_eq!(timeline.after(0), verdict, "{bytes}");
        }
        timeline.write(1 << 20, 1 << 20);
        assert_eq!(timeline.after(0), Verdict::Healthy);
    }

    #[test]
    fn watch_slow_reader_is_not_idle() {
        let mut timeline = Timeline::new();
        let number = timeline.state.begin();
        timeline.end(number);
        timeline.block();
        for _ in 0..10 {
            timeline.now += 20 * SECOND;
            timeline.write(20_000, 1 << 20);
            timeline.block();
            assert_eq!(timeline.after(0), Verdict::Healthy);
        }
        timeline.write(9, 9);
        assert_eq!(timeline.after(59), Verdict::Healthy);
    }
}
