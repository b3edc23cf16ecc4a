//! An exhaustive check of the rules: a leader, its successor, a follower, and every order of what can happen to them, at steps of
//! five seconds. The rules are those of the program; the model keeps ages, up to those from which on nothing differs any more.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    time::{Duration, Instant},
};

use super::rules::{Fence, FollowerRecord, Followers, ListedState, Standing};
use crate::election::SightTimes;

const STEP: Duration = Duration::from_secs(5);
/// [`super::rules::LAG`] in steps. Older contacts are all alike.
const LAG: u8 = 6;
/// [`super::rules::FIRST_LOOK`] in steps.
const FIRST_LOOK: u8 = 2;
/// One step more than [`super::rules::LOOK`].
const UNREAD: u8 = 4;
/// [`super::rules::SEEN`] in steps.
const SEEN: u8 = 5;
/// Minimum number of steps between two renewals: fewer than in the program.
const RENEWAL: u8 = 3;

/// A time at which a follower may have been in contact, as the leader knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct KnownContact {
    age: u8,
    /// Age of the first renewal that began [`FIRST_LOOK`] after it.
    renewal: Option<u8>,
}

/// A replica that leads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Leading {
    /// Start of its leadership.
    since: KnownContact,
    /// Age of the new content, which is version 1 of the list.
    published: Option<u8>,
    /// Last report of the follower: version of the list, and whether the copy is missing.
    record: Option<(KnownContact, u8, bool)>,
}

/// The state of all.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    /// Number of the leader that wrote the Lease last, 1 or 2, and the age of that.
    lease: (u8, u8),
    leader: Option<Leading>,
    /// True once the status names the new content.
    is_named: bool,
    /// Number of the leader of the follower's last contact, and its age.
    contact: (u8, u8),
    is_cut_off: bool,
    /// Age of the follower's last read of the Lease.
    sight: u8,
    /// True if the Lease was written after the follower read it.
    is_sight_old: bool,
    /// True if the follower saw a change of the Lease [`FIRST_LOOK`] after its contact.
    has_seen_change: bool,
    /// Version of the list by which the follower serves.
    list: u8,
    has_copy: bool,
}

/// One thing that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Happening {
    Step,
    Exchange,
    LookAtLease,
    Renew,
    Publish,
    Copy,
    NameInStatus,
    LeaderEnds,
    SuccessorBegins,
}

const ALL: [Happening; 9] = [
    Happening::Step,
    Happening::Exchange,
    Happening::LookAtLease,
    Happening::Renew,
    Happening::Publish,
    Happening::Copy,
    Happening::NameInStatus,
    Happening::LeaderEnds,
    Happening::SuccessorBegins,
];

fn age(age: &mut u8, max: u8) {
    *age = (*age + 1).min(max);
}

impl KnownContact {
    const NOW: Self = Self { age: 0, renewal: None };
    /// So long ago that every follower of that time has ended or is known.
    const OLD: Self = Self {
        age: LAG,
        renewal: Some(SEEN),
    };

    fn step(&mut self) {
        age(&mut self.age, LAG);
        if let Some(renewal) = &mut self.renewal {
            age(renewal, SEEN);
        }
    }

    fn renewed(&mut self) {
        if self.age >= FIRST_LOOK && self.renewal.is_none() {
            self.renewal = Some(0);
        }
    }

    /// Returns times with which the program decides as for these ages.
    fn times(self, now: Instant) -> (Instant, Option<Instant>) {
        // A renewal that is known began long enough after the contact, whose age may be cut.
        let least = self.renewal.map_or(0, |renewal| renewal + FIRST_LOOK);
        let contact = now - STEP * self.age.max(least).into();
        (contact, self.renewal.map(|renewal| now - STEP * renewal.into()))
    }
}

impl World {
    fn start() -> Self {
        Self {
            lease: (1, 0),
            leader: Some(Leading {
                since: KnownContact::OLD,
                published: None,
                record: Some((KnownContact::NOW, 0, false)),
            }),
            is_named: false,
            contact: (1, 0),
            is_cut_off: false,
            sight: 0,
            is_sight_old: false,
            has_seen_change: false,
            list: 0,
            has_copy: false,
        }
    }

    fn step(&mut self) {
        age(&mut self.lease.1, RENEWAL);
        age(&mut self.contact.1, LAG);
        age(&mut self.sight, UNREAD);
        if let Some(leading) = &mut self.leader {
            leading.since.step();
            if let Some((contact, ..)) = &mut leading.record {
                contact.step();
            }
            if let Some(published) = &mut leading.published {
                age(published, LAG);
            }
        }
    }

    /// Returns the state after something has happened; `None` if it cannot, or if it changes nothing.
    fn after(&self, happening: Happening, now: Instant) -> Option<Self> {
        let mut next = self.clone();
        match happening {
            Happening::Step => next.step(),
            Happening::LookAtLease => {
                next.has_seen_change |= self.is_sight_old && self.contact.1 >= FIRST_LOOK;
                (next.sight, next.is_sight_old) = (0, false);
            }
            Happening::SuccessorBegins => {
                if self.leader.is_some() || self.lease.0 > 1 {
                    return None;
                }
                (next.lease, next.is_sight_old) = ((2, 0), true);
                // It has the new content already if the status names that, else it polls anew.
                next.leader = Some(Leading {
                    since: KnownContact::NOW,
                    published: self.is_named.then_some(0),
                    record: None,
                });
            }
            Happening::Copy => {
                next.has_copy |= self.list == 1 && self.contact.1 == 0;
            }
            Happening::LeaderEnds => next.leader = None,
            Happening::Exchange => {
                let leading = next.leader.as_mut()?;
                // The report is about the list before; the answer has the new one. Versions of another leader mean nothing.
                let version = if self.contact.0 == self.lease.0 { self.list } else { 0 };
                leading.record = Some((KnownContact::NOW, version, self.list == 1 && !self.has_copy));
                next.list = leading.published.is_some().into();
                (next.contact, next.is_cut_off, next.has_seen_change) = ((self.lease.0, 0), false, false);
            }
            Happening::Renew => {
                let leading = next.leader.as_mut().filter(|_| self.lease.1 >= RENEWAL)?;
                leading.since.renewed();
                if let Some((contact, ..)) = &mut leading.record {
                    contact.renewed();
                }
                (next.lease.1, next.is_sight_old) = (0, true);
            }
            Happening::Publish => {
                next.leader.as_mut()?.published.get_or_insert(0);
            }
            Happening::NameInStatus => next.is_named |= self.leader.as_ref()?.may_name(now),
        }
        next.is_cut_off |= next.standing(now) == Standing::CutOff;
        (next != *self).then_some(next)
    }

    fn standing(&self, now: Instant) -> Standing {
        let ago = |age: u8| now - STEP * age.into();
        let contact = ago(self.contact.1.max(if self.has_seen_change { FIRST_LOOK } else { 0 }));
        let mut fence = Fence::new(contact);
        fence.contacted(contact);
        if self.is_cut_off {
            fence.cut_off();
        }
        let lease = SightTimes {
            read: ago(self.sight),
            changed: if self.has_seen_change { now } else { contact },
            tried: now,
        };
        fence.standing(Some(lease), now)
    }

    /// True if the follower answers with the earlier content, by the rules of `Follower::route`.
    fn serves_earlier(&self, now: Instant) -> bool {
        let is_behind = self.list == 1 && !self.has_copy;
        !self.has_copy && !is_behind && self.standing(now) != Standing::CutOff
    }
}

impl Leading {
    fn may_name(&self, now: Instant) -> bool {
        let Some(published) = self.published else {
            return false;
        };
        let (since, renewal) = self.since.times(now);
        let mut renewals: Vec<Instant> = renewal.into_iter().collect();
        let mut known = BTreeMap::new();
        if let Some((contact, version, lacks)) = self.record {
            let (contact, renewal) = contact.times(now);
            renewals.extend(renewal);
            let lacks = lacks.then(|| "a".to_owned()).into_iter().collect::<BTreeSet<_>>();
            let version = version.into();
            known.insert(
                "follower".to_owned(),
                FollowerRecord {
                    contact,
                    version,
                    lacks,
                },
            );
        }
        let state = ListedState {
            catalog: "a".to_owned(),
            version: 1,
            since: now - STEP * published.into(),
            is_replacement: true,
        };
        let followers = Followers { known, since, renewals };
        followers.serve(&state, now)
    }
}

#[test]
fn follower_never_serves_earlier_content_once_a_status_names_the_new_one() {
    let now = Instant::now() + 100 * STEP;
    let mut known = HashSet::from([World::start()]);
    let mut open = vec![World::start()];
    let (mut named_beside_cut_off, mut leaderless, mut named_by_successor) = (0, 0, 0);
    while let Some(world) = open.pop() {
        let standing = world.standing(now);
        if world.is_named {
            // A replica that reaches nobody is not ready, and cannot know more.
            assert!(
                !world.serves_earlier(now) || standing == Standing::Blind,
                "{standing:?} {world:?}"
            );
            named_beside_cut_off += u32::from(standing == Standing::CutOff);
            named_by_successor += u32::from(world.lease.0 == 2 && world.contact.0 == 1);
        }
        leaderless += u32::from(standing == Standing::Leaderless && world.serves_earlier(now));
        for next in ALL.iter().filter_map(|happening| world.after(*happening, now)) {
            if known.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    println!("{} states", known.len());
    // The rules neither block for ever nor stop to serve without a leader.
    assert!(named_beside_cut_off > 0 && leaderless > 0 && named_by_successor > 0);
}
