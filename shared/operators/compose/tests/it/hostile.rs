//! Inputs that take much work or memory for few bytes.

use std::time::{Duration, Instant};

use rstest::rstest;
use work::{Budget, MemoryPool};

use crate::support::{MemoryCatalog, compose_within, package, required, with_property};

const REQUIRED: &str = "olm.package.required";

const HEADS: &str = "inputs: [{catalog: one, select: {}}]";
const INCLUDE: &str =
    "inputs: [{catalog: one, select: {packages: [{name: a}]}}]\ndependencies: include";

/// Package of a number of bundles, all of them in one chain in each of `channels`.
fn chain(name: &str, bundles: usize, channels: usize) -> String {
    let entries = (1..bundles).map(|at| format!(" 1.0.{at}<1.0.{}", at - 1));
    let entries = format!("1.0.0{}", entries.collect::<String>());
    let channels = (0..channels).map(|channel| format!("c{channel}: {entries}"));
    package(name, &channels.collect::<Vec<_>>().join("; "))
}

/// Package `a` with one bundle that has these requirements of packages.
fn requiring(values: impl Iterator<Item = String>) -> String {
    let separator = format!(r#"}},{{"type":"{REQUIRED}","value":"#);
    let values = values.collect::<Vec<_>>().join(&separator);
    with_property(&package("a", "c: 1.0.0"), "1.0.0", REQUIRED, &values)
}

/// A range of many alternatives, which no version of a large package meets.
fn large_range(size: usize) -> [String; 2] {
    let range = vec![">9.0.0"; size].join(" || ");
    [
        requiring(std::iter::once(required("b", &range))),
        chain("b", size, 1),
    ]
}

/// Many ranges, each of which one bundle of a package with several channels meets, the highest
/// first.
fn many_ranges(size: usize) -> [String; 2] {
    let ranges = (0..size)
        .rev()
        .map(|at| required("b", &format!("1.0.{at}")));
    [requiring(ranges), chain("b", size, 10)]
}

/// One requirement of many bundles of other channels.
fn many_channels(size: usize) -> [String; 2] {
    let ranges = (0..size).map(|at| required("b", &format!("1.0.{at}")));
    let channels = (0..size).map(|at| format!("c{at}: 1.0.{at}"));
    let channels = channels.collect::<Vec<_>>().join("; ");
    [requiring(ranges), package("b", &channels)]
}

#[rstest]
#[case::large_range(HEADS, large_range, 20_000)]
#[case::large_range_to_include(INCLUDE, large_range, 20_000)]
#[case::many_ranges(INCLUDE, many_ranges, 4_000)]
#[case::many_channels(INCLUDE, many_channels, 8_000)]
fn requirements_cost_no_more_than_they_have_bytes(
    #[case] yaml: &str,
    #[case] input: fn(usize) -> [String; 2],
    #[case] size: usize,
) {
    let begin = Instant::now();
    let [a, b] = input(size);
    let mut catalogs = [MemoryCatalog::new(&[("a", &a), ("b", &b)])];
    let budget = Budget::default();
    compose_within(yaml, &mut catalogs, &budget).unwrap();
    let bytes = (a.len() + b.len()) as u64;
    assert!(
        budget.used() < bytes / 4,
        "{} steps for {bytes} bytes",
        budget.used()
    );
    assert!(
        begin.elapsed() < Duration::from_secs(60),
        "{:?}",
        begin.elapsed()
    );
}

#[test]
fn compose_beyond_its_budget_ends_with_the_limit_and_the_package() {
    let [a, b] = large_range(100);
    let compose = |budget: &Budget| {
        let mut catalogs = [MemoryCatalog::new(&[("a", &a), ("b", &b)])];
        compose_within(HEADS, &mut catalogs, budget)
    };
    let budget = Budget::default();
    compose(&budget).unwrap();
    compose(&Budget::new(budget.used(), MemoryPool::default())).unwrap();
    let less = budget.used() - 1;
    let error = compose(&Budget::new(less, MemoryPool::default()))
        .err()
        .unwrap();
    let expected = format!("the work on the composition exceeds the limit steps of {less}");
    assert_eq!(error.to_string(), expected);
    let stopped = Budget::default();
    stopped.stop();
    let error = compose(&stopped).err().unwrap().to_string();
    assert!(
        error.ends_with("the result is not wanted any more"),
        "{error}"
    );
}

#[test]
fn notices_cut_foreign_text_and_count_beyond_a_thousand() {
    let long = required("b", &"x".repeat(600_000));
    let others = (1..1200).map(|at| required(&format!("b{at}"), "1.x"));
    let a = requiring(std::iter::once(long).chain(others));
    let composed = compose_within(
        HEADS,
        &mut [MemoryCatalog::new(&[("a", &a)])],
        &Budget::default(),
    )
    .unwrap();
    let explanation = composed.explanation;
    assert_eq!(
        (explanation.notices.len(), explanation.more_notices),
        (1000, 200)
    );
    let cut = format!(
        "package a: a.v1.0.0 requires package b {}..., which no package of the result provides",
        "x".repeat(290)
    );
    assert!(explanation.notices.contains(&cut));
    assert!(
        explanation
            .notices
            .iter()
            .all(|notice| notice.len() <= cut.len())
    );
}

/// Inputs that exceed a limit by a number of bytes, and the error. Each is accepted with one byte
/// less.
#[rstest]
#[case::requirement(
    HEADS,
    |more| {
        let json = |range: usize| format!(r#"{{"package":{}}}"#, required("b", &"x".repeat(range)));
        let range = (16 << 20) - json(0).len() + more;
        vec![("a", requiring(std::iter::once(required("b", &"x".repeat(range)))))]
    },
    "package a: names, versions and requirements exceed 16777216 bytes; select fewer packages, or set dependencies: ignore"
)]
#[case::documents_without_a_package(
    "inputs: [{catalog: one}, {catalog: two}]",
    |more| vec![("", "x".repeat((32 << 20) - "y\n".len() - 1 + more) + "\n"), ("", "y\n".to_owned())],
    "the documents without a package of all inputs exceed 33554432 bytes"
)]
#[case::added_lines(
    "inputs: [{catalog: one}]\nadd: [{source: two}]",
    |more| {
        let line = |text: &str| format!(r#"{{"package":"a","schema":"text","v":"{text}"}}"#) + "\n";
        let added = line(&"x".repeat((32 << 20) - line("").len() + more));
        vec![("a", package("a", "c: 1.0.0")), ("a", added)]
    },
    "add: the lines that are added to package a exceed 33554432 bytes, with those that they change; make it an input"
)]
fn input_beyond_its_limit_is_refused(
    #[case] yaml: &str,
    #[case] inputs: fn(usize) -> Vec<(&'static str, String)>,
    #[case] error: &str,
) {
    for (more, expected) in [(0, None), (1, Some(error))] {
        let catalogs = inputs(more).into_iter();
        let mut catalogs: Vec<_> = catalogs
            .map(|(name, lines)| MemoryCatalog::new(&[(name, &lines)]))
            .collect();
        let composed = compose_within(yaml, &mut catalogs, &Budget::default());
        assert_eq!(
            composed.err().map(|error| error.to_string()).as_deref(),
            expected
        );
    }
}
