//! Generated files, read by this parser and by the libraries of catalogd (operator-registry,
//! sigs.k8s.io/yaml).
//!
//! An answer is `error`, or the canonical lines with a space between them.

mod changes;
#[path = "../it/common/mod.rs"]
mod common;
mod deviations;
mod documents;
mod words;

use deviations::DEVIATIONS;
use testkit::{Differential, REFUSED, Random};

const DIFFERENTIAL: Differential = Differential {
    make: |seed| documents::file(Random::new(seed)),
    compare,
    deviations: DEVIATIONS,
};

/// Returns the answer of this parser, in the form of Go's.
fn lines(file: &[u8]) -> Result<String, String> {
    let lines = common::lines(file)?;
    Ok(lines.trim_end_matches('\n').replace('\n', " "))
}

/// Compares the lines of a file with those of Go.
fn compare(file: &[u8], go: &str) -> Result<Option<&'static str>, String> {
    let ours = lines(file);
    match &ours {
        Ok(lines) if lines == go => Ok(None),
        Err(_) if go == REFUSED => Ok(None),
        _ => match deviations::find(file, &ours, go) {
            Some(deviation) => Ok(Some(deviation)),
            None => Err(format!("{ours:?}")),
        },
    }
}

#[test]
fn parser_agrees_with_recorded_answers_of_go() {
    DIFFERENTIAL.check_recorded(include_str!("answers"));
}

#[test]
#[ignore = "needs Go: run scripts/long-checks differential"]
fn parser_agrees_with_go() {
    DIFFERENTIAL.check_with_go();
}
