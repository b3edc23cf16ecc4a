//! What is known of a connection, and what follows from it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{limits::Limits, metrics::Reason};

/// Taking less than this in the time of [`Limits::stalled`] is no progress: a few bytes now and then would hold a
/// connection for ever.
const PROGRESS: u64 = 16 << 10;

/// How a connection gets on. It is told by those who see its bytes and answers, and judged from time to time.
#[derive(Debug)]
pub(crate) struct Watch {
    limits: Arc<Limits>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Answers that are made or taken, by the number of their request.
    answers: HashMap<u64, Answer>,
    /// Requests so far.
    asked: u64,
    /// When there was last something to do.
    busy: Instant,
    /// Since when the client has not made room for bytes that wait, and what it took since.
    blocked: Option<(Instant, u64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// The server is at it.
    Made,
    /// The client has to take what was handed out then.
    Handed(Instant),
}

/// What is to be done with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing.
    Fine,
    /// It may end politely, at once if there is nothing under way.
    Enough,
    /// It has to end.
    Over(Reason),
}

impl Watch {
    pub(crate) fn new(limits: Arc<Limits>) -> Arc<Self> {
        let state = Mutex::new(State::new(Instant::now()));
        Arc::new(Self { limits, state })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection is ready for its first request.
    pub(crate) fn connected(&self) {
        self.state().busy = Instant::now();
    }

    /// A request has come. Its answer is over when the ticket is dropped.
    pub(crate) fn ask(self: &Arc<Self>) -> Ticket {
        Ticket {
            watch: Arc::clone(self),
            number: self.state().ask(),
        }
    }

    /// The socket took some of the bytes that it was given, or all of them.
    pub(crate) fn wrote(&self, taken: usize, given: usize) {
        self.state().wrote(taken, given, Instant::now);
    }

    /// The socket took nothing.
    pub(crate) fn blocked(&self) {
        self.state().blocked.get_or_insert_with(|| (Instant::now(), 0));
    }

    pub(crate) fn judge(&self) -> Verdict {
        self.state().judge(Instant::now(), &self.limits)
    }
}

/// Without a clock: everybody says what time it is.
impl State {
    fn new(now: Instant) -> Self {
        Self {
            answers: HashMap::new(),
            asked: 0,
            busy: now,
            blocked: None,
        }
    }

    fn ask(&mut self) -> u64 {
        self.asked += 1;
        self.answers.insert(self.asked, Answer::Made);
        self.asked
    }

    fn end(&mut self, number: u64, now: Instant) {
        self.answers.remove(&number);
        self.busy = now;
    }

    /// Most writes take everything at once, and need not know the time.
    fn wrote(&mut self, taken: usize, given: usize, now: impl Fn() -> Instant) {
        if taken >= given {
            if self.blocked.take().is_some() {
                self.busy = now();
            }
        } else if let Some((since, total)) = &mut self.blocked {
            *total += taken as u64;
            if *total >= PROGRESS {
                (*since, *total) = (now(), 0);
            }
        }
    }

    fn judge(&self, now: Instant, limits: &Limits) -> Verdict {
        let over = |since: Instant, limit: Duration| now.duration_since(since) > limit;
        let stalled = self.answers.values().any(|answer| match answer {
            Answer::Made => false,
            Answer::Handed(since) => over(*since, limits.stalled),
        });
        if stalled || self.blocked.is_some_and(|(since, _)| over(since, limits.stalled)) {
            Verdict::Over(Reason::Stalled)
        } else if self.asked == 0 && over(self.busy, limits.first_request) {
            Verdict::Over(Reason::Silent)
        } else if self.asked > 0 && self.answers.is_empty() && self.blocked.is_none() {
            match now.duration_since(self.busy) {
                // What was said politely was not heard.
                quiet if quiet > limits.idle + limits.stalled => Verdict::Over(Reason::Idle),
                quiet if quiet > limits.idle => Verdict::Enough,
                _ => Verdict::Fine,
            }
        } else {
            Verdict::Fine
        }
    }
}

/// One request and its answer.
#[derive(Debug)]
pub(crate) struct Ticket {
    watch: Arc<Watch>,
    number: u64,
}

impl Ticket {
    /// The next bytes are waited for.
    pub(crate) fn made(&self) {
        self.set(Answer::Made);
    }

    /// Bytes were handed out.
    pub(crate) fn handed(&self) {
        self.set(Answer::Handed(Instant::now()));
    }

    fn set(&self, answer: Answer) {
        self.watch.state().answers.insert(self.number, answer);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.watch.state().end(self.number, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A connection and its time.
    struct Course {
        state: State,
        now: Instant,
    }

    impl Course {
        fn new() -> Self {
            let now = Instant::now();
            Self {
                state: State::new(now),
                now,
            }
        }

        fn after(&mut self, seconds: u32) -> Verdict {
            let limits = Limits {
                first_request: 10 * SECOND,
                idle: 60 * SECOND,
                stalled: 30 * SECOND,
                ..Limits::default()
            };
            self.now += seconds * SECOND;
            self.state.judge(self.now, &limits)
        }

        fn hand(&mut self, number: u64) {
            self.state.answers.insert(number, Answer::Handed(self.now));
        }

        fn end(&mut self, number: u64) {
            self.state.end(number, self.now);
        }

        fn block(&mut self) {
            self.state.blocked.get_or_insert((self.now, 0));
        }

        fn write(&mut self, taken: usize, given: usize) {
            let now = self.now;
            self.state.wrote(taken, given, || now);
        }
    }

    #[test]
    fn who_asks_nothing_is_silent() {
        let mut course = Course::new();
        assert_eq!(course.after(10), Verdict::Fine);
        assert_eq!(course.after(1), Verdict::Over(Reason::Silent));
    }

    #[test]
    fn who_asks_nothing_more_is_idle() {
        let mut course = Course::new();
        let number = course.state.ask();
        course.end(number);
        assert_eq!(course.after(60), Verdict::Fine);
        assert_eq!(course.after(1), Verdict::Enough);
        assert_eq!(course.after(30), Verdict::Over(Reason::Idle));
    }

    #[test]
    fn a_slow_store_is_not_the_clients_fault() {
        let mut course = Course::new();
        let number = course.state.ask();
        assert_eq!(course.after(1000), Verdict::Fine);
        course.hand(number);
        course.state.answers.insert(number, Answer::Made);
        assert_eq!(course.after(1000), Verdict::Fine);
    }

    #[test]
    fn an_answer_that_is_not_taken_is_stalled_whatever_else_is() {
        let mut course = Course::new();
        let (slow, quick) = (course.state.ask(), course.state.ask());
        course.hand(slow);
        assert_eq!(course.after(30), Verdict::Fine);
        course.hand(quick);
        assert_eq!(course.after(1), Verdict::Over(Reason::Stalled));
        course.end(slow);
        assert_eq!(course.after(0), Verdict::Fine);
    }

    #[test]
    fn drips_are_no_progress_and_buckets_are() {
        let mut course = Course::new();
        course.state.ask();
        course.block();
        for (bytes, verdict) in [
            (20_000, Verdict::Fine),
            (100, Verdict::Fine),
            (100, Verdict::Over(Reason::Stalled)),
        ] {
            course.now += 16 * SECOND;
            course.write(bytes, 1 << 20);
            course.block();
            assert_eq!(course.after(0), verdict, "{bytes}");
        }
        course.write(1 << 20, 1 << 20);
        assert_eq!(course.after(0), Verdict::Fine);
    }

    #[test]
    fn who_reads_slowly_is_not_idle() {
        let mut course = Course::new();
        let number = course.state.ask();
        course.end(number);
        course.block();
        for _ in 0..10 {
            course.now += 20 * SECOND;
            course.write(20_000, 1 << 20);
            course.block();
            assert_eq!(course.after(0), Verdict::Fine);
        }
        course.write(9, 9);
        assert_eq!(course.after(59), Verdict::Fine);
    }
}
