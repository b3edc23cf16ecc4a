use serde::Deserialize;
use serde_json::Value;
use yaml_serde::{Deserializer, Value as Yaml};

use crate::{
    fbc::{checked_lines, close},
    grammar,
};

/// Maximum size of an input for libyaml, in bytes: it needs quadratic time for some.
const MAX: usize = 8 << 10;

/// First byte of an input that holds choices of the grammar. A YAML file cannot start with it.
pub(crate) const CHOICES: u8 = 1;

/// Parses a YAML file with this project's parser and with libyaml: if both accept it, their values are equal, except where
/// YAML 1.1 and 1.2 differ. The memory stays below its limit.
///
/// # Panics
/// If they differ elsewhere, or if it takes more memory.
pub(crate) fn yaml(input: &[u8]) {
    match input {
        [CHOICES, choices @ ..] => check(grammar::yaml(choices).as_bytes()),
        input => check(input),
    }
}

fn check(input: &[u8]) {
    if input.trim_ascii_start().starts_with(b"{") {
        return;
    }
    let ours = checked_lines(input, "\n---\n");
    if let (Some(ours), Some(theirs)) = (ours, documents(input)) {
        assert_eq!(ours.len(), theirs.len(), "{ours:?} instead of {theirs:?}");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert!(agree(ours, theirs), "{ours} instead of {theirs:?}");
        }
    }
}

/// Returns the documents that libyaml reads. Inputs with tags, inner byte order marks or `---#` are skipped: each library
/// treats those in its own way.
fn documents(input: &[u8]) -> Option<Vec<Yaml>> {
    let has = |text: &str| contains(input, text.as_bytes());
    if input.len() > MAX || has("!") || has("---#") || contains(input.get(1..)?, "\u{feff}".as_bytes()) {
        return None;
    }
    let input = lines(input);
    let values = Deserializer::from_slice(&input).map(Yaml::deserialize);
    let values: Vec<Yaml> = values.collect::<Result<_, _>>().ok()?;
    Some(values.into_iter().filter(|value| *value != Yaml::Null).collect())
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|bytes| bytes == part)
}

/// Splits a file into lines as Kubernetes does before parsing: every line ends with a line feed, also the last one, and loses
/// one carriage return before it.
fn lines(input: &[u8]) -> Vec<u8> {
    let lines = input.split_inclusive(|byte| *byte == b'\n');
    lines.flat_map(|line| [bare(line), b"\n"].concat()).collect()
}

fn bare(line: &[u8]) -> &[u8] {
    match line {
        [bare @ .., b'\r', b'\n'] | [bare @ .., b'\n'] | bare => bare,
    }
}

fn agree(ours: &Value, theirs: &Yaml) -> bool {
    match (ours, theirs) {
        (Value::Null, Yaml::Null) => true,
        (Value::Bool(a), Yaml::Bool(b)) => a == b,
        (Value::Number(a), Yaml::Number(b)) => close(a.as_f64(), b.as_f64()),
        (Value::String(a), Yaml::String(b)) => a == b,
        // To go-yaml, a number that no float64 can hold is a string.
        (Value::String(a), Yaml::Number(b)) => is_older(a) && b.is_infinite(),
        (ours, Yaml::String(text)) => is_older(text) && !ours.is_array() && !ours.is_object(),
        (Value::Array(a), Yaml::Sequence(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| agree(a, b)),
        (Value::Object(a), Yaml::Mapping(b)) => {
            let fields: Option<Vec<_>> = b.iter().map(|(key, value)| Some((plain(key)?, value))).collect();
            // A key that is not a string, or a merge, is printed in this project's own way.
            fields.is_none_or(|fields| {
                let same = |(key, b): (&str, &Yaml)| a.get(key).is_some_and(|a| agree(a, b));
                fields.len() == a.len() && fields.into_iter().all(same)
            })
        }
        _ => false,
    }
}

/// Returns a key that is a string to both parsers.
fn plain(key: &Yaml) -> Option<&str> {
    key.as_str().filter(|key| !is_older(key) && *key != "<<")
}

/// Returns true for a plain scalar with a meaning in YAML 1.1 only: a boolean, or a number with underscores or leading zeros.
fn is_older(text: &str) -> bool {
    let word = matches!(
        text.to_ascii_lowercase().as_str(),
        "y" | "n" | "yes" | "no" | "on" | "off"
    );
    word || text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
}
