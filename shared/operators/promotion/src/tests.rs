//! A table of what a ring serves, and thirty days that are calculated in a second way, with a clock
//! that jumps.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::{CatalogName, Current, Kind, ObjectDigest, ObjectRef, Ring, RolledBack, Sha256};
use testkit::{CurrentBuilder, snapshot};

use super::*;

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// Delay of the rings, in days.
const AFTER: u64 = 7;

fn day(day: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(day * DAY)
}

fn snapshot_of(content: &str) -> ObjectRef {
    ObjectDigest::of(content.as_bytes()).with_kind(Kind::Snapshot)
}

/// Publishes a content after another state, at this time.
fn publish(before: Option<&Current>, content: &str, at: SystemTime) -> Current {
    let built = CurrentBuilder::new(&snapshot(&[])).after(before).build();
    Current {
        content_hash: Sha256::of(content.as_bytes()),
        snapshot: snapshot_of(content),
        published_at: at,
        ..built
    }
}

/// Marks the state as one to which a person went back.
fn rolled_back(current: Current) -> Current {
    Current {
        rolled_back: Some(RolledBack { verified: None }),
        ..current
    }
}

/// Source that publishes, and a ring that is polled.
struct World {
    of: CatalogName,
    rule: RingRule,
    source: Option<Current>,
    ring: Option<Ring>,
    lost: BTreeSet<ObjectRef>,
}

impl World {
    fn new() -> Self {
        Self {
            of: "redhat".parse().unwrap(),
            rule: RingRule {
                after: Some(Duration::from_secs(AFTER * DAY)),
                is_manual: false,
            },
            source: None,
            ring: None,
            lost: BTreeSet::new(),
        }
    }

    fn followed(&self, now: SystemTime) -> Followed<'_> {
        Followed {
            of: &self.of,
            source: self.source.as_ref().unwrap(),
            before: self.ring.as_ref(),
            rule: self.rule,
            now,
            lost: &self.lost,
        }
    }

    fn publish(&mut self, content: &str, at: SystemTime) {
        self.source = Some(publish(self.source.as_ref(), content, at));
    }

    fn poll(&mut self, now: SystemTime) {
        self.ring = Some(self.followed(now).follow());
    }

    fn promote(&mut self, promotion: &Promotion, now: SystemTime) -> Result<(), PromotionError> {
        self.ring = Some(self.followed(now).promote(promotion)?);
        Ok(())
    }

    fn at(&self) -> Option<Sha256> {
        let at = self.ring.as_ref().unwrap().at.as_ref();
        at.map(|at| at.content_hash)
    }

    fn waiting(&self) -> Vec<Sha256> {
        let waiting = self.ring.as_ref().unwrap().waiting.iter();
        waiting.map(|state| state.content_hash).collect()
    }
}

fn hashes(contents: &str) -> Vec<Sha256> {
    let contents = contents.split(' ').filter(|content| !content.is_empty());
    contents
        .map(|content| Sha256::of(content.as_bytes()))
        .collect()
}

/// Publications `DAY:CONTENT`, `!` for a rollback, then `DAY=CONTENT` for what the ring serves at
/// the end of that day, `-` for nothing.
const TABLE: &str = "
1:a | 1=- 7=- 8=a 30=a
1:a 3:b | 8=a 9=a 10=b
1:a 2:b 3:c 4:d | 8=a 9=b 10=c 11=d
1:a 9:b 11:a! | 8=a 15=a 16=a 30=a
1:a 9:b 11:a | 8=a 16=a 30=a
1:a 9:b 16:a | 9=a 15=a 16=b 22=b 23=a
1:a 2:b 3:a 4:b 5:a 6:b 7:a 8:b 9:a 10:b | 7=- 8=a 12=a 16=a 17=b
1:a 2:b 3:a 4:b 5:a | 8=a 9=a 30=a
1:a 9:b 10:c 11:b | 16=b 17=b 30=b
1:a 9:b 10:c 11:d 12:a | 16=a 30=a
1:a 9:b 16.5:c 17:a | 16=b 17=b 23=b 24=a
1:a 1.1:b 1.2:c | 8=- 9=c
";

#[test]
fn ring_serves_what_the_table_says() {
    let time = |text: &str| {
        let days: f64 = text.parse().unwrap();
        UNIX_EPOCH + Duration::from_secs_f64(days * DAY as f64)
    };
    for row in TABLE.trim().lines() {
        let (published, served) = row.split_once(" | ").unwrap();
        let mut world = World::new();
        let mut publications = published.split(' ').peekable();
        for expected in served.split(' ') {
            let (now, content) = expected.split_once('=').unwrap();
            while let Some(next) = publications.peek()
                && let Some((at, published)) = next.split_once(':')
                && time(at) <= time(now)
            {
                world.publish(published.trim_end_matches('!'), time(at));
                if published.ends_with('!') {
                    world.source = world.source.map(rolled_back);
                }
                world.poll(time(at));
                publications.next();
            }
            world.poll(time(now));
            let expected = Some(content).filter(|content| *content != "-");
            let expected = expected.map(|content| Sha256::of(content.as_bytes()));
            assert_eq!(world.at(), expected, "{row}: {now}");
        }
    }
}

/// The history of the source ends with the state to which it goes back.
#[test]
fn rollback_beyond_the_history_drops_all_that_waits() {
    let mut world = World::new();
    for number in 0..17 {
        world.publish(
            &format!("c{number}"),
            day(1) + Duration::from_secs(HOUR * number),
        );
    }
    world.poll(day(3));
    world.publish("c0", day(4));
    world.source = world.source.map(rolled_back);
    world.poll(day(4));
    assert_eq!(world.waiting(), hashes("c0"));
    // What was dropped stays so while the history still has it.
    world.publish("d", day(5));
    world.poll(day(5));
    assert_eq!(world.waiting(), hashes("c0 d"));
}

#[test]
fn ring_keeps_what_the_history_of_its_source_forgets() {
    let mut world = World::new();
    world.publish("first", day(1));
    world.poll(day(1));
    for hour in 0..100 {
        let at = day(2) + Duration::from_secs(HOUR * hour);
        world.publish(&format!("c{hour}"), at);
        world.poll(at);
    }
    world.poll(day(8));
    assert_eq!(world.at(), hashes("first").pop());
}

#[test]
fn waiting_states_are_at_most_one_for_each_sixteenth_and_the_newest() {
    let mut world = World::new();
    let mut oldest = Duration::ZERO;
    for minute in (0..30 * 24 * 60).step_by(7) {
        let at = day(1) + Duration::from_secs(60 * minute);
        world.publish(&format!("c{minute}"), at);
        world.poll(at);
        let ring = world.ring.as_ref().unwrap();
        assert!(ring.waiting.len() <= 17, "{}", ring.waiting.len());
        if let Some(served) = &ring.at {
            oldest = oldest.max(at.duration_since(served.published_at).unwrap());
        }
    }
    let part = Duration::from_secs(AFTER * DAY / 16);
    let delay = Duration::from_secs(AFTER * DAY);
    assert!(oldest >= delay && oldest < delay + part, "{oldest:?}");
}

#[test]
fn clock_moves_the_ring_by_no_more_than_it_jumped() {
    let mut world = World::new();
    world.publish("a", day(1));
    world.publish("b", day(5));
    world.poll(day(8));
    assert_eq!(world.at(), hashes("a").pop());
    world.poll(day(1));
    assert_eq!(world.at(), hashes("a").pop(), "the clock went back");
    world.poll(day(11));
    assert_eq!(world.at(), hashes("a").pop(), "three days ahead");
    world.poll(day(12));
    assert_eq!(world.at(), hashes("b").pop(), "four days ahead");
    world.poll(day(8));
    assert_eq!(world.at(), hashes("b").pop(), "it never goes back");
}

#[test]
fn states_of_another_history_wait_no_more() {
    let mut world = World::new();
    for (content, at) in [("a", 1), ("b", 9), ("c", 10)] {
        world.publish(content, day(at));
        world.poll(day(at));
    }
    assert_eq!(world.waiting(), hashes("b c"));
    // An older copy was brought back.
    let mut restored = publish(None, "a", day(1));
    restored = publish(Some(&restored), "d", day(11));
    world.source = Some(restored);
    world.poll(day(11));
    assert_eq!(
        (world.at(), world.waiting()),
        (hashes("a").pop(), hashes("d"))
    );
    // The catalog was removed, and begins anew.
    world.source = Some(publish(None, "e", day(12)));
    world.poll(day(12));
    assert_eq!(world.waiting(), hashes("e"));
    world.poll(day(19));
    assert_eq!(world.at(), hashes("e").pop());
}

#[test]
fn ring_of_another_catalog_begins_anew() {
    let mut world = World::new();
    world.publish("a", day(1));
    world.poll(day(9));
    world.of = "other".parse().unwrap();
    world.source = Some(publish(None, "x", day(9)));
    world.poll(day(9));
    assert_eq!((world.at(), world.waiting()), (None, hashes("x")));
}

#[test]
fn state_that_is_not_stored_is_passed_over() {
    let mut world = World::new();
    world.publish("a", day(1));
    world.publish("b", day(2));
    world.lost.insert(snapshot_of("b"));
    world.poll(day(20));
    assert_eq!(world.at(), hashes("a").pop());
}

#[test]
fn person_moves_a_ring_to_any_newer_state() {
    let mut world = World::new();
    for (content, at) in [("a", 1), ("b", 9), ("c", 10), ("b", 11)] {
        world.publish(content, day(at));
        world.poll(day(at));
    }
    let state = |content: &str| {
        let hash = Sha256::of(content.as_bytes()).to_string();
        Promotion::State(hash[..12].to_owned())
    };
    let error = world.promote(&state("x"), day(11)).unwrap_err();
    assert!(matches!(&error, PromotionError::Unknown { known, .. } if known.len() == 2));
    let every = Promotion::State(String::new());
    // The state of the ring has this beginning too, and comes first.
    world.promote(&every, day(11)).unwrap();
    assert_eq!(world.at(), hashes("a").pop());
    // What the source took back is taken only by its name.
    world.promote(&state("c"), day(11)).unwrap();
    assert_eq!(world.at(), hashes("c").pop());
    // The source has b again since then.
    assert_eq!(world.waiting(), hashes("b"));
    world.promote(&Promotion::Newest, day(11)).unwrap();
    assert_eq!(world.at(), hashes("b").pop());
    world.promote(&Promotion::Newest, day(11)).unwrap();
    assert_eq!(world.at(), hashes("b").pop());
    let error = world.promote(&state("a"), day(11)).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("none that are newer than the one of the ring")
    );
}

#[test]
fn manual_ring_moves_by_hand_only_and_keeps_the_newest_states() {
    let mut world = World::new();
    world.rule = RingRule {
        after: None,
        is_manual: true,
    };
    for number in 1..40 {
        world.publish(&format!("c{number}"), day(number));
        world.poll(day(number));
    }
    world.poll(day(400));
    assert_eq!(world.at(), None);
    let ring = world.ring.as_ref().unwrap();
    assert_eq!((ring.waiting.len(), ring.next_at()), (17, None));
    world.promote(&Promotion::Newest, day(400)).unwrap();
    assert_eq!(
        (world.at(), world.waiting()),
        (hashes("c39").pop(), Vec::new())
    );
}

/// Publication in the second calculation, in seconds.
#[derive(Clone)]
struct Event {
    at: u64,
    content: String,
    /// Time of the state that the ring had then, which the source could not take back any more.
    served: Option<u64>,
}

/// Returns what a ring serves, from everything that was ever published: without a memory, and
/// without the end of a history.
fn served_at(events: &[Event], now: u64) -> Option<Event> {
    let after = AFTER * DAY;
    let mut stays: Vec<Event> = Vec::new();
    for event in events {
        let known = stays.iter().rposition(|stay| stay.content == event.content);
        let Some(known) = known else {
            stays.push(event.clone());
            continue;
        };
        let mut between = stays.split_off(known + 1);
        between
            .retain(|between| event.at - between.at >= after || event.served == Some(between.at));
        if !between.is_empty() {
            stays.extend(between);
            stays.push(event.clone());
        }
    }
    let mut of_parts = BTreeMap::new();
    for event in stays {
        of_parts.insert(event.at / (after / 16), event);
    }
    let mut ripe = of_parts.into_values();
    ripe.rfind(|event| event.at + after <= now)
}

/// Numbers that look random, and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        let Self(state) = self;
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % end
    }
}

#[test]
fn state_at_each_hour_of_thirty_days_with_a_jumping_clock_is_that_of_a_second_calculation() {
    let mut moves = 0;
    for seed in 0..20 {
        let mut numbers = Numbers(seed);
        let mut world = World::new();
        let mut events: Vec<Event> = Vec::new();
        let mut best: Option<Event> = None;
        // From rare publications to several a day.
        let rarity = 2 + seed * 4;
        let mut clock = 20_000 * DAY;
        for hour in 0..30 * 24 {
            clock += HOUR;
            match numbers.below(100) {
                0 => clock += numbers.below(12) * HOUR,
                1 => clock -= numbers.below(12) * HOUR,
                _ => {}
            }
            let now = clock;
            let time = UNIX_EPOCH + Duration::from_secs(now);
            if hour == 0 || numbers.below(rarity) == 0 {
                let back = 1 + numbers.below(3) as usize;
                let is_back = numbers.below(3) == 0 && events.len() > back;
                let content = match is_back {
                    true => events[events.len() - 1 - back].content.clone(),
                    false => format!("c{hour}"),
                };
                // As the commit of a publication dates it.
                let at = events.last().map_or(now, |last| now.max(last.at + 1));
                world.publish(&content, UNIX_EPOCH + Duration::from_secs(at));
                let served = best.as_ref().map(|best| best.at);
                events.push(Event {
                    at,
                    content,
                    served,
                });
            }
            world.poll(time);
            let expected = served_at(&events, now);
            if let Some(expected) = expected
                && best.as_ref().is_none_or(|best| best.at < expected.at)
            {
                best = Some(expected);
                moves += 1;
            }
            let expected = best.as_ref();
            let expected = expected.map(|event| Sha256::of(event.content.as_bytes()));
            assert_eq!(world.at(), expected, "seed {seed}, hour {hour}");
        }
    }
    assert!(moves > 150, "only {moves} moves");
}
