use std::ops::Range;

use stateright::{Model, Property};

use super::world::{Collector, Gc, Publisher, Standing, Step, Steps, World};

/// One rule of the protocol, or one assumption about the world. A configuration that leaves one out
/// must fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::VariantArray)]
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
    /// A publisher that reads `gc.json` again does not get another hour for what it had found
    /// before.
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

/// Durations of the protocol as whole ticks. All limits are inclusive, so whole ticks lose no
/// behaviour of real time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticks {
    /// Shortest life of `condemned` and of `deleting`: `X`, two hours.
    pub(crate) wait: u8,
    /// Longest time from a publisher's reading of `gc.json` to the sending of its commit: one hour.
    pub(crate) hour: u8,
    /// Longest time from the sending of a commit to its landing: a time-out, a signature's life and
    /// a wrong clock.
    pub(crate) commit: u8,
    /// Longest time from the start of `deleting` to the sending of a delete: 30 minutes.
    pub(crate) deleting: u8,
    /// Longest time from the sending of a delete to its landing: a signature's life and a wrong
    /// clock.
    pub(crate) landing: u8,
}

/// Variant of the protocol to check: its processes, durations and the rule that is left out.
#[derive(Debug, Clone)]
pub(crate) struct Protocol {
    /// Catalog that each publisher publishes. Every publisher needs the same object.
    pub(crate) publishers: Vec<u8>,
    /// Number of collectors.
    pub(crate) collectors: u8,
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

    fn catalogs(&self) -> Range<u8> {
        0..self.publishers.iter().max().map_or(1, |last| last + 1)
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

    fn publisher_steps(&self, at: usize, steps: &mut Steps<'_>) {
        let world = steps.world;
        let publisher = world.publishers[at];
        let catalog = publisher.catalog;
        let idle = Publisher::idle(catalog);
        // It is killed, or is deferred, or gives up. What it sent is lost.
        steps.publisher("publisher stops", at, idle);
        if publisher.commit.is_some() {
            steps.add("commit lands", at, |world| {
                world.publishers[at] = idle;
                self.write_pointer(world, catalog, true);
            });
            return;
        }
        let (Some((standing, age)), Some(named)) = (publisher.read, publisher.base) else {
            let read = publisher.read.or(Some((self.standing(world.gc), 0)));
            steps.publisher(
                "publisher reads gc.json",
                at,
                Publisher { read, ..publisher },
            );
            let base = publisher.base.or(Some(world.names[usize::from(catalog)]));
            steps.publisher(
                "publisher reads its pointer",
                at,
                Publisher { base, ..publisher },
            );
            return;
        };
        if publisher.secured {
            if age <= self.ticks.hour {
                let commit = Some(self.ticks.commit);
                steps.publisher(
                    "publisher sends its commit",
                    at,
                    Publisher { commit, ..idle },
                );
            }
            if standing == (Standing::Free { condemned: true }) {
                // Because of another object that it had to spare.
                let read = Some((Standing::Free { condemned: false }, 0));
                steps.publisher(
                    "publisher reads gc.json again",
                    at,
                    Publisher { read, ..publisher },
                );
            }
            return;
        }
        let missing_rule = match standing {
            Standing::Free { .. } => None,
            Standing::Condemned => Some(Rule::Spare),
            Standing::Deleting => Some(Rule::Defer),
        };
        if named || missing_rule.is_none_or(|rule| !self.has(rule)) {
            steps.add("publisher puts or finds the object", at, |world| {
                world.publishers[at].secured = true;
                // What the base names is not looked at.
                world.object |= !named;
            });
        } else if standing == Standing::Condemned {
            steps.add("publisher spares the object", at, |world| {
                world.publishers[at].read = Some((Standing::Free { condemned: false }, age));
                let age = match world.gc {
                    Gc::Condemned { age, .. } => age,
                    // Reached without the compare-and-swap only.
                    Gc::None | Gc::Deleting { .. } => 0,
                };
                self.write_gc(world, Gc::Condemned { age, listed: false });
            });
        }
    }

    fn collector_steps(&self, at: usize, steps: &mut Steps<'_>) {
        let world = steps.world;
        let all = self.catalogs().fold(0, |set, catalog| set | 1 << catalog);
        let is_young = matches!(world.gc, Gc::Condemned { age, .. } if !self.ends_condemned(age));
        steps.collector("collector is killed", at, Collector::Idle);
        match (world.collectors[at], world.gc) {
            (Collector::Idle, Gc::None) => {
                steps.collector("collector reads gc.json", at, Collector::ReadNone);
            }
            (Collector::Idle, Gc::Condemned { .. })
                if !is_young || !self.has(Rule::MarkAfterWait) =>
            {
                let unread = if self.has(Rule::SecondMark) { all } else { 0 };
                let unnamed = true;
                steps.collector(
                    "collector reads gc.json",
                    at,
                    Collector::Marks { unread, unnamed },
                );
            }
            (Collector::Idle, _) => {}
            (Collector::ReadNone, _) => {
                let (unread, unnamed) = (all, world.object);
                steps.collector("collector lists", at, Collector::Marks { unread, unnamed });
            }
            (Collector::Marks { unread: 0, unnamed }, gc) if !is_young => {
                let next = match gc {
                    Gc::Condemned { listed, .. } => Gc::Deleting {
                        age: 0,
                        listed: listed && unnamed,
                    },
                    Gc::None => Gc::Condemned {
                        age: 0,
                        listed: unnamed,
                    },
                    Gc::Deleting { .. } => {
                        unreachable!("a collector forgets what it read when gc.json is written")
                    }
                };
                steps.add("collector swaps gc.json", at, |world| {
                    self.write_gc(world, next);
                });
            }
            (Collector::Marks { unread, unnamed }, _) => {
                for catalog in self
                    .catalogs()
                    .filter(|catalog| unread & (1 << catalog) != 0)
                {
                    let unread = unread & !(1 << catalog);
                    let unnamed = unnamed && !world.names[usize::from(catalog)];
                    steps.collector(
                        "collector reads a pointer",
                        at,
                        Collector::Marks { unread, unnamed },
                    );
                }
            }
        }
    }

    /// Writes `gc.json`. Resets each process that would swap an earlier version: the swap fails,
    /// which is like a restart.
    fn write_gc(&self, world: &mut World, gc: Gc) {
        world.gc = gc;
        world.collectors.fill(Collector::Idle);
        if self.has(Rule::SpareBySwap) {
            for publisher in &mut world.publishers {
                publisher.read.take_if(|(standing, _)| {
                    *standing == Standing::Condemned && !publisher.secured
                });
            }
        }
    }

    /// Writes a pointer. Publishers of this catalog that have read it before cannot commit any
    /// more.
    fn write_pointer(&self, world: &mut World, catalog: u8, named: bool) {
        world.names[usize::from(catalog)] = named;
        if self.has(Rule::CommitBySwap) {
            let readers = world.publishers.iter_mut();
            let readers = readers.filter(|publisher| publisher.catalog == catalog);
            for publisher in
                readers.filter(|publisher| publisher.base.is_some() || publisher.commit.is_some())
            {
                *publisher = Publisher::idle(catalog);
            }
        }
    }

    fn tick(&self, world: &mut World) {
        // Older ages make no difference.
        let oldest = self.ticks.wait.max(self.ticks.deleting + 1);
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
}

impl Model for Protocol {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        let world = World {
            object: false,
            names: vec![false; self.catalogs().len()],
            gc: Gc::None,
            delete: None,
            publishers: self
                .publishers
                .iter()
                .copied()
                .map(Publisher::idle)
                .collect(),
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
        let mut steps = Steps { world, steps };
        steps.add("tick", 0, |world| self.tick(world));
        for catalog in self.catalogs() {
            // Or the catalog is removed.
            steps.add(
                "state without the object is published",
                catalog.into(),
                |world| {
                    if world.names[usize::from(catalog)] {
                        self.write_pointer(world, catalog, false);
                    }
                },
            );
        }
        for at in 0..world.publishers.len() {
            self.publisher_steps(at, &mut steps);
        }
        for at in 0..world.collectors.len() {
            self.collector_steps(at, &mut steps);
        }
        if let Gc::Deleting { age, listed } = world.gc {
            if listed && self.may_delete(age) {
                steps.add("delete is sent", 0, |world| {
                    world.delete = Some(self.ticks.landing);
                });
            }
            if self.ends_deleting(age) {
                steps.add("deleting ends", 0, |world| self.write_gc(world, Gc::None));
            }
        }
        if world.delete.is_some() {
            steps.add("delete lands", 0, |world| world.object = false);
        }
    }

    fn next_state(&self, _before: &World, step: Step) -> Option<World> {
        Some(step.after)
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
                matches!(world.gc, Gc::Condemned { listed: false, .. })
                    && world.publishers.iter().any(spared)
            }),
            Property::sometimes("a publication is deferred", |_, world: &World| {
                let deferred = |publisher: &Publisher| {
                    publisher.base == Some(false)
                        && matches!(publisher.read, Some((Standing::Deleting, _)))
                };
                world.publishers.iter().any(deferred)
            }),
            Property::sometimes(
                "an object comes back after it was deleted",
                |_, world: &World| {
                    world.object
                        && matches!(world.gc, Gc::Deleting { listed: true, age } if age > 0)
                        && world.delete.is_none()
                },
            ),
        ]
    }
}
