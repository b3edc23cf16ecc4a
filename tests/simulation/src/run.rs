use std::{fmt, sync::Arc, time::Duration};

use futures_util::future::join_all;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::after;
use crate::fault::Side;
use crate::handle::StoreHandle;
use crate::job::Done;
use crate::observed::ObservedStore;
use crate::reader::Reader;
use crate::scenario::{Job, Scenario, Step, Writer, moment, steps};
use crate::world::{Event, Passed, Record, World};

/// Longest time that a job may take: a suspension of five hours in each of its attempts, and more.
const JOB_TIME_MAX: Duration = Duration::from_secs(100 * 3600);
/// Time after which no request is under way any more, in milliseconds.
pub(crate) const SETTLED_MS: u64 = 30 * 60_000;
/// Actor of the jobs before and after the faults.
pub(crate) const HARNESS: u8 = 0;

/// Run in which an invariant did not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Broken {
    /// Scenario of the run.
    pub scenario: Scenario,
    /// Invariant that did not hold.
    pub what: String,
    /// All events, in order.
    pub events: Vec<Event>,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scenario = &self.scenario;
        let seed = scenario.seed;
        writeln!(
            f,
            "seed {seed}, faults {:?}: {}",
            scenario.faults, self.what
        )?;
        writeln!(
            f,
            "replay: cargo run -p simulation --example replay -- {seed}"
        )?;
        writeln!(
            f,
            "prelude: {:?}\nreaders: {:?}",
            scenario.prelude, scenario.readers
        )?;
        for (writer, at) in scenario.writers.iter().zip(1..) {
            writeln!(f, "writer {at}: {writer:?}")?;
        }
        self.events
            .iter()
            .try_for_each(|event| writeln!(f, "{event}"))
    }
}

/// World and stores of one run.
#[derive(Clone)]
pub(crate) struct Simulation {
    pub(crate) world: Arc<World>,
    pub(crate) origin: Arc<ObservedStore>,
    pub(crate) copy: Arc<ObservedStore>,
}

/// Runs a scenario to its end.
///
/// # Errors
/// The invariant that did not hold, with all events.
pub fn run(scenario: &Scenario) -> Result<Passed, Box<Broken>> {
    let Record { broken, passed, .. } = runtime().block_on(Simulation::play(scenario));
    let Some(what) = broken else {
        return Ok(passed);
    };
    let (scenario, events) = (scenario.clone(), passed.events);
    Err(Box::new(Broken {
        scenario,
        what,
        events,
    }))
}

/// Returns a runtime of one thread with a clock that moves only when all tasks wait.
fn runtime() -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.enable_time().start_paused(true);
    // With one thread, blocking tasks that overlap in simulated time end in the order in which they
    // began.
    builder.max_blocking_threads(1);
    builder.build().expect("a thread can be started")
}

impl Simulation {
    async fn play(scenario: &Scenario) -> Record {
        let world = World::new(scenario.seed, scenario.faults.clone());
        let origin = ObservedStore::new(&world, Side::Origin, None);
        let simulation = Self {
            copy: ObservedStore::new(&world, Side::Copy, Some(origin.clone())),
            origin,
            world,
        };
        for step in &scenario.prelude {
            // It may fail: a copy of nothing does.
            let _ = simulation.must(&step.job).await;
        }
        simulation.world.set_faultless(false);
        simulation.act(scenario).await;
        simulation.world.set_faultless(true);
        if !simulation.world.is_broken() {
            after::converge(&simulation, scenario).await;
        }
        let mut record = simulation.world.end();
        let stores = [simulation.origin, simulation.copy];
        record.passed.commits = stores
            .iter()
            .map(|observed| observed.checker().commits())
            .sum();
        record
    }

    /// Runs all writers and readers at once, each in a task of its own.
    async fn act(&self, scenario: &Scenario) {
        let writers = scenario.writers.iter().cloned().zip(1..);
        let writers =
            writers.map(|(writer, actor)| tokio::spawn(self.clone().write(actor, writer)));
        let first = scenario.writers.len() as u8 + 1;
        let readers = scenario.readers.iter().copied().zip(first..);
        let last = steps(&scenario.writers)
            .map(|step| step.at)
            .max()
            .unwrap_or_default();
        let readers = readers.map(|((side, count), actor)| {
            tokio::spawn(self.clone().read(actor, side, count, last))
        });
        let all: Vec<_> = writers.chain(readers).collect();
        for ended in join_all(all).await {
            if let Err(error) = ended {
                self.world
                    .broken(HARNESS, format!("a writer or reader panicked: {error}"));
            }
        }
    }

    async fn write(self, actor: u8, writer: Writer) {
        for Step { at, job } in writer.steps {
            let wait = at.saturating_sub(self.world.now());
            self.world.wait(actor, wait).await;
            if self.world.is_broken() {
                return;
            }
            let process = CancellationToken::new();
            self.run(&process, actor, writer.wrong, &job).await;
            process.cancel();
        }
    }

    /// Runs a job in a process, which a fault may kill. Returns true if it succeeded.
    async fn run(&self, process: &CancellationToken, actor: u8, wrong: i64, job: &Job) -> bool {
        self.world.note(actor, format!("starts {job:?}"));
        let begun = self.world.now();
        let handles = self.handles(actor, process);
        for handle in &handles {
            handle.begin_process(wrong, job.rights());
        }
        let working = timeout(JOB_TIME_MAX, job.clone().run(handles, wrong));
        let done = process.run_until_cancelled(working).await;
        let succeeded = matches!(&done, Some(Ok(done)) if done.outcome.is_ok());
        match done {
            // The fault that killed it may also have returned an error, and threads decide which is
            // seen first.
            _ if process.is_cancelled() => self.world.note(actor, "is killed".to_owned()),
            Some(Ok(done)) => {
                self.check_told(actor, begun, &done);
                self.check_claim(actor, done);
            }
            _ => self.world.broken(actor, "the job never ends".to_owned()),
        }
        succeeded
    }

    /// Runs a job without faults. It has to succeed.
    pub(crate) async fn must(&self, job: &Job) -> Result<(), String> {
        let succeeded = self.run(&CancellationToken::new(), HARNESS, 0, job).await;
        succeeded
            .then_some(())
            .ok_or_else(|| format!("{job:?} does not succeed"))
    }

    pub(crate) fn observed(&self, side: Side) -> &Arc<ObservedStore> {
        let [observed, _] = side.first([&self.origin, &self.copy]);
        observed
    }

    pub(crate) fn handles(&self, actor: u8, process: &CancellationToken) -> [StoreHandle; 2] {
        [&self.origin, &self.copy].map(|observed| StoreHandle {
            world: self.world.clone(),
            observed: observed.clone(),
            actor,
            process: process.clone(),
            steady: false,
        })
    }

    /// Checks that a hold is told once, as long as nothing goes wrong.
    fn check_told(&self, actor: u8, begun: u64, done: &Done) {
        let Some(told) = &done.told else { return };
        if !self.world.is_calm() {
            return;
        }
        let checker = self.origin.checker();
        let history = checker.history(&told.name);
        let checked = checker
            .holds
            .check_told(begun, self.world.now(), told, history);
        drop(checker);
        if let Err(what) = checked {
            self.world.broken(actor, format!("{}: {what}", told.name));
        }
    }

    /// Checks that a publication which a writer reports is in the history.
    fn check_claim(&self, actor: u8, done: Done) {
        let outcome = done.outcome.unwrap_or_else(|error| error);
        self.world.note(actor, format!("ends: {outcome}"));
        let Some(claim) = done.claim else { return };
        let checker = self.observed(claim.side).checker();
        let mut states = checker.history(&claim.name).states.iter();
        if !states.any(|state| (state.serial, state.content) == (claim.serial, claim.content)) {
            drop(checker);
            self.world.broken(
                actor,
                format!("{claim:?} was never published, as it was said"),
            );
        }
    }

    async fn read(self, actor: u8, side: Side, count: u64, last: u64) {
        let chance = self.world.chance.of(("reader", actor));
        let [handle, _] = side.first(self.handles(actor, &CancellationToken::new()));
        let reader = Reader::new(
            StoreHandle {
                steady: true,
                ..handle
            },
            chance,
        );
        for request in 0..count {
            let chance = chance.of(request);
            // Around the times of the writers.
            let at = moment(chance.of("at"), last);
            self.world
                .wait(actor, at.saturating_sub(self.world.now()))
                .await;
            if let Err(what) = reader.read(chance).await {
                self.world.broken(actor, format!("a reader: {what}"));
                return;
            }
        }
    }
}
