use stateright::{Model, Property};

use super::world::{Collector, Gc, Publisher, Standing, Step, World};

/// One rule of the protocol, or one assumption about the world. A configuration that leaves one out must fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// A publisher takes an object that it needs off the list of condemned objects.
    Spare,
    /// A spare is a compare-and-swap of the state that the publisher has read.
    SpareBySwap,
    /// A publisher that needs an object which is being deleted ends without a commit.
    Defer,
    /// A collector marks again before it starts to delete.
    SecondMark,
    /// A collector starts the second marking only when the condemnation is old enough.
    MarkAfterWait,
    /// `condemned` lasts for at least [`Ticks::wait`].
    WaitBeforeDeleting,
    /// `deleting` lasts for at least [`Ticks::wait`].
    WaitAfterDeleting,
    /// A publisher commits within [`Ticks::hour`] of its reading of `gc.json`.
    Hour,
    /// A publisher that reads `gc.json` again does not get another hour for what it had found before.
    HourFromFirstRead,
    /// A commit lands within [`Ticks::commit`], or never.
    CommitTimeout,
    /// A commit is a compare-and-swap of the pointer that the publisher has read.
    CommitBySwap,
    /// A delete is sent only within [`Ticks::deleting`] of the start of `deleting`.
    DeletingWindow,
    /// A delete lands within [`Ticks::landing`], or never: signatures expire.
    DeleteExpires,
}

/// Durations of the protocol as whole ticks. All limits are inclusive, so whole ticks lose no behaviour of real time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticks {
    /// Shortest life of `condemned` and of `deleting`: `X`, two hours.
    pub(crate) wait: u8,
    /// Longest time from a publisher's reading of `gc.json` to the sending of its commit: one hour.
    pub(crate) hour: u8,
    /// Longest time from the sending of a commit to its landing: a time-out, a signature's life and a wrong clock.
    pub(crate) commit: u8,
    /// Longest time from the start of `deleting` to the sending of a delete: 30 minutes.
    pub(crate) deleting: u8,
    /// Longest time from the sending of a delete to its landing: a signature's life and a wrong clock.
    pub(crate) landing: u8,
}

/// Variant of the protocol to check: its processes, durations and the rule that is left out.
#[derive(Debug, Clone)]
pub(crate) struct Protocol {
    /// Catalog that each publisher publishes. Every publisher needs the same object.
    pub(crate) publishers: Vec<u8>,
    /// Number of collectors.
    pub(crate) collectors: u8,
    /// Number of catalogs.
    pub(crate) catalogs: u8,
    /// The durations.
    pub(crate) ticks: Ticks,
    /// The rule that is left out.
    pub(crate) without: Option<Rule>,
}

impl Protocol {
    /// Name of the property that must always hold.
    pub(crate) const PUBLISHED_IS_THERE: &str = "what is published is there";

    fn has(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    fn all_catalogs(&self) -> u8 {
        (1 << self.catalogs) - 1
    }

    /// Ages above this one make no difference.
    fn oldest(&self) -> u8 {
        self.ticks.wait.max(self.ticks.deleting + 1)
    }

    fn ends_condemned(&self, age: u8) -> bool {
        age >= self.ticks.wait || !self.has(Rule::WaitBeforeDeleting)
    }

    fn ends_deleting(&self, age: u8) -> bool {
        age >= self.ticks.wait || !self.has(Rule::WaitAfterDeleting)
    }

    fn may_delete(&self, age: u8) -> bool {
        age <= self.ticks.deleting || !self.has(Rule::DeletingWindow)
    }

    fn standing(&self, gc: Gc) -> Standing {
        match gc {
            Gc::Condemned { listed: true, .. } => Standing::Condemned,
            Gc::Deleting { listed: true, .. } => Standing::Deleting,
            // Kept apart only where it makes a difference: fewer worlds.
            Gc::Condemned { .. } => Standing::Free {
                condemned: !self.has(Rule::HourFromFirstRead),
            },
            Gc::None | Gc::Deleting { .. } => Standing::Free { condemned: false },
        }
    }

    fn publisher_steps(&self, world: &World, at: usize, steps: &mut Vec<Step>) {
        let publisher = &world.publishers[at];
        if *publisher != Publisher::idle(publisher.catalog) {
            steps.push(Step::StopPublisher(at));
        }
        if publisher.commit.is_some() {
            steps.push(Step::LandCommit(at));
            return;
        }
        if publisher.read.is_none() {
            steps.push(Step::ReadGc(at));
        }
        if publisher.base.is_none() {
            steps.push(Step::ReadPointer(at));
        }
        let (Some((standing, age)), Some(named)) = (publisher.read, publisher.base) else {
            return;
        };
        if publisher.secured {
            if age <= self.ticks.hour {
                steps.push(Step::SendCommit(at));
            }
            if standing == (Standing::Free { condemned: true }) {
                steps.push(Step::ReadAgain(at));
            }
            return;
        }
        let missing_rule = match standing {
            Standing::Free { .. } => None,
            Standing::Condemned => Some(Rule::Spare),
            Standing::Deleting => Some(Rule::Defer),
        };
        if named || missing_rule.is_none_or(|rule| !self.has(rule)) {
            steps.push(Step::Secure(at));
        } else if standing == Standing::Condemned {
            steps.push(Step::Spare(at));
        }
    }

    fn collector_steps(&self, world: &World, at: usize, steps: &mut Vec<Step>) {
        let early = !self.has(Rule::MarkAfterWait);
        match (world.collectors[at], world.gc) {
            (Collector::Idle, Gc::None) => steps.push(Step::ReadState(at)),
            (Collector::Idle, Gc::Condemned { age, .. }) if early || self.ends_condemned(age) => {
                steps.push(Step::ReadState(at));
            }
            (Collector::Idle, _) => {}
            (Collector::ReadNone, _) => steps.push(Step::List(at)),
            (Collector::FirstMark { unread, .. } | Collector::SecondMark { unread, .. }, gc) => {
                let unread = (0..self.catalogs).filter(|catalog| unread & (1 << catalog) != 0);
                let before = steps.len();
                steps.extend(unread.map(|catalog| Step::Mark(at, catalog)));
                let old = !matches!(gc, Gc::Condemned { age, .. } if !self.ends_condemned(age));
                if steps.len() == before && old {
                    steps.push(Step::Advance(at));
                }
            }
        }
        if world.collectors[at] != Collector::Idle {
            steps.push(Step::StopCollector(at));
        }
    }

    /// Writes `gc.json`. Resets each process that would swap an earlier version: the swap fails, which is like a restart.
    fn write_gc(&self, world: &mut World, gc: Gc) {
        world.gc = gc;
        world.collectors.fill(Collector::Idle);
        if self.has(Rule::SpareBySwap) {
            for publisher in &mut world.publishers {
                publisher
                    .read
                    .take_if(|(standing, _)| *standing == Standing::Condemned && !publisher.secured);
            }
        }
    }

    /// Writes a pointer. Publishers of this catalog that have read it before cannot commit any more.
    fn write_pointer(&self, world: &mut World, catalog: u8, named: bool) {
        world.names[usize::from(catalog)] = named;
        if self.has(Rule::CommitBySwap) {
            let readers = world.publishers.iter_mut();
            let readers = readers.filter(|publisher| publisher.catalog == catalog);
            for publisher in readers.filter(|publisher| publisher.base.is_some() || publisher.commit.is_some()) {
                *publisher = Publisher::idle(catalog);
            }
        }
    }

    fn tick(&self, world: &mut World) {
        let oldest = self.oldest();
        if let Gc::Condemned { age, .. } | Gc::Deleting { age, .. } = &mut world.gc {
            *age = oldest.min(*age + 1);
        }
        if self.has(Rule::DeleteExpires) {
            world.delete = world.delete.and_then(|left| left.checked_sub(1));
        }
        for publisher in &mut world.publishers {
            let restart = match (&mut publisher.commit, &mut publisher.read) {
                (Some(left), _) if self.has(Rule::CommitTimeout) => {
                    let late = *left == 0;
                    *left = left.saturating_sub(1);
                    late
                }
                (None, Some((_, age))) if self.has(Rule::Hour) => {
                    *age = self.ticks.hour.min(*age) + 1;
                    // It could only start again, unless reading again gives it another hour.
                    *age > self.ticks.hour && self.has(Rule::HourFromFirstRead)
                }
                _ => false,
            };
            if restart {
                *publisher = Publisher::idle(publisher.catalog);
            }
        }
    }

    /// Takes one step.
    fn take(&self, step: Step, world: &mut World) {
        let unread = self.all_catalogs();
        match step {
            Step::Tick => self.tick(world),
            Step::TakeOut(catalog) => self.write_pointer(world, catalog, false),
            Step::ReadGc(at) => world.publishers[at].read = Some((self.standing(world.gc), 0)),
            Step::ReadAgain(at) => {
                world.publishers[at].read = Some((Standing::Free { condemned: false }, 0));
            }
            Step::ReadPointer(at) => {
                let named = world.names[usize::from(world.publishers[at].catalog)];
                world.publishers[at].base = Some(named);
            }
            Step::Spare(at) => {
                let age = match world.gc {
                    Gc::Condemned { age, .. } => age,
                    // Reached without the compare-and-swap only.
                    Gc::None | Gc::Deleting { .. } => 0,
                };
                let spared = world.publishers[at]
                    .read
                    .map(|(_, age)| (Standing::Free { condemned: false }, age));
                world.publishers[at].read = spared;
                self.write_gc(world, Gc::Condemned { age, listed: false });
            }
            Step::Secure(at) => {
                let publisher = &mut world.publishers[at];
                publisher.secured = true;
                // What the base names is not looked at.
                world.object |= publisher.base == Some(false);
            }
            Step::SendCommit(at) => {
                let publisher = &mut world.publishers[at];
                *publisher = Publisher::idle(publisher.catalog);
                publisher.commit = Some(self.ticks.commit);
            }
            Step::LandCommit(at) => {
                let catalog = world.publishers[at].catalog;
                world.publishers[at] = Publisher::idle(catalog);
                self.write_pointer(world, catalog, true);
            }
            Step::StopPublisher(at) => world.publishers[at] = Publisher::idle(world.publishers[at].catalog),
            Step::ReadState(at) => {
                world.collectors[at] = match world.gc {
                    Gc::None => Collector::ReadNone,
                    Gc::Condemned { .. } if !self.has(Rule::SecondMark) => Collector::SecondMark {
                        unread: 0,
                        unnamed: true,
                    },
                    _ => Collector::SecondMark { unread, unnamed: true },
                }
            }
            Step::List(at) => {
                world.collectors[at] = Collector::FirstMark {
                    unread,
                    unnamed: world.object,
                }
            }
            Step::Mark(at, catalog) => {
                let named = world.names[usize::from(catalog)];
                if let Collector::FirstMark { unread, unnamed } | Collector::SecondMark { unread, unnamed } =
                    &mut world.collectors[at]
                {
                    *unread &= !(1 << catalog);
                    *unnamed &= !named;
                }
            }
            Step::Advance(at) => match (world.collectors[at], world.gc) {
                (Collector::FirstMark { unnamed, .. }, Gc::None) => {
                    self.write_gc(
                        world,
                        Gc::Condemned {
                            age: 0,
                            listed: unnamed,
                        },
                    );
                }
                (Collector::SecondMark { unnamed, .. }, Gc::Condemned { listed, .. }) => {
                    let listed = listed && unnamed;
                    self.write_gc(world, Gc::Deleting { age: 0, listed });
                }
                _ => unreachable!("a collector forgets what it read when gc.json is written"),
            },
            Step::StopCollector(at) => world.collectors[at] = Collector::Idle,
            Step::SendDelete => world.delete = Some(self.ticks.landing),
            Step::LandDelete => world.object = false,
            Step::EndDeleting => self.write_gc(world, Gc::None),
        }
    }
}

impl Model for Protocol {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        let world = World {
            object: false,
            names: vec![false; self.catalogs.into()],
            gc: Gc::None,
            delete: None,
            publishers: self.publishers.iter().copied().map(Publisher::idle).collect(),
            collectors: vec![Collector::Idle; self.collectors.into()],
        };
        // An object that a killed publisher left behind.
        let left_behind = World {
            object: true,
            ..world.clone()
        };
        vec![world, left_behind]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        steps.push(Step::Tick);
        let named = (0..self.catalogs).filter(|catalog| world.names[usize::from(*catalog)]);
        steps.extend(named.map(Step::TakeOut));
        for at in 0..world.publishers.len() {
            self.publisher_steps(world, at, steps);
        }
        for at in 0..world.collectors.len() {
            self.collector_steps(world, at, steps);
        }
        if let Gc::Deleting { age, listed } = world.gc {
            if listed && self.may_delete(age) {
                steps.push(Step::SendDelete);
            }
            if self.ends_deleting(age) {
                steps.push(Step::EndDeleting);
            }
        }
        if world.delete.is_some() && world.object {
            steps.push(Step::LandDelete);
        }
    }

    fn next_state(&self, before: &World, step: Step) -> Option<World> {
        let mut world = before.clone();
        self.take(step, &mut world);
        world.publishers.sort_unstable();
        world.collectors.sort_unstable();
        (world != *before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(Self::PUBLISHED_IS_THERE, |_, world: &World| {
                world.object || world.names.iter().all(|named| !named)
            }),
            // Without these, the first would also hold for a model in which nothing happens.
            Property::sometimes("an object is published", |_, world: &World| world.names[0]),
            Property::sometimes("an object is spared", |_, world: &World| {
                let spared = |publisher: &Publisher| {
                    matches!(publisher.read, Some((Standing::Free { .. }, _))) && publisher.secured
                };
                matches!(world.gc, Gc::Condemned { listed: false, .. }) && world.publishers.iter().any(spared)
            }),
            Property::sometimes("a publication is deferred", |_, world: &World| {
                let deferred = |publisher: &Publisher| {
                    publisher.base == Some(false) && matches!(publisher.read, Some((Standing::Deleting, _)))
                };
                world.publishers.iter().any(deferred)
            }),
            Property::sometimes("an object comes back after it was deleted", |_, world: &World| {
                world.object
                    && matches!(world.gc, Gc::Deleting { listed: true, age } if age > 0)
                    && world.delete.is_none()
            }),
        ]
    }
}
