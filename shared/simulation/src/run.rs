use std::{fmt, sync::Arc, time::Duration};

use futures_util::future::join_all;
use tokio::{
    runtime::{Builder, Runtime},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{
    after,
    fault::{Operation, Side},
    job::{Claim, Done},
    line::Line,
    reader::Reader,
    scenario::{Job, Scenario, Step, Writer},
    site::Site,
    world::{Ended, Event, World},
};

/// Longer than anything may take, with every wait for somebody who died.
const PATIENCE: Duration = Duration::from_secs(4 * 3600);
/// Longer than anything that was given up can still happen, and than a sweep is waited for.
pub(crate) const SETTLED_MS: u64 = 600_000;
/// Who does what is done before and after.
pub(crate) const HOUSE: u8 = 0;

/// A run in which everything held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Passed {
    /// The operations that a fault could have hit.
    pub operations: Vec<Operation>,
    /// Everything that happened, in order.
    pub events: Vec<Event>,
    /// How many faults there were.
    pub faults: u64,
    /// How many times a pointer was changed.
    pub commits: usize,
}

/// A run in which something did not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Broken {
    /// What was run.
    pub scenario: Scenario,
    /// What did not hold.
    pub what: String,
    /// Everything that happened, in order.
    pub events: Vec<Event>,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scenario {
            seed,
            faults,
            prelude,
            writers,
            readers,
        } = &self.scenario;
        writeln!(f, "seed {seed}, faults {faults:?}: {}", self.what)?;
        writeln!(f, "replay: cargo run -p simulation --example replay -- {seed}")?;
        writeln!(f, "prelude: {prelude:?}\nreaders: {readers:?}")?;
        for (writer, at) in writers.iter().zip(1..) {
            writeln!(f, "writer {at}: {writer:?}")?;
        }
        self.events.iter().try_for_each(|event| writeln!(f, "{event}"))
    }
}

/// What everybody in one run works on.
#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) world: Arc<World>,
    pub(crate) origin: Arc<Site>,
    pub(crate) copy: Arc<Site>,
}

/// Runs a scenario to its end.
///
/// # Errors
/// What did not hold, and how it came to that.
pub fn run(scenario: &Scenario) -> Result<Passed, Box<Broken>> {
    let (ended, commits) = runtime().block_on(Stage::play(scenario));
    match ended.broken {
        None => Ok(Passed {
            operations: ended.operations,
            events: ended.events,
            faults: ended.hits,
            commits,
        }),
        Some(what) => Err(Box::new(Broken {
            scenario: scenario.clone(),
            what,
            events: ended.events,
        })),
    }
}

/// One thread and a clock that only moves when nobody has anything to do.
fn runtime() -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.enable_time().start_paused(true);
    builder.build().expect("a thread can be started")
}

impl Stage {
    async fn play(scenario: &Scenario) -> (Ended, usize) {
        let world = World::new(scenario.seed, scenario.faults.clone());
        let origin = Site::new(&world, Side::Origin, None);
        let stage = Self {
            copy: Site::new(&world, Side::Copy, Some(origin.clone())),
            origin,
            world,
        };
        for step in &scenario.prelude {
            stage.calmly(&step.job).await;
        }
        stage.world.set_calm(false);
        stage.act(scenario).await;
        stage.world.set_calm(true);
        if !stage.world.is_broken() {
            after::converge(&stage, scenario).await;
        }
        let commits = stage.commits();
        (stage.world.end(), commits)
    }

    /// Everybody at once. Each is a task, so that none waits for another.
    async fn act(&self, scenario: &Scenario) {
        let writers = scenario.writers.iter().cloned().zip(1..);
        let writers = writers.map(|(writer, actor)| tokio::spawn(self.clone().write(actor, writer)));
        let first = scenario.writers.len() as u8 + 1;
        let readers = scenario.readers.iter().copied().zip(first..);
        let last = scenario
            .writers
            .iter()
            .flat_map(|writer| &writer.steps)
            .map(|step| step.at);
        let last = last.max().unwrap_or_default();
        let readers = readers.map(|((side, count), actor)| tokio::spawn(self.clone().read(actor, side, count, last)));
        let all: Vec<_> = writers.chain(readers).collect();
        for ended in join_all(all).await {
            if let Err(error) = ended {
                self.world
                    .broken(HOUSE, format!("a writer or reader panicked: {error}"));
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
            self.process(actor, writer.wrong, job).await;
        }
    }

    /// Runs a job in a process of its own, which may be killed.
    async fn process(&self, actor: u8, wrong: i64, job: Job) {
        let life = CancellationToken::new();
        self.world.note(actor, format!("starts {job:?}"));
        let working = timeout(PATIENCE, job.run(self.lines(actor, &life), wrong));
        let done = life.run_until_cancelled(working).await;
        match done {
            // What killed it may also have told it of an error, and threads decide which of the two is seen first.
            _ if life.is_cancelled() => self.world.note(actor, "is killed".to_owned()),
            Some(Ok(done)) => self.judge(actor, done),
            _ => self.world.broken(actor, "it never ends".to_owned()),
        }
        life.cancel();
    }

    /// Runs a job on which nothing goes wrong; whether it succeeded.
    pub(crate) async fn calmly(&self, job: &Job) -> bool {
        let life = CancellationToken::new();
        self.world.note(HOUSE, format!("starts {job:?}"));
        let done = timeout(PATIENCE, job.clone().run(self.lines(HOUSE, &life), 0)).await;
        let Ok(done) = done else {
            self.world.broken(HOUSE, format!("{job:?} never ends"));
            return false;
        };
        let succeeded = done.outcome.is_ok();
        self.judge(HOUSE, done);
        succeeded
    }

    pub(crate) const fn site(&self, side: Side) -> &Arc<Site> {
        match side {
            Side::Origin => &self.origin,
            Side::Copy => &self.copy,
        }
    }

    pub(crate) fn lines(&self, actor: u8, life: &CancellationToken) -> [Line; 2] {
        [&self.origin, &self.copy].map(|site| Line {
            world: self.world.clone(),
            site: site.clone(),
            actor,
            life: life.clone(),
            steady: false,
        })
    }

    /// What a writer was told must be so.
    fn judge(&self, actor: u8, done: Done) {
        let outcome = done.outcome.unwrap_or_else(|error| error);
        self.world.note(actor, format!("ends: {outcome}"));
        let Some(Claim {
            side,
            name,
            serial,
            content,
        }) = done.claim
        else {
            return;
        };
        let witness = self.site(side).witness();
        let history = witness.history(&name);
        if !history
            .iter()
            .any(|state| (state.serial, state.content) == (serial, content))
        {
            drop(witness);
            let what = format!("{name} was never at serial {serial} with {content}, as it was said");
            self.world.broken(actor, what);
        }
    }

    async fn read(self, actor: u8, side: Side, count: u64, last: u64) {
        let chance = self.world.chance.of(("reader", actor));
        let [origin, copy] = self.lines(actor, &CancellationToken::new());
        let line = if side == Side::Origin { origin } else { copy };
        let reader = Reader::new(Line { steady: true, ..line }, chance);
        for request in 0..count {
            let chance = chance.of(request);
            // Around the times at which somebody writes.
            let at = crate::scenario::moment(chance.of("at"), last);
            self.world.wait(actor, at.saturating_sub(self.world.now())).await;
            if let Err(what) = reader.read(chance).await {
                self.world.broken(actor, format!("a reader: {what}"));
                return;
            }
        }
    }

    fn commits(&self) -> usize {
        let count = |site: &Site| -> usize {
            let witness = site.witness();
            let names = (0..crate::catalogs::NAMES.len()).map(crate::catalogs::name);
            names.map(|name| witness.history(&name).len()).sum()
        };
        count(&self.origin) + count(&self.copy)
    }
}
