use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use crate::chance::Chance;
use crate::fault::{Fault, Faults, Kind, Operation, Side};

/// Start of every run: 2026-01-01.
const EPOCH: Duration = Duration::from_secs(1_767_225_600);
/// Number of actors. Each is woken at milliseconds of its own remainder, so no two are woken at one
/// moment: threads would decide on their order.
pub(crate) const ACTORS: u64 = 16;
/// Longest time that an operation is held up, in milliseconds.
const LONGEST_MS: u64 = 100_000;
/// Longest time after which a request is done that its caller has given up, in milliseconds. S3
/// refuses a request whose signature is 15 minutes old, by a clock that may be 15 minutes ahead.
pub(crate) const LATEST_MS: u64 = 25 * 60_000;
/// Longest suspension of a process, in milliseconds: longer than a publication may take, and than a
/// phase of collection.
const PAUSE_MS: u64 = 5 * 3_600_000;

/// World that all actors of one run share: time, chance, faults, and the record of all events.
pub(crate) struct World {
    pub(crate) chance: Chance,
    start: Instant,
    main: ThreadId,
    faults: Faults,
    faultless: AtomicBool,
    record: Mutex<Record>,
}

/// Record of a run.
#[derive(Default)]
pub(crate) struct Record {
    turns: BTreeSet<(u64, Operation)>,
    counts: HashMap<Operation, u32>,
    pub(crate) passed: Passed,
    pub(crate) broken: Option<String>,
}

/// Run in which every invariant held.
#[derive(Debug, Default)]
pub struct Passed {
    /// Operations that a fault could have hit.
    pub operations: Vec<Operation>,
    /// All events, in order.
    pub events: Vec<Event>,
    /// Number of faults.
    pub faults: u64,
    /// Number of changes of pointers.
    pub commits: usize,
}

/// Event of a run, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Time in milliseconds since the start.
    pub at: u64,
    /// Number of the actor.
    pub actor: u8,
    /// Event in words.
    pub what: String,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, actor, what } = self;
        write!(f, "{:>12.3} s  {actor:>2}  {what}", *at as f64 / 1000.0)
    }
}

/// Turn of one operation. No other operation happens at its moment until it is dropped.
pub(crate) struct Turn {
    world: Arc<World>,
    place: (u64, Operation),
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.world.record().turns.remove(&self.place);
    }
}

impl World {
    /// Makes the world. Call it on the thread that runs the actors.
    pub(crate) fn new(seed: u64, faults: Faults) -> Arc<Self> {
        Arc::new(Self {
            chance: Chance::new(seed),
            start: Instant::now(),
            main: thread::current().id(),
            faults,
            // No faults until the actors start.
            faultless: AtomicBool::new(true),
            record: Mutex::default(),
        })
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the milliseconds since the start.
    pub(crate) fn now(&self) -> u64 {
        self.start
            .elapsed()
            .as_millis()
            .try_into()
            .unwrap_or(u64::MAX)
    }

    /// Returns the time by a clock that is wrong by so many seconds.
    pub(crate) fn clock(&self, wrong: i64) -> SystemTime {
        clock(self.now(), wrong)
    }

    /// True if no fault hits what runs now.
    pub(crate) fn is_calm(&self) -> bool {
        let has_none = matches!(self.faults, Faults::None | Faults::Random { one_in: 0 });
        has_none || self.faultless.load(Ordering::Relaxed)
    }

    pub(crate) fn set_faultless(&self, faultless: bool) {
        self.faultless.store(faultless, Ordering::Relaxed);
    }

    /// True on the thread of the actors. Time stands still while other threads work, so they cannot
    /// wait for it.
    pub(crate) fn may_wait(&self) -> bool {
        thread::current().id() == self.main
    }

    /// Waits about so long, until a moment at which no other actor is woken.
    pub(crate) async fn wait(&self, actor: u8, milliseconds: u64) {
        sleep_until(self.start + Duration::from_millis(self.slot(actor, milliseconds))).await;
    }

    fn slot(&self, actor: u8, milliseconds: u64) -> u64 {
        ((self.now() + milliseconds) / ACTORS + 1) * ACTORS + u64::from(actor)
    }

    /// Waits as [`World::wait`] does until it is the turn of an operation. Operations of one actor
    /// at one moment happen in the order of their names, because threads may have requested them in
    /// any order.
    pub(crate) async fn turn(self: &Arc<Self>, milliseconds: u64, operation: &Operation) -> Turn {
        let slot = self.slot(operation.actor, milliseconds);
        let turn = Turn {
            world: self.clone(),
            place: (slot, operation.clone()),
        };
        self.record().turns.insert(turn.place.clone());
        sleep_until(self.start + Duration::from_millis(slot)).await;
        while self.record().turns.first() != Some(&turn.place) {
            yield_now().await;
        }
        turn
    }

    /// Names an operation, and chooses its fault.
    pub(crate) fn begin(
        &self,
        actor: u8,
        side: Side,
        kind: Kind,
        subject: String,
    ) -> (Operation, Option<Fault>) {
        let mut operation = Operation {
            actor,
            side,
            kind,
            subject,
            nth: 0,
        };
        let faultless = self.faultless.load(Ordering::Relaxed);
        let mut record = self.record();
        let count = record.counts.entry(operation.clone()).or_default();
        operation.nth = *count;
        *count += 1;
        if faultless {
            return (operation, None);
        }
        record.passed.operations.push(operation.clone());
        let fault = self.faults.at(self.chance, &operation);
        record.passed.faults += u64::from(fault.is_some());
        (operation, fault)
    }

    /// Returns the time that an operation takes, in milliseconds. It is mostly short, and sometimes
    /// so long that others overtake it. Commits and steps of collection often take long, because
    /// the protocol is about what happens meanwhile.
    pub(crate) fn latency(&self, operation: &Operation, fault: Option<Fault>) -> u64 {
        let chance = self.chance.of(("latency", operation));
        match fault {
            Some(Fault::Slow) => chance.number(1000..LONGEST_MS),
            Some(Fault::Pauses) => chance.number(LONGEST_MS..PAUSE_MS),
            _ if is_delicate(operation) && chance.of("delicate").one_in(3) => {
                chance.of("held up").number(500..40_000)
            }
            _ if chance.one_in(20) => chance.of("long").number(100..5000),
            _ => chance.of("short").number(1..200),
        }
    }

    /// Returns the time after which an operation is done that was given up, in milliseconds.
    pub(crate) fn lateness(&self, operation: &Operation) -> u64 {
        self.chance.of(("late", operation)).number(1..LATEST_MS)
    }

    pub(crate) fn note(&self, actor: u8, what: String) {
        let at = self.now();
        self.record().passed.events.push(Event { at, actor, what });
    }

    /// Records that an invariant does not hold. The first one counts.
    pub(crate) fn broken(&self, actor: u8, what: String) {
        self.note(actor, format!("BROKEN: {what}"));
        self.record().broken.get_or_insert(what);
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.record().broken.is_some()
    }

    /// Takes the record of a run that has ended.
    pub(crate) fn end(&self) -> Record {
        std::mem::take(&mut *self.record())
    }
}

/// Returns the time so many milliseconds after the start, by a clock that is wrong by so many
/// seconds.
pub(crate) fn clock(now: u64, wrong: i64) -> SystemTime {
    let now = UNIX_EPOCH + EPOCH + Duration::from_millis(now);
    let by = Duration::from_secs(wrong.unsigned_abs());
    if wrong < 0 { now - by } else { now + by }
}

fn is_delicate(operation: &Operation) -> bool {
    let subject = &operation.subject;
    match operation.kind {
        Kind::Put => subject.ends_with("/current.json") || subject == "gc.json",
        Kind::Get | Kind::Head => subject == "gc.json",
        Kind::List | Kind::Delete => true,
        _ => false,
    }
}
