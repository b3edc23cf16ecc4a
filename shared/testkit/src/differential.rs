//! Comparison of a parser with a program in Go, on generated inputs.
//!
//! A file of answers has a line for each seed from 0: Go's answer, then a tab and the reason if
//! this project answers otherwise on purpose. Tests compare with the file;
//! `scripts/long-checks differential` compares with Go itself.
#![expect(clippy::print_stdout, reason = "`--nocapture` shows what was measured")]

use std::collections::{BTreeMap, VecDeque};
use std::io::Write as _;
use std::ops::Range;
use std::process::{Command, Stdio};
use std::{env, fs, thread};

/// Go's answer to an input that it refuses.
pub const REFUSED: &str = "error";

/// Number of inputs for which Go is started once.
const BATCH: u64 = 2000;

/// Generator of pseudo-random numbers (SplitMix64), because a new version of a library must not
/// change the inputs.
#[derive(Debug)]
pub struct Random {
    choices: VecDeque<u8>,
    state: u64,
}

impl Random {
    /// Creates the generator of a seed.
    pub fn new(seed: u64) -> Self {
        Self {
            choices: VecDeque::new(),
            state: seed,
        }
    }

    /// Creates a generator whose first numbers are these bytes, so that a fuzzer may change one
    /// choice and keep the others.
    pub fn of_choices(choices: &[u8]) -> Self {
        Self {
            choices: choices.to_vec().into(),
            state: 0,
        }
    }

    /// Returns a number of 64 bits.
    pub fn number(&mut self) -> u64 {
        if let Some(choice) = self.choices.pop_front() {
            return choice.into();
        }
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.state;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ (word >> 31)
    }

    /// Returns a number from 0 to `end - 1`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.number() % end as u64) as usize
    }

    /// Returns true once in `count` times.
    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    /// Returns one of the values.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// Comparison of a parser with a program in Go.
#[derive(Debug)]
pub struct Differential {
    /// Makes the input of a seed.
    pub make: fn(u64) -> Vec<u8>,
    /// Compares the parser's answer to an input with Go's. Returns `None` if they agree, the name
    /// of a deviation if they differ on purpose, or else the parser's answer as an error.
    pub compare: fn(&[u8], &str) -> Result<Option<&'static str>, String>,
    /// Deviations with their reasons.
    pub deviations: &'static [(&'static str, &'static str)],
}

impl Differential {
    /// Compares the parser with a file of answers.
    ///
    /// # Panics
    /// If they differ, if both read less than a fifth of the inputs, or if no input shows one of
    /// the deviations.
    pub fn check_recorded(&self, recorded: &str) {
        let mut wrong = Vec::new();
        let mut read = 0;
        let mut seeds = 0;
        for (seed, line) in (0..).zip(recorded.lines()) {
            let mut parts = line.splitn(2, '\t');
            let go = parts.next().unwrap_or_default();
            let deviation = parts.next();
            if deviation.is_none() && go != REFUSED {
                read += 1;
            }
            seeds = seed + 1;
            match self.compare(seed, go) {
                Ok(found) if found == deviation => {}
                Ok(found) => wrong.push(format!("seed {seed}: {found:?} instead of {deviation:?}")),
                Err(difference) => wrong.push(difference),
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert!(read > seeds / 5, "only {read} inputs were read by both");
        for (name, reason) in self.deviations {
            let shown = recorded
                .lines()
                .any(|line| line.split('\t').nth(1) == Some(name));
            assert!(shown, "no input shows {name:?}: {reason}");
        }
    }

    /// Compares the parser with the program that `GO_PROGRAM` names, on `CASES` inputs (default
    /// 2,000) from `FIRST_SEED` (default 0) on. Writes a file of answers if `ANSWERS` names one.
    ///
    /// The program reads inputs, each after its size as four bytes, big endian, and prints a line
    /// for each.
    ///
    /// # Panics
    /// If they differ.
    pub fn check_with_go(&self) {
        let number = |name: &str, default: u64| {
            env::var(name).map_or(default, |text| text.parse().expect("a number"))
        };
        let first = number("FIRST_SEED", 0);
        let last = first + number("CASES", BATCH);
        let mut wrong = Vec::new();
        let mut recorded = String::new();
        let mut counts = BTreeMap::new();
        for start in (first..last).step_by(BATCH as usize) {
            let seeds = start..last.min(start + BATCH);
            for (seed, go) in seeds.clone().zip(self.ask_go(seeds)) {
                let outcome = match self.compare(seed, &go) {
                    Ok(Some(deviation)) => deviation,
                    Ok(None) if go == REFUSED => "refused by both",
                    Ok(None) => "read by both",
                    Err(difference) => {
                        wrong.push(difference);
                        "differs"
                    }
                };
                *counts.entry(outcome).or_insert(0u64) += 1;
                recorded.push_str(&go);
                if self.deviations.iter().any(|(name, _)| *name == outcome) {
                    recorded.extend(["\t", outcome]);
                }
                recorded.push('\n');
            }
        }
        println!("{counts:#?}");
        let shown = &wrong[..wrong.len().min(20)];
        assert!(wrong.is_empty(), "{} differ: {shown:#?}", wrong.len());
        if let Some(path) = env::var_os("ANSWERS").filter(|path| !path.is_empty()) {
            fs::write(&path, recorded)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }

    fn compare(&self, seed: u64, go: &str) -> Result<Option<&'static str>, String> {
        let input = (self.make)(seed);
        (self.compare)(&input, go).map_err(|ours| {
            let text = String::from_utf8_lossy(&input[..input.len().min(400)]).into_owned();
            format!("seed {seed}: {ours}, Go {go}, of {text:?}")
        })
    }

    fn ask_go(&self, seeds: Range<u64>) -> Vec<String> {
        let program = env::var_os("GO_PROGRAM").expect("GO_PROGRAM names a program");
        let mut asked = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut input = asked.stdin.take().expect("it has an input");
        let expected = (seeds.end - seeds.start) as usize;
        let make = self.make;
        // In a thread of its own: both pipes would fill up.
        let writer = thread::spawn(move || {
            for bytes in seeds.map(make) {
                let size = u32::try_from(bytes.len()).expect("inputs are small");
                input
                    .write_all(&size.to_be_bytes())
                    .expect("the program reads");
                input.write_all(&bytes).expect("the program reads");
            }
        });
        let output = asked.wait_with_output().expect("the program ends");
        writer.join().expect("all was written");
        let text = String::from_utf8(output.stdout).expect("answers are text");
        let lines: Vec<String> = text.split_terminator('\n').map(ToOwned::to_owned).collect();
        assert_eq!(lines.len(), expected, "{}", output.status);
        lines
    }
}
