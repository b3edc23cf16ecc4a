//! Cost of an answer: steps and memory grow with the input, not with its square.
//!
//! Counts are compared, never times. `scripts/long-checks cost` compares the instructions of the
//! commands on larger inputs.
#![expect(clippy::print_stdout, reason = "`--nocapture` shows what was measured")]

mod families;

use std::collections::{BTreeMap, BTreeSet};

use allocation_counter::AllocationInfo;
use families::{Family, NamedQuestion, Question, families};
use olm::{Package, PackageParser};
use serde_json::json;
use upgrade::Bounds;
use upgrade::bundle::{CatalogBundle, CatalogBundles, Contents};
use upgrade::plan::{GraphFormat, Installed, PlanCatalog, PlanInput, UpgradePlan, Ways, draw};
use work::{Budget, MemoryPool};

/// Sizes of inputs in entries, each four times the one before.
const SIZES: [usize; 3] = [150, 600, 2400];
/// Largest growth for four times the input, in tenths. What is above four is for n log n and for
/// tables that grow in steps; a square would be 160.
const GROWTH_MAX: u64 = 56;
/// Memory below this many bytes is not compared: constant costs are a large part of it.
const FLOOR_BYTES: u64 = 1 << 19;
/// Numbers of steps and allocations below this one are not compared.
const FLOOR_COUNT: u64 = 2000;

/// Cost of an answer.
#[derive(Debug, Clone, Copy)]
struct AnswerCost {
    steps: u64,
    memory: AllocationInfo,
}

impl AnswerCost {
    /// Returns true if an answer cost much more than four times what one about a quarter cost.
    fn grew_since(&self, before: &Self) -> bool {
        let counts = [
            (before.steps, self.steps, FLOOR_COUNT),
            (
                before.memory.count_total,
                self.memory.count_total,
                FLOOR_COUNT,
            ),
            (
                before.memory.bytes_total,
                self.memory.bytes_total,
                FLOOR_BYTES,
            ),
            (before.memory.bytes_max, self.memory.bytes_max, FLOOR_BYTES),
        ];
        let mut grown = counts
            .into_iter()
            .filter(|(before, now, floor)| now * 10 > before.max(floor) * GROWTH_MAX);
        grown.next().is_some()
    }
}

/// Content that a question is about.
struct Input {
    package: Package,
    lines: Vec<u8>,
    /// Package after the upgrade of a cluster.
    then: Package,
}

fn ask(question: &Question, input: &Input, bounds: &Bounds) -> Result<usize, String> {
    let text = |error: &dyn std::error::Error| model::text::chain(error);
    match question {
        Question::Upgrade { from } => {
            let ways = Ways::new("p", &input.package, from, None, bounds);
            ways.map(|ways| ways.channels.len())
                .map_err(|error| text(&error))
        }
        Question::Graph(format) => {
            let drawn = draw(*format, "p", &input.package, bounds);
            drawn.map(|drawn| drawn.len()).map_err(|error| text(&error))
        }
        Question::Plan { installed } => {
            let installed = Installed::parse(installed, &bounds.budget).unwrap();
            let [from, to] = [&input.package, &input.then].map(|package| {
                [PlanCatalog {
                    name: "c".to_owned(),
                    source: "r.example/c:v1".to_owned(),
                    cluster_names: BTreeSet::from(["cs-c".to_owned()]),
                    packages: BTreeMap::from([("p".to_owned(), package.clone())]),
                }]
            });
            let plan = UpgradePlan::new(
                PlanInput {
                    installed: &installed.operators,
                    from: &from,
                    to: &to,
                    cluster: Some("4.21".parse().unwrap()),
                    on: "2026-11-29".parse().unwrap(),
                },
                bounds,
            );
            let plan = plan.map_err(|error| text(&error))?;
            plan.image_set();
            Ok(plan.operators.iter().map(|row| row.notes().len()).sum())
        }
        Question::Bundle => {
            let bundles = CatalogBundles::new(input.lines.clone());
            let mut contents = Vec::new();
            for version in ["1.0.0", "2.0.0"] {
                let Some(CatalogBundle::Files(files)) = bundles.find(version).unwrap() else {
                    panic!("{version} has files");
                };
                contents.push(Contents::read(&files, bounds).map_err(|error| text(&error))?);
            }
            let difference = contents[0].difference(&contents[1], bounds);
            let difference = difference.map_err(|error| text(&error))?;
            Ok(difference.to_string().len() + contents[0].to_string().len())
        }
    }
}

fn input(family: &Family, size: usize) -> Input {
    let lines = (family.lines)(size).into_bytes();
    let then = family.then.as_ref().map(|then| then(size).into_bytes());
    Input {
        package: PackageParser::parse(&lines),
        then: PackageParser::parse(then.as_ref().unwrap_or(&lines)),
        lines,
    }
}

#[test]
fn answer_costs_what_its_input_costs() {
    let mut wrong = Vec::new();
    for family in families() {
        for NamedQuestion { name, question } in &family.questions {
            let mut before: Option<AnswerCost> = None;
            for size in SIZES {
                let input = input(&family, size);
                let question = question(size);
                let bounds = Bounds::default();
                let mut answer = Ok(0);
                let memory =
                    allocation_counter::measure(|| answer = ask(&question, &input, &bounds));
                let cost = AnswerCost {
                    steps: bounds.budget.used(),
                    memory,
                };
                let place = format!("{name} of {}, {size}", family.name);
                println!("{place}: {answer:?}, {} steps, {memory:?}", cost.steps);
                if answer.is_err() || cost.steps == 0 {
                    wrong.push(format!("{place}: {answer:?}, {} steps", cost.steps));
                }
                if let Some(before) = before
                    && cost.grew_since(&before)
                {
                    wrong.push(format!("{place}: {cost:?} after {before:?}"));
                }
                before = Some(cost);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn answer_ends_with_its_steps_and_names_the_place() {
    for family in families() {
        for NamedQuestion { name, question } in &family.questions {
            let input = input(&family, SIZES[0]);
            let question = question(SIZES[0]);
            let whole = Bounds::default();
            ask(&question, &input, &whole).unwrap();
            let used = whole.budget.used();
            let with = |steps, bytes| {
                let budget = Budget::new(steps, MemoryPool::default());
                ask(&question, &input, &Bounds::new(budget, bytes))
            };
            let place = format!("{name} of {}", family.name);
            assert!(with(used, whole.answer_used()).is_ok(), "{place}");
            for steps in [used - 1, used / 2, used / 10] {
                let error = with(steps, usize::MAX).unwrap_err();
                assert!(
                    error.ends_with(&format!("limit steps of {steps}")),
                    "{place}: {error}"
                );
                // The command names the bundle.
                let is_named = error.contains("package p, channel ")
                    || error.starts_with("the plan of all operators")
                    || matches!(question, Question::Bundle);
                assert!(is_named, "{place}: {error}");
            }
            let error = with(used, whole.answer_used() - 1).unwrap_err();
            assert!(
                error.contains("the answer exceeds the limit of"),
                "{place}: {error}"
            );
        }
    }
}

/// A range that all entries have is an upgrade from each of them to each other one, and each of many
/// heads has a way of its own.
#[test]
fn answer_larger_than_its_input_is_refused() {
    let package = |size, entry: fn(usize, usize) -> String| {
        let channel = families::channel("s", (0..size).map(|at| entry(at, size)));
        PackageParser::parse(families::with_bundles(size, channel).as_bytes())
    };
    let bounds = || Bounds::new(Budget::default(), 1 << 20);
    let refused = |error: &dyn std::error::Error| {
        let text = model::text::chain(error);
        assert!(
            text.starts_with("package p, channel s: the answer exceeds"),
            "{text}"
        );
    };
    let ranged = package(300, |at, _| {
        format!(r#"{{"name":"p.v{at}","skipRange":"<9.0.0"}}"#)
    });
    for format in [GraphFormat::Dot, GraphFormat::Mermaid] {
        refused(&draw(format, "p", &ranged, &bounds()).unwrap_err());
    }
    draw(GraphFormat::Text, "p", &ranged, &bounds()).unwrap();
    // Half of the entries are a chain, and the others replace its last one.
    let heads = package(300, |at, size| {
        let replaced = at.min(size / 2).wrapping_sub(1);
        format!(r#"{{"name":"p.v{at}","replaces":"p.v{replaced}"}}"#)
    });
    refused(&Ways::new("p", &heads, "1.0.0", None, &bounds()).unwrap_err());
    Ways::new("p", &heads, "1.0.0", Some("1.299.0"), &bounds()).unwrap();
}

/// Each pair of served versions is compared, as crdify does it.
#[test]
fn bundle_with_many_versions_of_a_definition_ends_with_its_steps() {
    let versions = |size: usize| {
        let lines = families::operators([json!([]), json!([])], |version| {
            let schemas = (0..size).map(|at| json!({"pattern": format!("{version}-{at}")}));
            vec![families::definition(schemas)]
        });
        let input = Input {
            package: Package::default(),
            then: Package::default(),
            lines: lines.into_bytes(),
        };
        let bounds = Bounds::new(Budget::new(1_000_000, MemoryPool::default()), usize::MAX);
        ask(&Question::Bundle, &input, &bounds)
    };
    versions(10).unwrap();
    let error = versions(400).unwrap_err();
    assert!(error.ends_with("limit steps of 1000000"), "{error}");
}
