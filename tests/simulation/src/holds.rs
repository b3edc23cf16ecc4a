//! Checks of holds: what is served, and what `status.json` says about it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use model::{CatalogName, Sha256};
use serde_json::Value;

use crate::catalogs;
use crate::history::{History, State};
use crate::world::{LATEST_MS, clock};

/// Knowledge of the checks about the holds of all catalogs of a store.
#[derive(Debug, Default)]
pub(crate) struct HoldChecker {
    seen: BTreeMap<CatalogName, Vec<SeenHold>>,
    /// Processes by their actor, in the order of their starts.
    processes: BTreeMap<u8, Vec<Process>>,
}

/// Hold as `status.json` had it from one time to another.
#[derive(Debug)]
struct SeenHold {
    hold: KnownHold,
    from: u64,
    /// Time of its replacement, in milliseconds. `None` while it is the one of the document.
    until: Option<u64>,
}

/// Hold in `status.json`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KnownHold {
    revision: String,
    /// Snapshot that was published then.
    base: Option<Sha256>,
    since: SystemTime,
    until: Option<SystemTime>,
    is_released: bool,
}

/// Process of an actor.
#[derive(Debug)]
pub(crate) struct Process {
    /// Time of its start in milliseconds.
    pub(crate) from: u64,
    /// Error of its clock in seconds.
    pub(crate) wrong: i64,
    pub(crate) rights: BTreeSet<Right>,
}

/// Right of a process, which a person gives it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Right {
    /// Publishes any content of a catalog: by force, as a rollback, or as a promotion.
    Publish(CatalogName),
    /// Lets the content of a catalog through that is held.
    Release(CatalogName),
}

/// New content that a poll reported as held for the first time.
#[derive(Debug)]
pub(crate) struct ToldHold {
    pub(crate) name: CatalogName,
    pub(crate) revision: String,
}

impl HoldChecker {
    /// Notes that an actor begins a process.
    pub(crate) fn begin(&mut self, actor: u8, process: Process) {
        self.processes.entry(actor).or_default().push(process);
    }

    /// Returns the processes of an actor that may have sent a request which is done now. It may come
    /// late, also after the process was killed.
    fn senders(&self, actor: u8, now: u64) -> &[Process] {
        let processes = self.processes.get(&actor).map_or(&[][..], Vec::as_slice);
        let earliest = now.saturating_sub(LATEST_MS);
        let first = processes
            .iter()
            .rposition(|process| process.from <= earliest);
        &processes[first.unwrap_or_default()..]
    }

    /// Returns the time at which the first of these processes began.
    pub(crate) fn begin_of_senders(&self, actor: u8, now: u64) -> u64 {
        let first = self.senders(actor, now).first();
        first.map_or(now, |process| process.from)
    }

    /// Returns true if a process of an actor has a right whose request may be done now.
    pub(crate) fn has_right(&self, actor: u8, now: u64, right: &Right) -> bool {
        let mut senders = self.senders(actor, now).iter();
        senders.any(|process| process.rights.contains(right))
    }

    /// Checks `status.json` of a catalog after an actor has written it. `published` is the snapshot
    /// that is served.
    ///
    /// # Errors
    /// A hold that no process may make or drop.
    pub(crate) fn note_status(
        &mut self,
        now: u64,
        actor: u8,
        name: &CatalogName,
        bytes: &[u8],
        published: Option<Sha256>,
    ) -> Result<(), String> {
        let status: Value =
            serde_json::from_slice(bytes).map_err(|error| format!("status.json: {error}"))?;
        let next = KnownHold::read(&status["rejected"])?;
        let last = self.seen.get(name).and_then(|seen| seen.last());
        let last = last.filter(|last| last.until.is_none());
        let before = last.map(|last| last.hold.clone());
        if next == before {
            return Ok(());
        }
        let same = |other: &&KnownHold| next.as_ref().is_some_and(|next| next.is_same(other));
        let released_before = before.as_ref().filter(|before| before.is_released);
        let right = Right::Release(name.clone());
        let may_release = self.has_right(actor, now, &right)
            || released_before.is_some_and(|before| same(&before));
        if let Some(next) = &next {
            if next.is_released && !may_release {
                return Err(format!("{} was released by no person", next.revision));
            }
            if let Some(before) = &before
                && before.base == next.base
                && before.since < next.since
            {
                return Err("the time of a hold over one state begins anew".to_owned());
            }
            let until = catalogs::hold_time(name).map(|time| next.since + time);
            if next.until != until {
                return Err(format!("the hold is one until {:?}", next.until));
            }
        }
        if let Some(released) = released_before.filter(same)
            && next.as_ref().is_some_and(|next| !next.is_released)
        {
            return Err(format!("the release of {} is lost", released.revision));
        }
        let outcome = &status["outcome"];
        if let Some(released) = released_before
            && next.is_none()
            && !outcome.is_null()
        {
            let revision = &released.revision;
            if outcome == "failed" || outcome == "refused" {
                let what = format!("the release of {revision} is lost by a poll that is {outcome}");
                return Err(what);
            }
            // Over another state the release is void.
            let is_over = released.base != published;
            if !is_over && self.begin_of_last(actor) < self.first_seen(name, released) {
                let what = format!("the release of {revision} is lost by a poll from before it");
                return Err(what);
            }
        }
        let seen = self.seen.entry(name.clone()).or_default();
        if let Some(last) = seen.last_mut() {
            last.until.get_or_insert(now);
        }
        if let Some(hold) = next {
            seen.push(SeenHold {
                hold,
                from: now,
                until: None,
            });
        }
        Ok(())
    }

    /// Returns the start of the last process of an actor.
    fn begin_of_last(&self, actor: u8) -> u64 {
        let processes = self.processes.get(&actor);
        let last = processes.and_then(|processes| processes.last());
        last.map_or(u64::MAX, |process| process.from)
    }

    /// Returns the time since which `status.json` has the hold of this revision over this state.
    fn first_seen(&self, name: &CatalogName, hold: &KnownHold) -> u64 {
        let seen = self.seen.get(name).into_iter().flatten().rev();
        let same = seen.take_while(|seen| seen.hold.is_same(hold));
        same.last().map_or(0, |first| first.from)
    }

    /// Checks that an actor may publish a state whose content is an accident over the state before.
    ///
    /// # Errors
    /// The state, if no person and no time has let it through.
    pub(crate) fn check_accident(
        &self,
        now: u64,
        actor: u8,
        name: &CatalogName,
        before: &State,
        next: &State,
    ) -> Result<(), String> {
        if self.has_right(actor, now, &Right::Publish(name.clone())) {
            return Ok(());
        }
        let from = self.begin_of_senders(actor, now);
        let senders = self.senders(actor, now).iter();
        let clocks: Vec<SystemTime> = senders.map(|process| clock(now, process.wrong)).collect();
        let is_let_through = |hold: &KnownHold| {
            let is_over = hold
                .until
                .is_some_and(|until| clocks.iter().any(|clock| until <= *clock));
            hold.base == Some(before.snapshot)
                && (is_over || hold.is_released && hold.revision == next.revision)
        };
        let mut known = self.between(name, from);
        if known.any(|seen| is_let_through(&seen.hold)) {
            return Ok(());
        }
        Err(format!(
            "{} is an accident over serial {}, and was published",
            next.revision, before.serial
        ))
    }

    /// Checks that a hold was not told before, as `status.json` had it since before the poll began,
    /// at `from`.
    ///
    /// # Errors
    /// The revision that was told twice.
    pub(crate) fn check_told(
        &self,
        from: u64,
        now: u64,
        told: &ToldHold,
        history: &History,
    ) -> Result<(), String> {
        let states: Vec<&State> = history.between(from, now).collect();
        let [published] = states[..] else {
            return Ok(());
        };
        let is_known = |seen: &SeenHold| {
            let hold = &seen.hold;
            let is_whole = seen.from < from && seen.until.is_none_or(|until| until > now);
            is_whole && hold.revision == told.revision && hold.base == Some(published.snapshot)
        };
        if self.between(&told.name, from).any(is_known) {
            return Err(format!("the hold of {} is told again", told.revision));
        }
        Ok(())
    }

    /// Returns the holds that `status.json` had at some moment since then.
    fn between(&self, name: &CatalogName, from: u64) -> impl Iterator<Item = &SeenHold> {
        let seen = self.seen.get(name).into_iter().flatten();
        seen.filter(move |seen| seen.until.is_none_or(|until| until >= from))
    }
}

impl KnownHold {
    /// Returns true for the same revision over the same published state.
    fn is_same(&self, other: &Self) -> bool {
        self.revision == other.revision && self.base == other.base
    }

    /// Reads `rejected` of `status.json`.
    fn read(rejected: &Value) -> Result<Option<Self>, String> {
        let held = &rejected["held"];
        if held.is_null() {
            return Ok(None);
        }
        let base = rejected["base"].as_str();
        Ok(Some(Self {
            revision: rejected["revision"]
                .as_str()
                .ok_or("a hold has no revision")?
                .to_owned(),
            base: base
                .map(str::parse)
                .transpose()
                .map_err(|_| "the base of a hold is no hash")?,
            since: time(&held["since"])?.ok_or("a hold has no time")?,
            until: time(&held["until"])?,
            is_released: held["released"].as_bool().unwrap_or_default(),
        }))
    }
}

/// Parses a time of a document.
pub(crate) fn time(value: &Value) -> Result<Option<SystemTime>, String> {
    let Some(text) = value.as_str() else {
        return Ok(None);
    };
    let time = humantime::parse_rfc3339(text);
    time.map(Some).map_err(|error| format!("{value}: {error}"))
}
