use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, ThreadId},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::{
    task::yield_now,
    time::{Instant, sleep_until},
};

use crate::{
    chance::Chance,
    fault::{Fault, Faults, Kind, Operation, Side},
};

/// When every run starts: 2026-01-01.
const EPOCH: Duration = Duration::from_secs(1_767_225_600);
/// No two actors are ever woken at the same moment, as each has the milliseconds of its own remainder: what happens at
/// one moment could happen in an order that threads decide.
pub(crate) const ACTORS: u64 = 16;
/// The longest that an operation is held up, or happens after it was given up: with a stretch of removing (60 s) two of
/// them stay below the 300 s after which a sweep is given up for dead.
const LONGEST_MS: u64 = 100_000;

/// What all actors of one run share: the time, chance, faults, and the record of what happened.
pub(crate) struct World {
    pub(crate) chance: Chance,
    start: Instant,
    main: ThreadId,
    faults: Faults,
    calm: AtomicBool,
    record: Mutex<Record>,
}

#[derive(Default)]
struct Record {
    turns: BTreeSet<(u64, Operation)>,
    counts: HashMap<Operation, u32>,
    operations: Vec<Operation>,
    events: Vec<Event>,
    hits: u64,
    broken: Option<String>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When, in milliseconds since the start.
    pub at: u64,
    /// Who did it.
    pub actor: u8,
    /// What.
    pub what: String,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, actor, what } = self;
        write!(f, "{:>12.3} s  {actor:>2}  {what}", *at as f64 / 1000.0)
    }
}

/// Until it is dropped, nothing else happens at the same moment.
pub(crate) struct Turn {
    world: Arc<World>,
    place: (u64, Operation),
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.world.record().turns.remove(&self.place);
    }
}

/// All that a run left behind.
pub(crate) struct Ended {
    pub(crate) operations: Vec<Operation>,
    pub(crate) events: Vec<Event>,
    pub(crate) hits: u64,
    pub(crate) broken: Option<String>,
}

impl World {
    /// Must be called on the thread that runs the actors.
    pub(crate) fn new(seed: u64, faults: Faults) -> Arc<Self> {
        Arc::new(Self {
            chance: Chance::new(seed),
            start: Instant::now(),
            main: thread::current().id(),
            faults,
            // Until the actors start.
            calm: AtomicBool::new(true),
            record: Mutex::default(),
        })
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Milliseconds since the start.
    pub(crate) fn now(&self) -> u64 {
        self.start.elapsed().as_millis().try_into().unwrap_or(u64::MAX)
    }

    /// The time by a clock that is wrong by so many seconds.
    pub(crate) fn clock(&self, wrong: i64) -> SystemTime {
        let now = UNIX_EPOCH + EPOCH + Duration::from_millis(self.now());
        let by = Duration::from_secs(wrong.unsigned_abs());
        if wrong < 0 { now - by } else { now + by }
    }

    pub(crate) fn set_calm(&self, calm: bool) {
        self.calm.store(calm, Ordering::Relaxed);
    }

    /// Threads that render hold the time still while they work, so they cannot wait for it.
    pub(crate) fn may_wait(&self) -> bool {
        thread::current().id() == self.main
    }

    /// Waits about so long, until a moment at which nobody else is woken.
    pub(crate) async fn wait(&self, actor: u8, milliseconds: u64) {
        sleep_until(self.start + Duration::from_millis(self.slot(actor, milliseconds))).await;
    }

    fn slot(&self, actor: u8, milliseconds: u64) -> u64 {
        ((self.now() + milliseconds) / ACTORS + 1) * ACTORS + u64::from(actor)
    }

    /// Waits as [`World::wait`] does until it is the turn of an operation. Those of one actor that have the same moment
    /// happen in their own order, not in that in which they were asked for, as threads may have asked for them.
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

    /// Names an operation, and says what goes wrong with it.
    pub(crate) fn begin(&self, actor: u8, side: Side, kind: Kind, subject: String) -> (Operation, Option<Fault>) {
        let mut operation = Operation {
            actor,
            side,
            kind,
            subject,
            nth: 0,
        };
        let calm = self.calm.load(Ordering::Relaxed);
        let mut record = self.record();
        let count = record.counts.entry(operation.clone()).or_default();
        operation.nth = *count;
        *count += 1;
        if calm {
            return (operation, None);
        }
        record.operations.push(operation.clone());
        let fault = self.faults.at(self.chance, &operation);
        record.hits += u64::from(fault.is_some());
        (operation, fault)
    }

    /// How long an operation is on its way, in milliseconds: mostly short, sometimes so that others overtake it. By what
    /// writers find each other, or commit, that is often: what happens between is what everything depends on.
    pub(crate) fn latency(&self, operation: &Operation, fault: Option<Fault>) -> u64 {
        let chance = self.chance.of(("latency", operation));
        match fault {
            Some(Fault::Slow) => chance.number(1000..LONGEST_MS),
            _ if is_delicate(operation) && chance.of("delicate").one_in(3) => chance.of("held up").number(500..40_000),
            _ if chance.one_in(20) => chance.of("long").number(100..5000),
            _ => chance.of("short").number(1..200),
        }
    }

    /// How long after it was given up an operation happens.
    pub(crate) fn lateness(&self, operation: &Operation) -> u64 {
        self.chance.of(("late", operation)).number(1..LONGEST_MS)
    }

    pub(crate) fn note(&self, actor: u8, what: String) {
        let at = self.now();
        self.record().events.push(Event { at, actor, what });
    }

    /// An invariant does not hold. The first time counts.
    pub(crate) fn broken(&self, actor: u8, what: String) {
        self.note(actor, format!("BROKEN: {what}"));
        self.record().broken.get_or_insert(what);
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.record().broken.is_some()
    }

    pub(crate) fn end(&self) -> Ended {
        let record = std::mem::take(&mut *self.record());
        Ended {
            operations: record.operations,
            events: record.events,
            hits: record.hits,
            broken: record.broken,
        }
    }
}

fn is_delicate(operation: &Operation) -> bool {
    let subject = &operation.subject;
    match operation.kind {
        Kind::Put => subject.ends_with("/current.json") || subject.contains("/intents/") || subject == "sweep.json",
        Kind::Get => subject == "sweep.json",
        Kind::List | Kind::Delete => true,
        _ => false,
    }
}
