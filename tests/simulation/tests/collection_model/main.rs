//! The protocol of collection (condemn, wait, delete) as a model that is checked exhaustively.
//!
//! One object, catalogs whose pointers may name it, publishers that need it, a step that takes it
//! out of a pointer, and collectors. Every process may stop at every step, pause between any two
//! steps, and start again. Ages are counted in ticks and end at the longest wait, so the number of
//! worlds is finite, and the checker looks at all of them.
//!
//! Two things keep the number of worlds small. A write of `gc.json` or of a pointer drops what
//! other processes have read of it, because all that they could still do is to fail in a
//! compare-and-swap. And processes of one kind are kept sorted, because they are interchangeable;
//! the position in a [`Step`] is that in the sorted list.
//!
//! Pauses are bounded where the protocol says so: [`Ticks::commit`] and [`Ticks::landing`] hold the
//! pause before the request is sent, too.
#![expect(clippy::print_stdout, reason = "`--nocapture` shows what was measured")]

mod protocol;
mod world;

use protocol::{Protocol, Rule, Ticks};
use rstest::rstest;
use stateright::{Checker as _, HasDiscoveries, Model as _, Path};
use strum::VariantArray as _;
use world::{Step, World};

/// Real durations in ticks of half an hour.
const REAL: Ticks = Ticks {
    wait: 4,
    hour: 2,
    commit: 1,
    deleting: 1,
    landing: 1,
};

/// Smallest durations that keep both inequalities: `wait > hour + commit` and
/// `wait > deleting + landing`.
const SMALL: Ticks = Ticks {
    wait: 2,
    hour: 1,
    commit: 0,
    deleting: 0,
    landing: 1,
};

/// Real durations in ticks of a quarter of an hour.
const FINE: Ticks = Ticks {
    wait: 8,
    hour: 4,
    commit: 2,
    deleting: 2,
    landing: 2,
};

/// Returns the protocol with all its rules, and one publisher for each catalog in `publishers`.
fn protocol(publishers: &[u8], collectors: u8, ticks: Ticks) -> Protocol {
    Protocol {
        publishers: publishers.to_vec(),
        collectors,
        ticks,
        without: None,
    }
}

/// Looks at every world that can be reached.
fn assert_sound(protocol: Protocol) {
    let name = format!("{protocol:?}");
    let checker = protocol.checker().spawn_bfs().join();
    println!(
        "{} worlds, {} steps deep: {name}",
        checker.unique_state_count(),
        checker.max_depth()
    );
    checker.assert_properties();
}

/// Returns a shortest way to a published state whose object is gone.
fn counterexample(protocol: Protocol) -> Option<Path<World, Step>> {
    let name = Protocol::PUBLISHED_IS_THERE;
    let finish = HasDiscoveries::AllOf([name].into());
    let checker = protocol.checker().finish_when(finish).spawn_bfs().join();
    checker.discovery(name)
}

#[rstest]
#[case::two_publishers_of_one_catalog(&[0, 0], 2, REAL)]
#[case::publishers_of_two_catalogs(&[0, 1], 1, SMALL)]
fn protocol_keeps_what_is_published(
    #[case] publishers: &[u8],
    #[case] collectors: u8,
    #[case] ticks: Ticks,
) {
    assert_sound(protocol(publishers, collectors, ticks));
}

#[rstest]
#[case::two_catalogs(&[0, 1], 2, REAL)]
#[case::quarter_hours(&[0, 0], 2, FINE)]
#[case::three_publishers(&[0, 0, 0], 2, REAL)]
#[case::three_publishers_of_two_catalogs(&[0, 0, 1], 2, REAL)]
#[case::three_collectors(&[0, 1], 3, SMALL)]
#[case::three_catalogs(&[0, 1, 2], 1, SMALL)]
#[ignore = "up to millions of worlds: scripts/long-checks runs it, optimised"]
fn protocol_with_large_bounds_keeps_what_is_published(
    #[case] publishers: &[u8],
    #[case] collectors: u8,
    #[case] ticks: Ticks,
) {
    assert_sound(protocol(publishers, collectors, ticks));
}

#[test]
fn protocol_without_one_rule_loses_a_published_object() {
    for rule in Rule::VARIANTS {
        let mut protocol = protocol(&[0, 0], 2, SMALL);
        protocol.without = Some(*rule);
        let path = counterexample(protocol).unwrap_or_else(|| panic!("{rule:?} is not needed"));
        let steps = path.into_actions();
        println!("without {rule:?}: {steps:?}");
        // Long ones would hint at a rule that is left out in the model only, and loses the object
        // by chance.
        assert!(steps.len() <= 35, "{rule:?}: {} steps", steps.len());
    }
}

/// The inequalities are strict.
#[rstest]
#[case::commit(Ticks { commit: 1, ..SMALL })]
#[case::delete(Ticks { landing: 2, ..SMALL })]
fn protocol_with_a_delay_as_long_as_the_wait_loses_a_published_object(#[case] ticks: Ticks) {
    assert!(counterexample(protocol(&[0, 0], 2, ticks)).is_some());
}
